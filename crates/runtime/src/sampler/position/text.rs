//! Values of a saved position as strings: integers, digests and modes.

use std::fmt::Write as _;

pub(super) fn to_hex(bytes: &[u8]) -> String {
    bytes
        .iter()
        .fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
            // Writing to a string can't fail.
            let _ = write!(text, "{byte:02x}");
            text
        })
}

/// Exactly N bytes in lower-case hexadecimal digits.
pub(super) fn from_hex<const N: usize>(text: &str) -> Option<[u8; N]> {
    let digit = |digit: u8| match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    };
    let digits = text.as_bytes();
    if digits.len() != 2 * N {
        return None;
    }
    let mut bytes = [0; N];
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = digit(pair[0])? << 4 | digit(pair[1])?;
    }
    Some(bytes)
}

/// A 64-bit integer as a string: numbers of JSON are exact up to 2^53 only, in many parsers.
fn from_decimal(text: &str) -> Option<u64> {
    text.parse()
        .ok()
        .filter(|value: &u64| value.to_string() == text)
}

/// Makes the `with` module of a string form.
macro_rules! as_text {
    ($name:ident, $optional:ident, $type:ty, $to:expr, $from:expr, $expected:literal) => {
        pub(super) mod $name {
            use serde::de::Error;
            use serde::{Deserialize, Deserializer, Serializer};

            pub(in super::super) fn serialize<S: Serializer>(value: &$type, to: S) -> Result<S::Ok, S::Error> {
                to.serialize_str(&$to(value))
            }

            pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<$type, D::Error> {
                let text = String::deserialize(from)?;
                $from(&text).ok_or_else(|| D::Error::custom(format!("{text:?} is not {}", $expected)))
            }
        }
        as_text!(@optional $optional, $type, $to, $from, $expected);
    };
    (@optional none, $type:ty, $to:expr, $from:expr, $expected:literal) => {};
    (@optional $name:ident, $type:ty, $to:expr, $from:expr, $expected:literal) => {
        pub(super) mod $name {
            use serde::de::Error;
            use serde::{Deserialize, Deserializer, Serializer};

            pub(in super::super) fn serialize<S: Serializer>(
                value: &Option<$type>,
                to: S,
            ) -> Result<S::Ok, S::Error> {
                match value {
                    Some(value) => to.serialize_str(&$to(value)),
                    None => to.serialize_none(),
                }
            }

            pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(
                from: D,
            ) -> Result<Option<$type>, D::Error> {
                match Option::<String>::deserialize(from)? {
                    None => Ok(None),
                    Some(text) => match $from(&text) {
                        Some(value) => Ok(Some(value)),
                        None => Err(D::Error::custom(format!("{text:?} is not {}", $expected))),
                    },
                }
            }
        }
    };
}

as_text!(
    decimal,
    optional_decimal,
    u64,
    u64::to_string,
    super::from_decimal,
    "a decimal below 2^64"
);
as_text!(
    hex,
    optional_hex,
    [u8; 32],
    |bytes: &[u8; 32]| super::to_hex(bytes),
    super::from_hex,
    "64 lower-case hexadecimal digits"
);
as_text!(
    mode,
    none,
    crate::sampler::Mode,
    |mode: &crate::sampler::Mode| mode.name().to_owned(),
    crate::sampler::Mode::from_name,
    "a known mode"
);
