//! Headers of record batches: where buffers are, and whether they are long enough.

use std::ops::Range;

use arrow_ipc::{Block, MessageHeader, MetadataVersion, RecordBatch, root_as_message};

use super::errors::{message_error, value_error};
use super::frame::{CONTINUATION, FILE_START, MESSAGE_PREFIX};
use super::layout::{BatchLayout, ColumnLayout};
use crate::constants::MAX_INTEGER;
use crate::cursor::Cursor;
use crate::error::FormatError;
use crate::schema::FieldType;

/// Where a batch is in the file, checked to lie between the file's start and its footer.
pub(super) struct Place {
    pub(super) message: Range<u64>,
    body: Range<u64>,
}

impl Place {
    /// `from` is where the batch before ends: without that order a small footer could name one large header many times.
    pub(super) fn of(block: &Block, from: u64, limit: u64) -> Result<Self, FormatError> {
        let (offset, body_len) = (block.offset(), block.bodyLength());
        let message_len = i64::from(block.metaDataLength());
        for (what, number) in [("batch", offset), ("batch header's end", message_len)] {
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
        if start < from {
            return Err(FormatError::MetadataOverlap {
                what: "batch",
                offset,
                end: from,
            });
        }
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

    pub(super) fn end(&self) -> u64 {
        self.body.end
    }
}

/// Reads a batch's header, whose bytes are `bytes`, and checks it against the footer and the schema.
pub(super) fn read_batch(
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
        Ok(rows) if (1..=MAX_INTEGER).contains(&rows) => rows,
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
    let mut end = 0;
    let mut next = |what, bytes| {
        // The count was compared above.
        let buffer = buffers
            .next()
            .map(|buffer| (buffer.offset(), buffer.length()));
        let (offset, len) = buffer.unwrap_or((-1, -1));
        let range = read_buffer(what, (offset, len), place, bytes, rows)?;
        if !range.is_empty() {
            if range.start < place.body.start + end {
                return Err(FormatError::MetadataOverlap { what, offset, end });
            }
            end = range.end - place.body.start;
        }
        Ok(range)
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
        let nulls = next("validity buffer", if null_count == 0 { 0 } else { bits })?;
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
        let nulls = Some(nulls).filter(|_| null_count != 0);
        columns.push(ColumnLayout {
            null_count,
            nulls,
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
