//! Functions of rows with a label, or several.

use super::codes::{Codes, NO_CLASS, Nulls};
use crate::error::{Error, Result};

/// How often a row is to come in an epoch so that rare labels are seen often enough: `max(1, sqrt(threshold / f))` for
/// the rarest of its labels, f being the fraction of rows that have the label; 1 for rows without (the repeat factor of
/// LVIS, Gupta, Dollar and Girshick 2019).
///
/// `labels` holds the labels of all rows one after the other; those of row i begin at `starts[i]` and end where the next
/// row begins. `None` means one label a row, or none. [`NO_CLASS`] is no label.
///
/// # Errors
/// [`Error::Argument`] unless the threshold is above 0 and finite.
pub fn repeat_factor(
    labels: &Codes,
    starts: Option<&[usize]>,
    groups: Option<&Codes>,
    threshold: f64,
) -> Result<Vec<f64>> {
    if !(threshold > 0.0 && threshold.is_finite()) {
        return Err(Error::Argument {
            argument: "threshold",
            message: format!("threshold must be above 0 and finite, found {threshold}"),
        });
    }
    let rows = starts.map_or(labels.len(), |starts| starts.len().saturating_sub(1));
    // The label of each place, told apart by group.
    let group_of_place = match (groups, starts) {
        (Some(groups), Some(starts)) => Some(groups.spread(starts)?),
        _ => None,
    };
    let (joint, parts) = match group_of_place.as_ref().or(groups) {
        Some(groups) => {
            let (joint, parts) = Codes::pairs(groups, labels)?;
            (Some(joint), parts)
        }
        None => (None, Vec::new()),
    };
    let labels = joint.as_ref().unwrap_or(labels);
    let totals = groups.map_or_else(|| vec![rows as u64], Codes::counts);
    let have = match starts {
        None => labels.counts(),
        Some(starts) => rows_with(labels, starts),
    };
    let factors: Vec<f64> = have
        .iter()
        .enumerate()
        .map(|(label, &have)| {
            let group = parts.get(label).map_or(0, |&[group, _]| group as usize);
            let fraction = have as f64 / totals[group] as f64;
            (threshold / fraction).sqrt().max(1.0)
        })
        .collect();
    let Some(starts) = starts else {
        return Ok(labels.look_up(&factors, 1.0));
    };
    Ok(rows_of(labels, starts)
        .map(|labels| {
            let of_label = |&label: &u32| factors.get(label as usize).copied();
            labels.iter().filter_map(of_label).fold(1.0, f64::max)
        })
        .collect())
}

/// Whether a row is among the first `n` of its class; never for a row without a class.
pub fn cap_per_class(classes: &Codes, n: u64) -> Vec<bool> {
    let mut seen = vec![0_u64; classes.bound()];
    let mut kept = Vec::with_capacity(classes.len());
    for &class in classes.as_slice() {
        kept.push(seen.get_mut(class as usize).is_some_and(|seen| {
            *seen += 1;
            *seen <= n
        }));
    }
    kept
}

fn rows_of<'a>(labels: &'a Codes, starts: &'a [usize]) -> impl Iterator<Item = &'a [u32]> {
    let of = |ends: &[usize]| labels.as_slice().get(ends[0]..ends[1]).unwrap_or_default();
    starts.windows(2).map(of)
}

/// How many rows have each label; a row that has it twice counts once.
fn rows_with(labels: &Codes, starts: &[usize]) -> Vec<u64> {
    let mut counts = vec![0; labels.bound()];
    let mut last = vec![usize::MAX; labels.bound()];
    for (row, labels) in rows_of(labels, starts).enumerate() {
        for &label in labels.iter().filter(|&&label| label != NO_CLASS) {
            if last[label as usize] != row {
                last[label as usize] = row;
                counts[label as usize] += 1;
            }
        }
    }
    counts
}

impl Codes {
    /// The code of each row for each of its places, as `starts` cuts them.
    fn spread(&self, starts: &[usize]) -> Result<Self> {
        let mut words = Vec::with_capacity(starts.last().copied().unwrap_or_default());
        for (&code, ends) in self.as_slice().iter().zip(starts.windows(2)) {
            words.extend(std::iter::repeat_n(code, ends[1].saturating_sub(ends[0])));
        }
        let chunk = super::Chunk {
            values: words.as_slice(),
            validity: None,
        };
        Self::of_words(&[chunk], Nulls::Value)
    }
}

#[cfg(test)]
mod tests {
    use super::{cap_per_class, repeat_factor};
    use crate::expr::{Chunk, Codes, Nulls, Validity};

    fn codes(values: &[u8]) -> Codes {
        let chunk = Chunk {
            values,
            validity: None,
        };
        Codes::of_words(&[chunk], Nulls::NoClass).unwrap()
    }

    fn close(found: &[f64], expected: &[f64]) {
        assert_eq!(found.len(), expected.len());
        for (found, expected) in found.iter().zip(expected) {
            assert!((found - expected).abs() < 5e-9, "{found} {expected}");
        }
    }

    #[test]
    fn repeat_factor_published_values() {
        let labels = codes(&[0, 0, 0, 0, 0, 0, 1, 1, 1, 2]);
        let factors = repeat_factor(&labels, None, None, 0.4).unwrap();
        close(
            &factors[5..],
            &[1.0, 1.154_700_54, 1.154_700_54, 1.154_700_54, 2.0],
        );
        for wrong in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            repeat_factor(&labels, None, None, wrong).unwrap_err();
        }
    }

    #[test]
    fn repeat_factor_of_lists() {
        // Rows: {0, 0}, {}, {0, 1}, {1}; label 0 is in 2 of 4 rows, and so is 1.
        let labels = codes(&[0, 0, 0, 1, 1]);
        let starts = [0, 2, 2, 4, 5];
        let factors = repeat_factor(&labels, Some(&starts), None, 2.0).unwrap();
        close(&factors, &[2.0, 1.0, 2.0, 2.0]);
        // Two groups: in the second label 0 is in one of two rows.
        let groups = codes(&[7, 7, 9, 9]);
        let factors = repeat_factor(&labels, Some(&starts), Some(&groups), 2.0).unwrap();
        close(&factors, &[2.0, 1.0, 2.0, 2.0_f64.sqrt()]);
    }

    #[test]
    fn rows_without_a_label() {
        let chunk = Chunk {
            values: &[0_u8, 1, 1, 1],
            validity: Some(Validity {
                bytes: &[0b1101],
                offset: 0,
            }),
        };
        let labels = Codes::of_words(&[chunk], Nulls::NoClass).unwrap();
        let factors = repeat_factor(&labels, None, None, 1.0).unwrap();
        close(&factors, &[2.0, 1.0, 2.0_f64.sqrt(), 2.0_f64.sqrt()]);
        assert_eq!(cap_per_class(&labels, 1), [true, false, true, false]);
        assert_eq!(cap_per_class(&labels, 0), [false; 4]);
    }
}
