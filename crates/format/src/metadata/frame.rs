//! Encapsulated messages and the footer of an Arrow IPC file, as flatbuffers.

use arrow_ipc::{
    Block, BoolBuilder, Buffer, Endianness, FieldBuilder, FieldNode, FloatingPointBuilder,
    FooterBuilder, IntBuilder, MessageBuilder, MessageHeader, MetadataVersion, Precision,
    RecordBatchBuilder, SchemaBuilder, Type, Utf8Builder, finish_footer_buffer,
    finish_message_buffer,
};
use flatbuffers::{FlatBufferBuilder, UnionWIPOffset, WIPOffset};

use crate::constants::ARROW_MAGIC;
use crate::schema::{Field, FieldType, Schema};

/// Bodies, and so messages, start at multiples of this.
pub(super) const BODY_ALIGNMENT: usize = 64;
/// What begins an encapsulated message, and with the length 0 ends the stream.
pub(super) const CONTINUATION: [u8; 4] = [0xFF; 4];
/// Bytes of continuation and length in front of a message.
pub(super) const MESSAGE_PREFIX: usize = 8;
/// The magic bytes and two zeros.
pub(super) const FILE_START: usize = 8;

/// The message that names the fields.
pub(super) fn schema_message(schema: &Schema) -> Vec<u8> {
    let mut builder = FlatBufferBuilder::new();
    let header = add_schema(&mut builder, schema).as_union_value();
    finish_message(builder, MessageHeader::Schema, header, 0)
}

/// The message in front of a batch's body.
pub(super) fn batch_message(
    rows: i64,
    nodes: &[FieldNode],
    buffers: &[Buffer],
    body: i64,
) -> Vec<u8> {
    let mut builder = FlatBufferBuilder::new();
    let nodes = builder.create_vector(nodes);
    let buffers = builder.create_vector(buffers);
    let mut batch = RecordBatchBuilder::new(&mut builder);
    batch.add_length(rows);
    batch.add_nodes(nodes);
    batch.add_buffers(buffers);
    let header = batch.finish().as_union_value();
    finish_message(builder, MessageHeader::RecordBatch, header, body)
}

/// Everything behind the last batch: end of stream, footer, its length, magic bytes.
pub(super) fn file_end(schema: &Schema, blocks: &[Block]) -> Vec<u8> {
    let mut builder = FlatBufferBuilder::new();
    let schema = add_schema(&mut builder, schema);
    let dictionaries = builder.create_vector::<Block>(&[]);
    let batches = builder.create_vector(blocks);
    let mut footer = FooterBuilder::new(&mut builder);
    footer.add_version(MetadataVersion::V5);
    footer.add_schema(schema);
    footer.add_dictionaries(dictionaries);
    footer.add_recordBatches(batches);
    let root = footer.finish();
    finish_footer_buffer(&mut builder, root);
    let footer = builder.finished_data();

    let mut bytes = Vec::with_capacity(footer.len() + 18);
    bytes.extend_from_slice(&CONTINUATION);
    bytes.extend_from_slice(&[0; 4]);
    bytes.extend_from_slice(footer);
    bytes.extend_from_slice(&length(footer.len()));
    bytes.extend_from_slice(&ARROW_MAGIC);
    bytes
}

fn finish_message(
    mut builder: FlatBufferBuilder<'_>,
    header_type: MessageHeader,
    header: WIPOffset<UnionWIPOffset>,
    body: i64,
) -> Vec<u8> {
    let mut message = MessageBuilder::new(&mut builder);
    message.add_version(MetadataVersion::V5);
    message.add_header_type(header_type);
    message.add_header(header);
    message.add_bodyLength(body);
    let root = message.finish();
    finish_message_buffer(&mut builder, root);
    let message = builder.finished_data();

    // Every message starts at a multiple of 64 (the first at 8), and what follows it must too.
    let start = if header_type == MessageHeader::Schema {
        FILE_START
    } else {
        0
    };
    let end = (start + MESSAGE_PREFIX + message.len()).next_multiple_of(BODY_ALIGNMENT);
    let padded = end - start - MESSAGE_PREFIX;
    let mut bytes = Vec::with_capacity(MESSAGE_PREFIX + padded);
    bytes.extend_from_slice(&CONTINUATION);
    bytes.extend_from_slice(&length(padded));
    bytes.extend_from_slice(message);
    bytes.resize(MESSAGE_PREFIX + padded, 0);
    bytes
}

/// A flatbuffer's length. The builder itself refuses to make one of 2 GiB.
fn length(len: usize) -> [u8; 4] {
    i32::try_from(len).unwrap_or(i32::MAX).to_le_bytes()
}

fn add_schema<'a>(
    builder: &mut FlatBufferBuilder<'a>,
    schema: &Schema,
) -> WIPOffset<arrow_ipc::Schema<'a>> {
    let fields: Vec<_> = schema
        .fields()
        .iter()
        .map(|field| add_field(builder, field))
        .collect();
    let fields = builder.create_vector(&fields);
    let mut schema = SchemaBuilder::new(builder);
    schema.add_endianness(Endianness::Little);
    schema.add_fields(fields);
    schema.finish()
}

fn add_field<'a>(
    builder: &mut FlatBufferBuilder<'a>,
    field: &Field,
) -> WIPOffset<arrow_ipc::Field<'a>> {
    let name = builder.create_string(&field.name);
    let children = builder.create_vector::<WIPOffset<arrow_ipc::Field<'_>>>(&[]);
    let (tag, field_type) = match field.field_type {
        FieldType::Bool => (
            Type::Bool,
            BoolBuilder::new(builder).finish().as_union_value(),
        ),
        FieldType::Int64 => {
            let mut int = IntBuilder::new(builder);
            int.add_bitWidth(64);
            int.add_is_signed(true);
            (Type::Int, int.finish().as_union_value())
        }
        FieldType::Float64 => {
            let mut float = FloatingPointBuilder::new(builder);
            float.add_precision(Precision::DOUBLE);
            (Type::FloatingPoint, float.finish().as_union_value())
        }
        FieldType::Utf8 => (
            Type::Utf8,
            Utf8Builder::new(builder).finish().as_union_value(),
        ),
    };
    let mut made = FieldBuilder::new(builder);
    made.add_name(name);
    made.add_nullable(field.nullable);
    made.add_type_type(tag);
    made.add_type_(field_type);
    made.add_children(children);
    made.finish()
}
