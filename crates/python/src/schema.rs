//! Metadata of samples: the schema is inferred from the first one, every value checked against it and put into
//! typed columns.

use dataset_rt_format::{Column, Columns, Field, FieldType, FormatError, Schema};
use pyo3::exceptions::PyUnicodeEncodeError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyString};

use crate::ending::{item, iterate, next};
use crate::entries::Entries;
use crate::source::{described, is_numpy};

/// Which sample an error is about.
pub(crate) struct Place<'a> {
    pub(crate) source: &'a str,
    pub(crate) sample: u64,
}

/// Names that the active table keeps for itself.
const RESERVED: [&str; 3] = ["weight", "cache_id", "sample_id"];

struct FieldBuilder<'py> {
    key: Bound<'py, PyString>,
    name: String,
    field_type: FieldType,
}

/// Typed columns of the block being pulled.
pub(crate) struct Builder<'py> {
    schema: Schema,
    fields: Vec<FieldBuilder<'py>>,
    columns: Vec<Column>,
    rows: usize,
}

impl<'py> Builder<'py> {
    /// The schema of the first sample's metadata.
    pub(crate) fn infer(metadata: &Bound<'py, PyAny>, place: &Place<'_>) -> PyResult<Self> {
        let py = metadata.py();
        let metadata = as_dict(metadata, place)?;
        let mut fields = Vec::with_capacity(metadata.len());
        for (key, value) in &metadata {
            let name = key_text(&key, place)?;
            if RESERVED.contains(&name.as_str()) {
                return Err(place.value_error(
                    py,
                    Some(&name),
                    "a field name other than weight, cache_id and sample_id, which the active table uses",
                    &format!("the field {name:?}"),
                ));
            }
            let field_type = infer_type(&value, &name, place)?;
            fields.push(FieldBuilder {
                key: PyString::intern(py, &name),
                name,
                field_type,
            });
        }
        // The format has rules of its own for names; they are met here, where the sample is known.
        let schema = Schema::new(
            fields
                .iter()
                .map(|field: &FieldBuilder<'_>| Field::new(&field.name, field.field_type))
                .collect(),
        )
        .map_err(|error| {
            place.value_error(
                py,
                None,
                "field names that the format allows",
                &error.to_string(),
            )
        })?;
        let columns = empty_columns(&schema);
        Ok(Self {
            schema,
            fields,
            columns,
            rows: 0,
        })
    }

    /// The schema of the source.
    pub(crate) fn schema(&self) -> &Schema {
        &self.schema
    }

    /// Adds a row. After an error the columns may have unequal lengths: the source has failed, and they are dropped.
    pub(crate) fn push(&mut self, metadata: &Bound<'py, PyAny>, place: &Place<'_>) -> PyResult<()> {
        let converted;
        let metadata = match metadata.cast_exact::<PyDict>() {
            Ok(dict) => dict,
            Err(_) => {
                converted = as_dict(metadata, place)?;
                &converted
            }
        };
        // Sources mostly yield dicts of one make: the fields in the first sample's order, values of the exact types.
        // From the first exception on the fields of this sample are looked up by name.
        let mut entries = Some(Entries::of(metadata));
        for (field, column) in self.fields.iter().zip(&mut self.columns) {
            if let Some(walk) = &mut entries {
                // SAFETY: `push_exact` runs no code of Python, and after it the value is not used.
                #[allow(unsafe_code)]
                let value = unsafe { walk.next_of(&field.key) };
                if value.is_some_and(|value| push_exact(column, &value)) {
                    continue;
                }
                entries = None;
            }
            let Some(value) = metadata.get_item(&field.key)? else {
                return Err(place.value_error(
                    metadata.py(),
                    Some(&field.name),
                    "the fields of the first sample",
                    "no such field in this sample",
                ));
            };
            if !push_exact(column, &value) {
                push_unusual(column, &value, field, place)?;
            }
        }
        if metadata.len() != self.fields.len() {
            return Err(self.unexpected_field(metadata, place));
        }
        self.rows += 1;
        Ok(())
    }

    fn unexpected_field(&self, metadata: &Bound<'py, PyDict>, place: &Place<'_>) -> PyErr {
        for key in metadata.keys() {
            let name = match key_text(&key, place) {
                Ok(name) => name,
                Err(error) => return error,
            };
            if self.fields.iter().all(|field| field.name != name) {
                let known: Vec<_> = self
                    .fields
                    .iter()
                    .map(|field| field.name.as_str())
                    .collect();
                return place.value_error(
                    metadata.py(),
                    Some(&name),
                    &format!("the fields of the first sample, {known:?}"),
                    &format!("the field {name:?}"),
                );
            }
        }
        place.value_error(
            metadata.py(),
            None,
            "each field once",
            "fields of equal names",
        )
    }

    /// Bytes of text in the rows so far.
    pub(crate) fn text_bytes(&self) -> u64 {
        self.columns.iter().map(Column::text_bytes).sum()
    }

    /// The rows so far, leaving empty columns.
    ///
    /// # Errors
    /// Columns of unequal lengths, after an error that was passed over.
    pub(crate) fn take_columns(&mut self) -> Result<Columns, FormatError> {
        let columns = std::mem::replace(&mut self.columns, empty_columns(&self.schema));
        Columns::from_columns(&self.schema, std::mem::take(&mut self.rows), columns)
    }
}

fn empty_columns(schema: &Schema) -> Vec<Column> {
    schema
        .fields()
        .iter()
        .map(|field| Column::new(field.field_type))
        .collect()
}

/// A mapping as a dict with `str` keys.
fn as_dict<'py>(metadata: &Bound<'py, PyAny>, place: &Place<'_>) -> PyResult<Bound<'py, PyDict>> {
    if let Ok(dict) = metadata.cast_exact::<PyDict>() {
        return Ok(dict.clone());
    }
    let py = metadata.py();
    let mapping = py.import("collections.abc")?.getattr("Mapping")?;
    if !metadata.is_instance(&mapping)? {
        return Err(place.type_error(
            py,
            Some("metadata"),
            "a mapping from field names to values",
            &described(metadata),
        ));
    }
    let dict = PyDict::new(py);
    let keys = iterate(metadata)?;
    while let Some(key) = next(&keys) {
        let key = key?;
        let name = key_text(&key, place)?;
        if dict.contains(&name)? {
            return Err(place.value_error(
                py,
                Some(&name),
                "each field once",
                "the key twice in the mapping",
            ));
        }
        dict.set_item(&name, item(metadata, &key)?)?;
    }
    Ok(dict)
}

fn key_text(key: &Bound<'_, PyAny>, place: &Place<'_>) -> PyResult<String> {
    let py = key.py();
    let Ok(text) = key.cast::<PyString>() else {
        return Err(place.type_error(py, None, "field names of type str", &described(key)));
    };
    match text.to_str() {
        Ok(text) if text.contains('\0') => Err(place.value_error(
            py,
            Some(text),
            "a field name without U+0000",
            &described(key),
        )),
        Ok(text) => Ok(text.to_owned()),
        Err(error) if error.is_instance_of::<PyUnicodeEncodeError>(py) => Err(place.value_error(
            py,
            None,
            "a field name of Unicode text",
            &format!("a lone surrogate in {}", described(key)),
        )),
        Err(error) => Err(error),
    }
}

fn infer_type(value: &Bound<'_, PyAny>, name: &str, place: &Place<'_>) -> PyResult<FieldType> {
    let value = &plain(value)?;
    // bool first: it is a subclass of int.
    if value.is_instance_of::<PyBool>() {
        Ok(FieldType::Bool)
    } else if value.is_instance_of::<PyInt>() {
        Ok(FieldType::Int64)
    } else if value.is_instance_of::<PyFloat>() {
        Ok(FieldType::Float64)
    } else if value.is_instance_of::<PyString>() {
        Ok(FieldType::Utf8)
    } else {
        Err(place.type_error(
            value.py(),
            Some(name),
            "a bool, int, float or str",
            &with_none_hint(value),
        ))
    }
}

fn with_none_hint(value: &Bound<'_, PyAny>) -> String {
    if value.is_none() {
        "None; leave a missing value out by a value of your own, such as \"\" or NaN".to_owned()
    } else {
        described(value)
    }
}

/// A NumPy scalar as the Python value it stands for; everything else as it is.
fn plain<'py>(value: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    if is_numpy(value, "generic") {
        value.call_method0("item")
    } else {
        Ok(value.clone())
    }
}

/// Adds a value of the column's exact type, without running code of Python; `false`: it is none, or out of range.
#[inline]
fn push_exact(column: &mut Column, value: &Bound<'_, PyAny>) -> bool {
    match column {
        Column::Bool(values) => {
            if let Ok(value) = value.cast_exact::<PyBool>() {
                values.push(value.is_true());
                return true;
            }
        }
        Column::Int64(values) => {
            if let Ok(value) = value.cast_exact::<PyInt>()
                && let Ok(value) = value.extract::<i64>()
            {
                values.push(value);
                return true;
            }
        }
        Column::Float64(values) => {
            if let Ok(value) = value.cast_exact::<PyFloat>() {
                values.push(value.value());
                return true;
            }
        }
        Column::Utf8(values) => {
            if let Ok(value) = value.cast_exact::<PyString>()
                && let Ok(value) = value.to_str()
                && value.len() <= MAX_TEXT
            {
                values.push(value);
                return true;
            }
        }
    }
    false
}

/// Longest text value in UTF-8 bytes.
const MAX_TEXT: usize = 1 << 30;

/// Values that are neither of the exact type nor plainly wrong: subclasses, NumPy scalars, ints in float fields.
#[cold]
fn push_unusual(
    column: &mut Column,
    value: &Bound<'_, PyAny>,
    field: &FieldBuilder<'_>,
    place: &Place<'_>,
) -> PyResult<()> {
    let py = value.py();
    let name = Some(field.name.as_str());
    let value = &plain(value)?;
    let is_bool = value.is_instance_of::<PyBool>();
    let is_int = value.is_instance_of::<PyInt>() && !is_bool;
    let is_float = value.is_instance_of::<PyFloat>();
    match column {
        Column::Bool(values) if is_bool => values.push(value.is_truthy()?),
        Column::Int64(values) if is_int => match int_value(value) {
            Ok(value) => values.push(value),
            Err(_) => {
                return Err(place.value_error(
                    py,
                    name,
                    "an integer from -2^63 to 2^63-1",
                    &described(value),
                ));
            }
        },
        Column::Float64(values) if is_float => values.push(float_value(value)?),
        Column::Float64(values) if is_int => match exact_float(value)? {
            Some(value) => values.push(value),
            None => {
                return Err(place.value_error(
                    py,
                    name,
                    "a float, or an int that converts to one exactly",
                    &described(value),
                ));
            }
        },
        Column::Utf8(values) if value.is_instance_of::<PyString>() => {
            let text = value.cast::<PyString>()?;
            let Ok(text) = text.to_str() else {
                return Err(place.value_error(
                    py,
                    name,
                    "Unicode text",
                    &format!("a lone surrogate in {}", described(value)),
                ));
            };
            if text.len() > MAX_TEXT {
                return Err(place.value_error(
                    py,
                    name,
                    "text of at most 1073741824 UTF-8 bytes",
                    &format!("{} bytes", text.len()),
                ));
            }
            values.push(text);
        }
        _ => {
            return Err(place.type_error(
                py,
                name,
                &format!("{}, as in the first sample", field.field_type.name()),
                &with_none_hint(value),
            ));
        }
    }
    Ok(())
}

/// The value of an int or of a subclass such as an `IntEnum` member.
fn int_value(value: &Bound<'_, PyAny>) -> PyResult<i64> {
    // int.__int__ rather than the subclass's own conversion, which may be overridden.
    let exact = value
        .py()
        .get_type::<PyInt>()
        .call_method1("__int__", (value,))?;
    exact.extract::<i64>()
}

fn float_value(value: &Bound<'_, PyAny>) -> PyResult<f64> {
    Ok(value.cast::<PyFloat>()?.value())
}

/// The float equal to an int, if there is one.
fn exact_float(value: &Bound<'_, PyAny>) -> PyResult<Option<f64>> {
    let py = value.py();
    let exact = py.get_type::<PyInt>().call_method1("__int__", (value,))?;
    match py.get_type::<PyFloat>().call1((&exact,)) {
        Ok(float) if float.eq(&exact)? => Ok(Some(float.extract::<f64>()?)),
        Ok(_) => Ok(None),
        Err(error) if error.is_instance_of::<pyo3::exceptions::PyOverflowError>(py) => Ok(None),
        Err(error) => Err(error),
    }
}
