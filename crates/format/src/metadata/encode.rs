//! Writing the metadata as a stream of bytes to append.

use std::ops::Range;

use arrow_ipc::{Block, Buffer, FieldNode};

use super::frame::{BODY_ALIGNMENT, FILE_START, batch_message, file_end, schema_message};
use crate::column::{Column, Columns, TextColumn};
use crate::constants::{ARROW_MAGIC, MAX_BATCH_ROWS, MAX_BATCH_TEXT};
use crate::error::FormatError;
use crate::schema::Schema;

/// Makes the bytes of `metadata.arrow` front to back: [`prefix`](Self::prefix), then each
/// [`batch`](Self::batch), then [`finish`](Self::finish).
///
/// The bytes are a function of schema and batches alone: no validity buffers, offsets from 0, padding and
/// trailing bits zero, bodies at multiples of 64.
#[derive(Clone, Debug)]
pub struct MetadataEncoder {
    schema: Schema,
    offset: usize,
    blocks: Vec<Block>,
    rows: u64,
    texts: Vec<Range<u64>>,
}

impl MetadataEncoder {
    /// A file without batches.
    #[must_use]
    pub fn new(schema: &Schema) -> Self {
        let mut made = Self {
            schema: schema.clone(),
            offset: 0,
            blocks: Vec::new(),
            rows: 0,
            texts: Vec::new(),
        };
        made.offset = made.prefix().len();
        made
    }

    /// The start of the file: magic bytes and the schema.
    #[must_use]
    pub fn prefix(&self) -> Vec<u8> {
        let mut bytes = ARROW_MAGIC.to_vec();
        bytes.resize(FILE_START, 0);
        bytes.extend(schema_message(&self.schema));
        bytes
    }

    /// The rows in all batches so far.
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// The bytes of one more batch.
    ///
    /// # Errors
    /// [`FormatError::ColumnsShape`] if the columns are not those of the schema, have no rows, or are more
    /// than a [`Batcher`](crate::Batcher) puts into one batch; nothing is added then.
    pub fn batch(&mut self, columns: &Columns) -> Result<Vec<u8>, FormatError> {
        let fits = columns.fits(&self.schema)
            && (1..=MAX_BATCH_ROWS).contains(&columns.rows())
            && (columns.rows() == 1 || columns.text_bytes() <= MAX_BATCH_TEXT);
        if !fits {
            let expected = "1 to 65,536 rows with up to 16 MiB of text, or one row".to_owned();
            return Err(columns.shape_error(expected));
        }
        let rows = signed(columns.rows());
        let mut body = Body::default();
        for column in columns.columns() {
            body.column(column);
        }
        let nodes = vec![FieldNode::new(rows, 0); columns.columns().len()];
        let mut bytes = batch_message(rows, &nodes, &body.buffers, signed(body.bytes.len()));
        self.blocks.push(Block::new(
            signed(self.offset),
            // A message of a batch is some 100 bytes a field, of at most 4,096 fields.
            i32::try_from(bytes.len()).unwrap_or(i32::MAX),
            signed(body.bytes.len()),
        ));
        let body_at = (self.offset + bytes.len()) as u64;
        let in_file = |text: &Range<u64>| body_at + text.start..body_at + text.end;
        self.texts = body.texts.iter().map(in_file).collect();
        bytes.append(&mut body.bytes);
        self.offset += bytes.len();
        self.rows += columns.rows() as u64;
        Ok(bytes)
    }

    /// Where in the file the texts of the last batch are, by field: all rows' one after another. Empty ranges for the
    /// other types.
    #[must_use]
    pub fn text_places(&self) -> &[Range<u64>] {
        &self.texts
    }

    /// The end of the file.
    #[must_use]
    pub fn finish(self) -> Vec<u8> {
        file_end(&self.schema, &self.blocks)
    }
}

/// Buffers of one batch, one after the other.
#[derive(Default)]
struct Body {
    bytes: Vec<u8>,
    buffers: Vec<Buffer>,
    /// Where the texts of each column are.
    texts: Vec<Range<u64>>,
}

impl Body {
    fn column(&mut self, column: &Column) {
        // Validity: without nulls, a buffer of no bytes.
        self.buffers.push(Buffer::new(signed(self.bytes.len()), 0));
        match column {
            Column::Bool(values) => self.buffer(|bytes| {
                bytes.extend(values.chunks(8).map(|bits| {
                    bits.iter()
                        .rev()
                        .fold(0, |byte, bit| byte << 1 | u8::from(*bit))
                }));
            }),
            Column::Int64(values) => self.buffer(|bytes| {
                bytes.reserve(values.len() * 8);
                values
                    .iter()
                    .for_each(|value| bytes.extend_from_slice(&value.to_le_bytes()));
            }),
            Column::Float64(values) => self.buffer(|bytes| {
                bytes.reserve(values.len() * 8);
                let bits = values.iter().map(|value| value.to_bits());
                bits.for_each(|bits| bytes.extend_from_slice(&bits.to_le_bytes()));
            }),
            Column::Utf8(texts) => self.texts(texts),
        }
        let start = self.last_start();
        let end = if matches!(column, Column::Utf8(_)) {
            start + column.text_bytes()
        } else {
            start
        };
        self.texts.push(start..end);
    }

    /// Where the last buffer starts.
    fn last_start(&self) -> u64 {
        let last = self.buffers.last().map_or(0, Buffer::offset);
        u64::try_from(last).unwrap_or_default()
    }

    fn texts(&mut self, texts: &TextColumn) {
        self.buffer(|bytes| {
            bytes.reserve((texts.len() + 1) * 4);
            bytes.extend_from_slice(&0_i32.to_le_bytes());
            for end in texts.ends() {
                // A batch has 16 MiB of text, or one row whose text is at most 2^30 bytes.
                let end = i32::try_from(*end).unwrap_or(i32::MAX);
                bytes.extend_from_slice(&end.to_le_bytes());
            }
        });
        self.buffer(|bytes| bytes.extend_from_slice(texts.text().as_bytes()));
    }

    fn buffer(&mut self, fill: impl FnOnce(&mut Vec<u8>)) {
        let start = self.bytes.len();
        fill(&mut self.bytes);
        self.buffers
            .push(Buffer::new(signed(start), signed(self.bytes.len() - start)));
        self.bytes
            .resize(self.bytes.len().next_multiple_of(BODY_ALIGNMENT), 0);
    }
}

/// Lengths of what is in memory are below 2^63.
fn signed(len: usize) -> i64 {
    i64::try_from(len).unwrap_or(i64::MAX)
}
