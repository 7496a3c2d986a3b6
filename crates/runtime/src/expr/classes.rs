//! Classes of rows, each within a group.

use std::sync::OnceLock;

use super::codes::{Codes, Nulls};
use super::refused;
use crate::error::Result;

/// What becomes of rows whose class is null.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum NullClass {
    /// They are refused.
    #[default]
    Error,
    /// They are a class of their own.
    Class,
    /// They weigh nothing and count for nothing.
    Zero,
}

impl NullClass {
    /// How the class columns are to be coded.
    pub fn nulls(self) -> Nulls {
        match self {
            Self::Class => Nulls::Value,
            Self::Error | Self::Zero => Nulls::NoClass,
        }
    }
}

/// The class of each row. With groups a class is one group's own, and each group is computed for itself.
#[derive(Clone, Debug)]
pub struct Classes {
    codes: Codes,
    counts: OnceLock<Vec<u64>>,
    /// The classes of one group follow each other here; without groups all classes in their order.
    order: Option<Order>,
}

#[derive(Clone, Debug)]
struct Order {
    classes: Vec<u32>,
    /// Group and code of each class.
    parts: Vec<[u32; 2]>,
    /// Where each group begins in `classes`, and the end.
    starts: Vec<usize>,
}

impl Classes {
    /// Classes from codes made with [`NullClass::nulls`].
    ///
    /// # Errors
    /// [`Error::Table`](crate::Error::Table) for a row without a class under [`NullClass::Error`].
    pub fn new(codes: Codes, groups: Option<&Codes>, null: NullClass) -> Result<Self> {
        if null == NullClass::Error
            && let Some(row) = codes.first_without()
        {
            return Err(refused(
                "by",
                Some(row),
                format!(
                    "the class of row {row} is null; say null=\"class\" to make nulls a class of their own, \
                     or null=\"zero\" to give them no weight"
                ),
            ));
        }
        let Some(groups) = groups else {
            return Ok(Self {
                codes,
                counts: OnceLock::new(),
                order: None,
            });
        };
        let (codes, parts) = Codes::pairs(groups, &codes)?;
        Ok(Self {
            order: Some(Order::new(parts, groups.bound())),
            codes,
            counts: OnceLock::new(),
        })
    }

    /// The class of each row.
    pub fn codes(&self) -> &Codes {
        &self.codes
    }

    /// Rows of each class; zero for a code that no row has.
    pub fn counts(&self) -> &[u64] {
        self.counts.get_or_init(|| self.codes.counts())
    }

    /// Whether all classes are of one group.
    pub(super) fn is_one_group(&self) -> bool {
        self.order.is_none()
    }

    /// The code that the rows of a class had before groups told them apart.
    pub(super) fn code_of(&self, class: usize) -> usize {
        let parts = self.order.as_ref().and_then(|order| order.parts.get(class));
        parts.map_or(class, |&[_, code]| code as usize)
    }

    /// Calls `visit` for each group with the classes of it that have rows, in an order that depends on the codes.
    ///
    /// # Errors
    /// Those of `visit`.
    pub fn each_group(&self, mut visit: impl FnMut(&[usize]) -> Result<()>) -> Result<()> {
        let mut present = Vec::new();
        let counts = self.counts();
        let mut call = |classes: &mut dyn Iterator<Item = usize>| {
            present.clear();
            present.extend(classes.filter(|&class| counts[class] > 0));
            if present.is_empty() {
                return Ok(());
            }
            visit(&present)
        };
        match &self.order {
            None => call(&mut (0..counts.len())),
            Some(order) => order.starts.windows(2).try_for_each(|ends| {
                let classes = &order.classes[ends[0]..ends[1]];
                call(&mut classes.iter().map(|&class| class as usize))
            }),
        }
    }
}

impl Order {
    /// A counting sort of the classes by their group.
    fn new(parts: Vec<[u32; 2]>, groups: usize) -> Self {
        let mut starts = vec![0; groups + 1];
        for &[group, _] in &parts {
            starts[group as usize + 1] += 1;
        }
        for group in 0..groups {
            starts[group + 1] += starts[group];
        }
        let mut next = starts.clone();
        let mut classes = vec![0; parts.len()];
        for (class, &[group, _]) in (0..).zip(&parts) {
            let at = &mut next[group as usize];
            classes[*at] = class;
            *at += 1;
        }
        Self {
            classes,
            parts,
            starts,
        }
    }
}
