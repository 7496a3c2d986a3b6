//! The identity of metadata that is in memory or mapped as a file.

use std::ops::Range;

use super::StreamedHasher;
use crate::column::Value;
use crate::error::FormatError;
use crate::metadata::MetadataLayout;
use crate::schema::Schema;

/// The identity of the rows of `metadata`, the bytes of a whole file. `record` gives raw length and CRC of a row's
/// payload; where it gives none the samples end. Memory does not grow with the texts.
///
/// # Errors
/// What `record` returns, and code `metadata_invalid` for values that break a rule.
pub fn identity_of_metadata(
    schema: &Schema,
    layout: &MetadataLayout,
    metadata: &[u8],
    mut record: impl FnMut(u64) -> Result<Option<(u32, u32)>, FormatError>,
) -> Result<[u8; 32], FormatError> {
    let mut hasher = StreamedHasher::new(schema);
    let mut values = Vec::with_capacity(schema.len());
    let mut block = 0..0;
    'rows: for (position, batch) in layout.batches().iter().enumerate() {
        let columns = (0..schema.len())
            .map(|field| layout.column(metadata, position, field))
            .collect::<Result<Vec<_>, _>>()?;
        for row in 0..batch.rows {
            let Some((raw_len, crc)) = record(block.end)? else {
                break 'rows;
            };
            values.clear();
            for column in &columns {
                values.push(column.value(row)?);
            }
            hasher.push_row(raw_len, crc, values.iter().copied())?;
            block.end += 1;
            if hasher.room() == 0 {
                close(&mut hasher, layout, metadata, &block)?;
                block.start = block.end;
            }
        }
    }
    close(&mut hasher, layout, metadata, &block)?;
    Ok(hasher.finish())
}

/// Ends the block that holds `rows`.
fn close(
    hasher: &mut StreamedHasher,
    layout: &MetadataLayout,
    metadata: &[u8],
    rows: &Range<u64>,
) -> Result<(), FormatError> {
    hasher.close_block(|field, take| {
        let mut row = rows.start;
        while row < rows.end
            && let Some((position, start)) = layout.locate(row)
        {
            let column = layout.column(metadata, position, field)?;
            let end = column.rows().min(start + (rows.end - row));
            for at in start..end {
                if let Value::Utf8(text) = column.value(at)? {
                    take(text.as_bytes());
                }
            }
            row += end - start;
        }
        Ok(())
    })
}
