//! Options as Python sends them: Python checks them first, with better messages.

use dataset_rt_runtime::expr;
use serde::Deserialize;

/// An enum of an option's names, and the way from them to the runtime's values.
macro_rules! option {
    ($name:ident is $target:ty { $($from:ident => $to:ident),* $(,)? }) => {
        #[derive(Clone, Copy, Deserialize)]
        #[serde(rename_all = "snake_case")]
        pub(crate) enum $name {
            $($from),*
        }

        impl From<$name> for $target {
            fn from(value: $name) -> Self {
                match value {
                    $($name::$from => Self::$to),*
                }
            }
        }
    };
}

option!(Normalize is expr::Normalize { Rows => Rows, Classes => Classes, None => Raw });
option!(NullClass is expr::NullClass { Error => Error, Class => Class, Zero => Zero });
option!(NullNumber is expr::NullNumber { Error => Error, Zero => Zero });
