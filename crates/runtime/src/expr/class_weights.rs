//! Weights that depend on how many rows a class has.

use super::classes::Classes;
use super::refused;
use crate::error::{Error, Result};

/// What the mean of weights is brought to 1 over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Normalize {
    /// Nothing: weights are as the formula gives them.
    #[default]
    Raw,
    /// The rows that have a class.
    Rows,
    /// The classes that have rows, each counted once.
    Classes,
}

/// A weight a row by which each class that has rows is drawn equally often: `N / (K * n_c)` for N rows, K classes with
/// rows and `n_c` rows of the row's class (the inverse frequencies of King and Zeng 2001).
///
/// The formula has mean 1 over the rows already, so [`Normalize::Raw`] and [`Normalize::Rows`] give the same.
///
/// # Errors
/// None today.
pub fn balanced_weight(classes: &Classes, normalize: Normalize) -> Result<Vec<f64>> {
    let normalize = match normalize {
        Normalize::Rows => Normalize::Raw,
        other => other,
    };
    weigh(classes, normalize, |counts, weights| {
        let numerator = counts.iter().sum::<f64>() / counts.len() as f64;
        for (weight, count) in weights.iter_mut().zip(counts) {
            *weight = numerator / count;
        }
    })
}

/// The inverse of the effective number of samples: `(1 - beta) / (1 - beta^n_c)` (Cui, Jia, Lin, Song and Belongie 2019).
///
/// # Errors
/// [`Error::Argument`] unless `0 <= beta < 1`.
pub fn effective_number_weight(
    classes: &Classes,
    beta: f64,
    normalize: Normalize,
) -> Result<Vec<f64>> {
    check(
        "beta",
        beta,
        (0.0..1.0).contains(&beta),
        "at least 0 and below 1",
    )?;
    // The form as it is written loses all digits near beta = 1: ln(beta) = ln(1 - (1 - beta)).
    let log_beta = (-(1.0 - beta)).ln_1p();
    weigh(classes, normalize, |counts, weights| {
        for (weight, count) in weights.iter_mut().zip(counts) {
            *weight = (1.0 - beta) / -(count * log_beta).exp_m1();
        }
    })
}

/// Shares that follow a power of the class sizes, `p_c` proportional to `min(n_c, limit)^alpha`, each spread over the
/// rows of its class: `p_c / n_c`. `alpha` is 1 / temperature (Raffel et al. 2020 for the limit; Conneau et al. 2020;
/// Mahajan et al. 2018 for alpha = 1/2).
///
/// # Errors
/// [`Error::Argument`] unless `alpha` is finite and the limit above 0.
pub fn temperature_weight(
    classes: &Classes,
    alpha: f64,
    limit: Option<f64>,
    normalize: Normalize,
) -> Result<Vec<f64>> {
    check("alpha", alpha, alpha.is_finite(), "finite")?;
    let limit = limit.unwrap_or(f64::INFINITY);
    check("limit", limit, limit > 0.0, "above 0")?;
    weigh(classes, normalize, |counts, weights| {
        // Logarithms: a power of a large count may be beyond what a float holds.
        for (weight, count) in weights.iter_mut().zip(counts) {
            *weight = alpha * count.min(limit).ln();
        }
        let largest = weights.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let mut sum = 0.0;
        for weight in &mut *weights {
            *weight = (*weight - largest).exp();
            sum += *weight;
        }
        share_out(counts, weights, sum);
    })
}

/// Shares of a budget of samples that are equal as far as no class is seen more than `max_epochs` times, each spread over
/// the rows of its class: `p_c / n_c` (UniMax, Chung et al. 2023).
///
/// # Errors
/// [`Error::Argument`] unless both are finite and above 0.
pub fn unimax_weight(
    classes: &Classes,
    budget: f64,
    max_epochs: f64,
    normalize: Normalize,
) -> Result<Vec<f64>> {
    let allowed = |value: f64| value > 0.0 && value.is_finite();
    check("budget", budget, allowed(budget), "above 0")?;
    check("max_epochs", max_epochs, allowed(max_epochs), "above 0")?;
    let mut order: Vec<usize> = Vec::new();
    weigh(classes, normalize, |counts, weights| {
        order.clear();
        order.extend(0..counts.len());
        order.sort_unstable_by(|&a, &b| counts[a].total_cmp(&counts[b]));
        let mut left = budget;
        let mut sum = 0.0;
        for (done, &class) in order.iter().enumerate() {
            let even = left / (order.len() - done) as f64;
            weights[class] = even.min(counts[class] * max_epochs);
            left -= weights[class];
            sum += weights[class];
        }
        share_out(counts, weights, sum);
    })
}

/// A given share for each class, spread over its rows: `p_c / n_c`. `shares` holds one for each code, of which those that a
/// group doesn't have are left out.
///
/// # Errors
/// [`Error::Table`](crate::Error::Table) if the classes of a group have no share together.
pub fn mixture_weight(classes: &Classes, shares: &[f64], normalize: Normalize) -> Result<Vec<f64>> {
    weigh_as(
        classes,
        normalize,
        Zeros::Allowed,
        |present, counts, weights| {
            let mut sum = 0.0;
            for (weight, &class) in weights.iter_mut().zip(present) {
                let share = shares.get(classes.code_of(class));
                *weight = share.copied().unwrap_or_default();
                sum += *weight;
            }
            if sum == 0.0 {
                let message = "no row of the group is from a source with a share above 0";
                return Err(refused("source", None, message.to_owned()));
            }
            share_out(counts, weights, sum);
            Ok(())
        },
    )
}

/// From amounts a class to weights a row: shares of all, over the rows of the class.
fn share_out(counts: &[f64], weights: &mut [f64], sum: f64) {
    for (weight, count) in weights.iter_mut().zip(counts) {
        *weight = *weight / sum / count;
    }
}

fn check(argument: &'static str, value: f64, allowed: bool, rule: &str) -> Result<()> {
    if allowed {
        return Ok(());
    }
    Err(Error::Argument {
        argument,
        message: format!("{argument} must be {rule}, found {value}"),
    })
}

/// Whether a class may get weight 0.
#[derive(Clone, Copy, PartialEq)]
enum Zeros {
    Allowed,
    Underflow,
}

fn weigh(
    classes: &Classes,
    normalize: Normalize,
    mut formula: impl FnMut(&[f64], &mut [f64]),
) -> Result<Vec<f64>> {
    weigh_as(
        classes,
        normalize,
        Zeros::Underflow,
        |_, counts, weights| {
            formula(counts, weights);
            Ok(())
        },
    )
}

/// Weighs the rows of each class as `formula` says, group by group: it gets the classes of a group, the numbers of their
/// rows, none of them 0, and fills in a weight each. Rows without a class get 0.
fn weigh_as(
    classes: &Classes,
    normalize: Normalize,
    zeros: Zeros,
    mut formula: impl FnMut(&[usize], &[f64], &mut [f64]) -> Result<()>,
) -> Result<Vec<f64>> {
    let mut of_class = vec![0.0; classes.counts().len()];
    let (mut counts, mut weights) = (Vec::new(), Vec::new());
    classes.each_group(|present| {
        counts.clear();
        counts.extend(present.iter().map(|&class| classes.counts()[class] as f64));
        weights.clear();
        weights.resize(present.len(), 0.0);
        formula(present, &counts, &mut weights)?;
        let scale = scale(&counts, &weights, normalize);
        for (&class, &weight) in present.iter().zip(&weights) {
            let scaled = weight * scale;
            let excluded = weight == 0.0 && zeros == Zeros::Allowed;
            if !(excluded || scaled.is_normal()) {
                return Err(out_of_range(classes, class, scaled));
            }
            of_class[class] = scaled;
        }
        Ok(())
    })?;
    Ok(classes.codes().look_up(&of_class, 0.0))
}

fn out_of_range(classes: &Classes, class: usize, weight: f64) -> Error {
    let row = classes.codes().first_row(class);
    refused(
        "by",
        row,
        format!(
            "the weight of the {} rows of the class of row {} is {weight:e}, beyond what a float holds: weaken the \
             options",
            classes.counts()[class],
            row.unwrap_or_default()
        ),
    )
}

/// What weights are multiplied with.
fn scale(counts: &[f64], weights: &[f64], normalize: Normalize) -> f64 {
    match normalize {
        Normalize::Raw => 1.0,
        Normalize::Rows => {
            let sum: f64 = counts.iter().zip(weights).map(|(n, w)| n * w).sum();
            counts.iter().sum::<f64>() / sum
        }
        Normalize::Classes => weights.len() as f64 / weights.iter().sum::<f64>(),
    }
}

#[cfg(test)]
mod tests;
