//! Where values are in a `metadata.arrow` that somebody wrote: found and checked without reading columns.

use std::borrow::Cow;
use std::ops::Range;

use arrow_ipc::{
    Block, Endianness, Footer, MessageHeader, MetadataVersion, Precision, RecordBatch, Type,
    root_as_footer_with_opts, root_as_message,
};
use flatbuffers::VerifierOptions;

use super::access::ColumnSlices;
use super::frame::{CONTINUATION, FILE_START, MESSAGE_PREFIX};
use crate::constants::ARROW_MAGIC;
use crate::cursor::Cursor;
use crate::error::FormatError;
use crate::schema::{FieldType, Schema};

/// Length of the footer and magic bytes at the end of the file.
const FILE_END: u64 = 10;
/// The shortest flatbuffer.
const MIN_FOOTER: u64 = 8;

/// Where one batch's columns are in the file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BatchLayout {
    /// The sample of the batch's first row.
    pub first_row: u64,
    /// The number of rows, 1 or more.
    pub rows: u64,
    /// The columns in the schema's order.
    pub columns: Vec<ColumnLayout>,
}

/// Where one column of a batch is in the file. All ranges are inside the file and start at multiples of 8.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ColumnLayout {
    /// The number of nulls.
    pub null_count: u64,
    /// One bit a row, 1 where there is a value; `None` where no value is null.
    pub nulls: Option<Range<u64>>,
    /// The validity buffer as it is, which may be there without nulls; often empty.
    pub validity: Range<u64>,
    /// Bits, 8-byte numbers, or rows + 1 offsets of 4 bytes.
    pub values: Range<u64>,
    /// The bytes of texts.
    pub text: Option<Range<u64>>,
}

/// Where all values of a metadata file are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MetadataLayout {
    types: Vec<FieldType>,
    rows: u64,
    batches: Vec<BatchLayout>,
}

impl MetadataLayout {
    /// Reads footer and batch headers of a file of `file_len` bytes through `read(offset, len)`, which
    /// returns exactly those bytes and is asked for bytes inside the file only.
    ///
    /// Text offsets and UTF-8 are checked later, by [`ColumnSlices`].
    ///
    /// # Errors
    /// Code `metadata_invalid`, and what `read` returns.
    pub fn parse<'a, E: From<FormatError>>(
        file_len: u64,
        schema: &Schema,
        rows: u64,
        read: &mut dyn FnMut(u64, u64) -> Result<Cow<'a, [u8]>, E>,
    ) -> Result<Self, E> {
        let footer_range = footer_range(file_len, read)?;
        let footer_bytes = read(footer_range.start, footer_range.end - footer_range.start)?;
        let options = VerifierOptions::default();
        let footer = root_as_footer_with_opts(&options, &footer_bytes)
            .map_err(|error| message_error("footer", &error.to_string()))?;
        check_footer(&footer, schema)?;

        let types: Vec<FieldType> = schema
            .fields()
            .iter()
            .map(|field| field.field_type)
            .collect();
        let nullable: Vec<bool> = schema.fields().iter().map(|field| field.nullable).collect();
        let mut batches = Vec::new();
        let mut first_row = 0;
        for block in footer
            .recordBatches()
            .iter()
            .flat_map(|blocks| blocks.iter())
        {
            let place = Place::of(block, footer_range.start)?;
            let bytes = read(place.message.start, place.message.end - place.message.start)?;
            let batch = read_batch(&bytes, &place, first_row, &types, &nullable)?;
            first_row = first_row.saturating_add(batch.rows);
            if first_row > rows {
                return Err(FormatError::MetadataRows {
                    found: first_row,
                    expected: rows,
                }
                .into());
            }
            batches.push(batch);
        }
        if first_row != rows {
            return Err(FormatError::MetadataRows {
                found: first_row,
                expected: rows,
            }
            .into());
        }
        Ok(Self {
            types,
            rows,
            batches,
        })
    }

    /// [`parse`](Self::parse) of a whole file in memory.
    ///
    /// # Errors
    /// Code `metadata_invalid`.
    pub fn parse_bytes(file: &[u8], schema: &Schema, rows: u64) -> Result<Self, FormatError> {
        let mut read = |start: u64, len: u64| {
            let range = start..start.saturating_add(len);
            slice(file, &range).map(Cow::Borrowed)
        };
        Self::parse(file.len() as u64, schema, rows, &mut read)
    }

    /// Checks every value of a file whose whole bytes are `file`: validity buffers, text offsets, UTF-8.
    ///
    /// # Errors
    /// Code `metadata_invalid`.
    pub fn check_values(&self, file: &[u8]) -> Result<(), FormatError> {
        for (position, batch) in self.batches.iter().enumerate() {
            for (field, column) in batch.columns.iter().enumerate() {
                let slices = self.column(file, position, field)?;
                slices.check(slice(file, &column.validity)?, column.null_count)?;
            }
        }
        Ok(())
    }

    /// The batches in order.
    #[must_use]
    pub fn batches(&self) -> &[BatchLayout] {
        &self.batches
    }

    /// The types of the columns.
    #[must_use]
    pub fn types(&self) -> &[FieldType] {
        &self.types
    }

    /// The number of rows.
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// The batch of a row and the row's position in it; `None` beyond the last row.
    #[must_use]
    pub fn locate(&self, row: u64) -> Option<(usize, u64)> {
        if row >= self.rows {
            return None;
        }
        let after = self.batches.partition_point(|batch| batch.first_row <= row);
        let position = after.checked_sub(1)?;
        Some((position, row - self.batches.get(position)?.first_row))
    }

    /// A column of a batch inside `file`, the bytes of the whole file.
    ///
    /// # Errors
    /// [`FormatError::MetadataBounds`] if `file` is shorter than it was at [`parse`](Self::parse) or there
    /// is no such column.
    pub fn column<'f>(
        &self,
        file: &'f [u8],
        batch: usize,
        field: usize,
    ) -> Result<ColumnSlices<'f>, FormatError> {
        let layout = self.batches.get(batch);
        let column = layout.and_then(|layout| layout.columns.get(field));
        let (Some(layout), Some(column), Some(field_type)) =
            (layout, column, self.types.get(field))
        else {
            let (what, limit) = ("column", self.batches.len() as u64);
            return Err(FormatError::MetadataBounds {
                what,
                offset: -1,
                len: 0,
                limit,
            });
        };
        let slice = |range: &Range<u64>| slice(file, range);
        ColumnSlices::new(
            *field_type,
            layout.rows,
            column.nulls.as_ref().map(slice).transpose()?,
            slice(&column.values)?,
            column
                .text
                .as_ref()
                .map(slice)
                .transpose()?
                .unwrap_or_default(),
        )
    }
}

fn slice<'f>(file: &'f [u8], range: &Range<u64>) -> Result<&'f [u8], FormatError> {
    let start = usize::try_from(range.start).ok();
    let end = usize::try_from(range.end).ok();
    start
        .zip(end)
        .and_then(|(start, end)| file.get(start..end))
        .ok_or_else(|| FormatError::MetadataBounds {
            what: "buffer",
            offset: i64::try_from(range.start).unwrap_or(i64::MAX),
            len: i64::try_from(range.end - range.start).unwrap_or(i64::MAX),
            limit: file.len() as u64,
        })
}

/// Checks both magic bytes and the footer's length; returns where the footer is.
fn footer_range<'a, E: From<FormatError>>(
    file_len: u64,
    read: &mut dyn FnMut(u64, u64) -> Result<Cow<'a, [u8]>, E>,
) -> Result<Range<u64>, E> {
    let least = FILE_START as u64 + FILE_END;
    if file_len < least + MIN_FOOTER {
        return Err(FormatError::MetadataMagic.into());
    }
    let start = read(0, FILE_START as u64)?;
    let end = read(file_len - FILE_END, FILE_END)?;
    let mut cursor = Cursor::new(&end);
    let footer_len = cursor.array::<4>().map(i32::from_le_bytes);
    let starts = start.strip_prefix(&ARROW_MAGIC) == Some(&[0, 0]);
    if !starts || cursor.array() != Some(ARROW_MAGIC) {
        return Err(FormatError::MetadataMagic.into());
    }
    let footer_len = footer_len.unwrap_or(-1);
    let room = file_len - least;
    match u64::try_from(footer_len) {
        Ok(len) if (MIN_FOOTER..=room).contains(&len) => {
            let end = file_len - FILE_END;
            Ok(end - len..end)
        }
        _ => {
            let (what, len) = ("footer", i64::from(footer_len));
            Err(FormatError::MetadataBounds {
                what,
                offset: -1,
                len,
                limit: room,
            }
            .into())
        }
    }
}

fn message_error(what: &'static str, detail: &str) -> FormatError {
    // Flatbuffers adds where it stood in the buffer, over several lines.
    let detail = detail.lines().next().unwrap_or_default().to_owned();
    FormatError::MetadataMessage { what, detail }
}

fn value_error(what: &'static str, found: impl std::fmt::Debug, allowed: &str) -> FormatError {
    FormatError::MetadataValue {
        what,
        found: format!("{found:?}"),
        allowed: allowed.to_owned(),
    }
}

fn check_footer(footer: &Footer<'_>, schema: &Schema) -> Result<(), FormatError> {
    if footer.version() != MetadataVersion::V5 {
        return Err(value_error("version of the footer", footer.version(), "V5"));
    }
    let dictionaries = footer.dictionaries().map_or(0, |blocks| blocks.len());
    if dictionaries != 0 {
        return Err(value_error("number of dictionaries", dictionaries, "0"));
    }
    let Some(found) = footer.schema() else {
        return Err(value_error("schema", "missing", "the manifest's fields"));
    };
    if found.endianness() != Endianness::Little {
        return Err(value_error("endianness", found.endianness(), "Little"));
    }
    let count = found.fields().map_or(0, |fields| fields.len());
    if count != schema.len() {
        let allowed = format!("{} by the manifest", schema.len());
        return Err(value_error("number of fields", count, &allowed));
    }
    let fields = found.fields().into_iter().flatten();
    for (position, (found, expected)) in (0..).zip(fields.zip(schema.fields())) {
        let mut problem = extension(&found).or_else(|| nested(&found));
        let name = found.name().unwrap_or_default();
        let field_type = field_type(&found);
        let same = name == expected.name
            && field_type == Some(expected.field_type)
            && found.nullable() == expected.nullable;
        if !same {
            let described = field_type.map_or_else(
                || format!("{:?}", found.type_type()),
                |field_type| field_type.name().to_owned(),
            );
            problem = Some(describe(name, &described, found.nullable()));
        }
        if let Some(found) = problem {
            let expected = describe(
                &expected.name,
                expected.field_type.name(),
                expected.nullable,
            );
            return Err(FormatError::MetadataField {
                field: position,
                found,
                expected,
            });
        }
    }
    Ok(())
}

fn describe(name: &str, field_type: &str, nullable: bool) -> String {
    format!(
        "{name:?} of {}{field_type}",
        if nullable { "nullable " } else { "" }
    )
}

fn extension(field: &arrow_ipc::Field<'_>) -> Option<String> {
    let keys = field.custom_metadata().into_iter().flatten();
    keys.filter_map(|pair| pair.key())
        .find(|key| *key == "ARROW:extension:name")
        .map(|_| "an extension type".to_owned())
}

fn nested(field: &arrow_ipc::Field<'_>) -> Option<String> {
    if field.dictionary().is_some() {
        return Some("dictionary-encoded".to_owned());
    }
    let children = field.children().map_or(0, |children| children.len());
    (children != 0).then(|| format!("a field with {children} children"))
}

fn field_type(field: &arrow_ipc::Field<'_>) -> Option<FieldType> {
    match field.type_type() {
        Type::Bool => Some(FieldType::Bool),
        Type::Utf8 => Some(FieldType::Utf8),
        Type::Int => {
            let int = field.type_as_int()?;
            (int.bitWidth() == 64 && int.is_signed()).then_some(FieldType::Int64)
        }
        Type::FloatingPoint => {
            let float = field.type_as_floating_point()?;
            (float.precision() == Precision::DOUBLE).then_some(FieldType::Float64)
        }
        _ => None,
    }
}

/// Where a batch is in the file, checked to lie between the file's start and its footer.
struct Place {
    message: Range<u64>,
    body: Range<u64>,
}

impl Place {
    fn of(block: &Block, limit: u64) -> Result<Self, FormatError> {
        let (offset, body_len) = (block.offset(), block.bodyLength());
        let message_len = i64::from(block.metaDataLength());
        let numbers = [
            ("batch", offset),
            ("batch header's end", message_len),
            ("batch's end", body_len),
        ];
        for (what, number) in numbers {
            if number % 8 != 0 {
                return Err(FormatError::MetadataAlignment {
                    what,
                    offset: number,
                });
            }
        }
        let outside = |what, offset, len| FormatError::MetadataBounds {
            what,
            offset,
            len,
            limit,
        };
        let start = u64::try_from(offset)
            .ok()
            .filter(|start| *start >= FILE_START as u64);
        let middle = u64::try_from(message_len)
            .ok()
            .filter(|len| *len > MESSAGE_PREFIX as u64)
            .and_then(|len| start?.checked_add(len))
            .filter(|middle| *middle <= limit);
        let (Some(start), Some(middle)) = (start, middle) else {
            return Err(outside("batch header", offset, message_len));
        };
        let end = u64::try_from(body_len)
            .ok()
            .and_then(|len| middle.checked_add(len))
            .filter(|end| *end <= limit)
            .ok_or(outside("batch body", offset, body_len))?;
        Ok(Self {
            message: start..middle,
            body: middle..end,
        })
    }
}

fn read_batch(
    bytes: &[u8],
    place: &Place,
    first_row: u64,
    types: &[FieldType],
    nullable: &[bool],
) -> Result<BatchLayout, FormatError> {
    let mut cursor = Cursor::new(bytes);
    let continuation = cursor.array::<4>();
    let len = cursor.array::<4>().map_or(-1, i32::from_le_bytes);
    if continuation != Some(CONTINUATION) {
        return Err(value_error("start of a batch", continuation, "FF FF FF FF"));
    }
    let whole = usize::try_from(len)
        .ok()
        .filter(|len| len + MESSAGE_PREFIX == bytes.len());
    let Some(message) = whole.and_then(|len| cursor.bytes(len)) else {
        let limit = bytes.len().saturating_sub(MESSAGE_PREFIX) as u64;
        let (what, len) = ("message of a batch", i64::from(len));
        return Err(FormatError::MetadataBounds {
            what,
            offset: 0,
            len,
            limit,
        });
    };
    let message = root_as_message(message)
        .map_err(|error| message_error("message of a batch", &error.to_string()))?;
    if message.version() != MetadataVersion::V5 {
        return Err(value_error("version of a batch", message.version(), "V5"));
    }
    let kind = message.header_type();
    let Some(batch) = message
        .header_as_record_batch()
        .filter(|_| kind == MessageHeader::RecordBatch)
    else {
        return Err(value_error("kind of a message", kind, "RecordBatch"));
    };
    let body_len = place.body.end - place.body.start;
    if u64::try_from(message.bodyLength()) != Ok(body_len) {
        let allowed = format!("{body_len} by the footer");
        return Err(value_error(
            "length of a batch's body",
            message.bodyLength(),
            &allowed,
        ));
    }
    let rows = match u64::try_from(batch.length()) {
        Ok(rows) if (1..=crate::constants::MAX_INTEGER).contains(&rows) => rows,
        _ => return Err(value_error("rows of a batch", batch.length(), "1..=2^53-1")),
    };
    if batch.compression().is_some() {
        return Err(value_error("compression of a batch", "present", "none"));
    }
    if batch
        .variadicBufferCounts()
        .is_some_and(|counts| !counts.is_empty())
    {
        return Err(value_error(
            "variadic buffers of a batch",
            "present",
            "none",
        ));
    }
    let columns = read_columns(&batch, place, rows, types, nullable)?;
    Ok(BatchLayout {
        first_row,
        rows,
        columns,
    })
}

fn read_columns(
    batch: &RecordBatch<'_>,
    place: &Place,
    rows: u64,
    types: &[FieldType],
    nullable: &[bool],
) -> Result<Vec<ColumnLayout>, FormatError> {
    let node_count = batch.nodes().map_or(0, |nodes| nodes.len());
    if node_count != types.len() {
        return Err(value_error(
            "columns of a batch",
            node_count,
            &types.len().to_string(),
        ));
    }
    let needed: usize = types
        .iter()
        .map(|t| if *t == FieldType::Utf8 { 3 } else { 2 })
        .sum();
    let buffer_count = batch.buffers().map_or(0, |buffers| buffers.len());
    if buffer_count != needed {
        return Err(value_error(
            "buffers of a batch",
            buffer_count,
            &needed.to_string(),
        ));
    }
    let mut buffers = batch.buffers().into_iter().flatten();
    let mut next = |what, bytes| {
        // The count was compared above.
        let buffer = buffers
            .next()
            .map(|buffer| (buffer.offset(), buffer.length()));
        read_buffer(what, buffer.unwrap_or((-1, -1)), place, bytes, rows)
    };
    let mut columns = Vec::with_capacity(types.len());
    let nodes = batch.nodes().into_iter().flatten();
    for ((node, field_type), nullable) in nodes.zip(types).zip(nullable) {
        if u64::try_from(node.length()) != Ok(rows) {
            return Err(value_error(
                "rows of a column",
                node.length(),
                &rows.to_string(),
            ));
        }
        let most = if *nullable { rows } else { 0 };
        let Some(null_count) = u64::try_from(node.null_count()).ok().filter(|n| *n <= most) else {
            let allowed = format!("0..={most}");
            return Err(value_error(
                "null count of a column",
                node.null_count(),
                &allowed,
            ));
        };
        let bits = rows.div_ceil(8);
        // Without nulls the buffer may have no bytes at all, and if it has some they are not looked at.
        let validity = next("validity buffer", if null_count == 0 { 0 } else { bits })?;
        let values = match field_type {
            FieldType::Bool => next("bool buffer", bits)?,
            FieldType::Int64 => next("int64 buffer", rows * 8)?,
            FieldType::Float64 => next("float64 buffer", rows * 8)?,
            FieldType::Utf8 => next("offset buffer", (rows + 1) * 4)?,
        };
        let text = match field_type {
            FieldType::Utf8 => Some(next("text buffer", 0)?),
            _ => None,
        };
        let nulls = Some(validity.clone()).filter(|_| null_count != 0);
        columns.push(ColumnLayout {
            null_count,
            nulls,
            validity,
            values,
            text,
        });
    }
    Ok(columns)
}

/// Checks a buffer's place in the body and that it has the bytes that its rows need; returns its place in
/// the file.
fn read_buffer(
    what: &'static str,
    (offset, len): (i64, i64),
    place: &Place,
    needed: u64,
    rows: u64,
) -> Result<Range<u64>, FormatError> {
    let limit = place.body.end - place.body.start;
    let outside = FormatError::MetadataBounds {
        what,
        offset,
        len,
        limit,
    };
    let (Ok(start), Ok(found)) = (u64::try_from(offset), u64::try_from(len)) else {
        return Err(outside);
    };
    if start.checked_add(found).is_none_or(|end| end > limit) {
        return Err(outside);
    }
    if !start.is_multiple_of(8) {
        return Err(FormatError::MetadataAlignment { what, offset });
    }
    if found < needed {
        return Err(FormatError::MetadataBuffer {
            what,
            found,
            needed,
            rows,
        });
    }
    let start = place.body.start + start;
    Ok(start..start + found)
}
