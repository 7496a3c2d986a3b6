//! Strict access to members of JSON objects; errors name the member by its path.

use serde_json::{Map, Value};

use crate::constants::MAX_INTEGER;
use crate::cursor::parse_hex;
use crate::error::FormatError;

/// A JSON object and where it stands in the manifest.
pub(super) struct Members<'a> {
    path: Path<'a>,
    map: &'a Map<String, Value>,
}

/// Made into text for an error alone.
enum Path<'a> {
    Top,
    Member(String),
    Item(&'a str, usize),
}

impl Path<'_> {
    fn text(&self) -> String {
        match self {
            Self::Top => String::new(),
            Self::Member(path) => path.clone(),
            Self::Item(list, position) => format!("{list}[{position}]"),
        }
    }
}

impl<'a> Members<'a> {
    /// The members of the manifest itself.
    pub(super) fn top(map: &'a Map<String, Value>) -> Self {
        Self {
            path: Path::Top,
            map,
        }
    }

    /// The members of the object at `position` of a list.
    pub(super) fn item(
        value: &'a Value,
        list: &'a str,
        position: usize,
    ) -> Result<Self, FormatError> {
        Self::of(value, Path::Item(list, position))
    }

    fn of(value: &'a Value, path: Path<'a>) -> Result<Self, FormatError> {
        match value.as_object() {
            Some(map) => Ok(Self { path, map }),
            None => Err(error(&path.text(), Some(value), "an object")),
        }
    }

    pub(super) fn error(&self, name: &str, allowed: &str) -> FormatError {
        error(&self.full(name), self.map.get(name), allowed)
    }

    pub(super) fn get(&self, name: &str) -> Option<&'a Value> {
        self.map.get(name)
    }

    fn full(&self, name: &str) -> String {
        match &self.path {
            Path::Top => name.to_owned(),
            path => format!("{}.{name}", path.text()),
        }
    }

    pub(super) fn object(&self, name: &str) -> Result<Members<'a>, FormatError> {
        let value = self
            .get(name)
            .ok_or_else(|| self.error(name, "an object"))?;
        Members::of(value, Path::Member(self.full(name)))
    }

    pub(super) fn list(&self, name: &str) -> Result<&'a [Value], FormatError> {
        let list = self.get(name).and_then(Value::as_array);
        list.map(Vec::as_slice)
            .ok_or_else(|| self.error(name, "a list"))
    }

    pub(super) fn text(&self, name: &str) -> Result<&'a str, FormatError> {
        self.get(name)
            .and_then(Value::as_str)
            .ok_or_else(|| self.error(name, "text"))
    }

    pub(super) fn optional_text(&self, name: &str) -> Result<Option<String>, FormatError> {
        match self.get(name) {
            None => Ok(None),
            Some(_) => self.text(name).map(|text| Some(text.to_owned())),
        }
    }

    pub(super) fn boolean(&self, name: &str) -> Result<bool, FormatError> {
        let value = self.get(name).and_then(Value::as_bool);
        value.ok_or_else(|| self.error(name, "true, false"))
    }

    /// An integer in `least..=2^53-1`. JSON numbers with a sign, fraction or exponent are none.
    pub(super) fn integer(&self, name: &str, least: u64) -> Result<u64, FormatError> {
        let found = self.get(name).and_then(Value::as_u64);
        found
            .filter(|found| (least..=MAX_INTEGER).contains(found))
            .ok_or_else(|| self.error(name, &format!("an integer in {least}..=2^53-1")))
    }

    pub(super) fn hex<const N: usize>(&self, name: &str) -> Result<[u8; N], FormatError> {
        let found = self
            .get(name)
            .and_then(Value::as_str)
            .and_then(parse_hex::<N>);
        found.ok_or_else(|| self.error(name, &format!("{} lower-case hex digits", 2 * N)))
    }

    pub(super) fn optional_hex<const N: usize>(
        &self,
        name: &str,
    ) -> Result<Option<[u8; N]>, FormatError> {
        match self.get(name) {
            None => Ok(None),
            Some(_) => self.hex(name).map(Some),
        }
    }

    /// A CRC, written as a number: its first digit is the highest.
    pub(super) fn crc(&self, name: &str) -> Result<u32, FormatError> {
        let [a, b, c, d] = self.hex::<4>(name)?;
        Ok(u32::from_le_bytes([d, c, b, a]))
    }

    pub(super) fn texts(&self, name: &str) -> Result<Vec<String>, FormatError> {
        let texts = self
            .list(name)?
            .iter()
            .map(|value| value.as_str().map(str::to_owned));
        texts
            .collect::<Option<_>>()
            .ok_or_else(|| self.error(name, "a list of texts"))
    }
}

fn error(member: &str, found: Option<&Value>, allowed: &str) -> FormatError {
    const SHOWN: usize = 80;
    let found = found.map_or_else(
        || "missing".to_owned(),
        |value| match value {
            Value::Array(list) => format!("a list of {}", list.len()),
            Value::Object(_) => "an object".to_owned(),
            scalar => {
                let text = scalar.to_string();
                let end = (0..=SHOWN.min(text.len()))
                    .rev()
                    .find(|end| text.is_char_boundary(*end));
                let head = text.get(..end.unwrap_or(0)).unwrap_or_default();
                if head.len() < text.len() {
                    format!("{head}...")
                } else {
                    text
                }
            }
        },
    );
    FormatError::ManifestMember {
        member: member.to_owned(),
        found,
        allowed: allowed.to_owned(),
    }
}
