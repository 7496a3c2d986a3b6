//! Where each of many classes is cut into parts, so that the part of a row is found in one place of memory.

use super::hashed::narrow;
use super::smallest::Cuts;

/// The [`Cuts`] of many classes.
pub(super) trait ClassCuts {
    /// All values are in the first part until their class is cut.
    fn new(classes: usize) -> Self;

    fn set(&mut self, class: usize, cuts: &Cuts);

    /// The part of a value among those of its class.
    fn part(&self, class: usize, value: u64) -> u32;
}

/// Classes that are cut at the same small number of ranks: all limits are compared.
pub(super) struct FewCuts<const RANKS: usize>(Vec<(u32, [u64; RANKS])>);

impl<const RANKS: usize> ClassCuts for FewCuts<RANKS> {
    fn new(classes: usize) -> Self {
        // Nothing is above these limits.
        Self(vec![(0, [u64::MAX; RANKS]); classes])
    }

    fn set(&mut self, class: usize, cuts: &Cuts) {
        let (passed, limits) = &mut self.0[class];
        *passed = cuts.passed;
        limits
            .iter_mut()
            .zip(&cuts.limits)
            .for_each(|(to, limit)| *to = *limit);
    }

    #[inline(always)]
    fn part(&self, class: usize, value: u64) -> u32 {
        let (passed, limits) = &self.0[class];
        let past = limits.map(|limit| u32::from(value > limit));
        passed + past.iter().sum::<u32>()
    }
}

/// Classes that are cut at any ranks. A class has no more limits than values, however many parts there are.
pub(super) struct ManyCuts {
    classes: Vec<Limits>,
    /// Values above the first number are in the part of the second or in a later one.
    limits: Vec<(u64, u32)>,
}

#[derive(Clone, Copy, Default)]
struct Limits {
    start: usize,
    len: u32,
    passed: u32,
}

impl ClassCuts for ManyCuts {
    fn new(classes: usize) -> Self {
        Self {
            classes: vec![Limits::default(); classes],
            limits: Vec::new(),
        }
    }

    fn set(&mut self, class: usize, cuts: &Cuts) {
        let start = self.limits.len();
        let mut part = cuts.passed;
        for same in cuts.limits.chunk_by(|a, b| a == b) {
            part += narrow(same.len());
            self.limits.push((same[0], part));
        }
        self.classes[class] = Limits {
            start,
            len: narrow(self.limits.len() - start),
            passed: cuts.passed,
        };
    }

    fn part(&self, class: usize, value: u64) -> u32 {
        let of_class = self.classes[class];
        let limits = &self.limits[of_class.start..][..of_class.len as usize];
        match limits.partition_point(|&(limit, _)| limit < value) {
            0 => of_class.passed,
            past => limits[past - 1].1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{ClassCuts, FewCuts, ManyCuts};
    use crate::expr::smallest::Cuts;

    fn check<C: ClassCuts>(ranks: &[usize]) {
        let columns = [vec![5, 1, 9, 9, 9, 2, u64::MAX, 0], vec![7], vec![3, 3, 3]];
        let mut found = C::new(4);
        for (class, values) in columns.iter().enumerate().rev() {
            found.set(class, &Cuts::new(values, ranks));
        }
        for (class, values) in columns.iter().enumerate() {
            for &value in values {
                let smaller = values.iter().filter(|&&other| other < value).count();
                let right = ranks.iter().filter(|&&rank| rank <= smaller).count();
                assert_eq!(found.part(class, value) as usize, right, "{class} {value}");
            }
        }
        // Never cut.
        assert_eq!(found.part(3, u64::MAX), 0);
    }

    #[test]
    fn parts_are_as_many_as_the_ranks_that_smaller_values_reach() {
        check::<FewCuts<0>>(&[]);
        check::<ManyCuts>(&[]);
        for first in 0..9 {
            check::<FewCuts<1>>(&[first]);
            for second in first..9 {
                check::<FewCuts<2>>(&[first, second]);
                check::<ManyCuts>(&[0, first, second, second, 8]);
            }
        }
    }
}
