import {
  Bool, Field as ArrowField, Float64, Int64, makeData, RecordBatch, Schema, Struct, Table, Utf8, type Data, type DataType,
} from "apache-arrow";

import type { Cache } from "./cache.js";
import { CacheError, LimitError } from "./errors.js";
import type { Field } from "./manifest-members.js";
import type { ColumnPiece } from "./metadata/metadata.js";
import { isUtf8 } from "./utf8.js";

/** The metadata rows `from .. to` as an Arrow table, one record batch for each of the file.
 *
 * Every offset and text was checked before Arrow sees it; nulls hold zero, false or the empty text.
 *
 * @param from - 0 where absent.
 * @param to - The number of samples where absent.
 * @throws CacheError
 * @throws LimitError where the text of a column in one batch is 2^31 bytes or more.
 */
export async function toArrowTable(cache: Cache, from = 0, to = cache.samples): Promise<Table> {
  if (!Number.isSafeInteger(from) || !Number.isSafeInteger(to) || from < 0 || from > to || to > cache.samples) {
    throw new RangeError(`rows ${from}..${to} of ${cache.samples}`);
  }
  const fields = cache.fields;
  const schema = new Schema(fields.map((field) => new ArrowField(field.name, typeOf(field), field.nullable)));
  const type = new Struct(schema.fields);
  const batches: RecordBatch[] = [];
  for (const { start, rows } of cache.batches) {
    const first = Math.max(from, start);
    const end = Math.min(to, start + rows);
    if (first >= end) continue;
    const children: Data[] = [];
    for (const [i, field] of fields.entries()) {
      for (const piece of await cache.columnPieces(i, first, end)) children.push(await columnData(piece, field, i, first));
    }
    batches.push(new RecordBatch(schema, makeData({ type, length: end - first, nullCount: 0, children })));
  }
  return new Table(schema, batches);
}

function typeOf(field: Field): DataType {
  return { bool: () => new Bool(), int64: () => new Int64(), float64: () => new Float64(), utf8: () => new Utf8() }[field.type]();
}

async function columnData(piece: ColumnPiece, field: Field, number: number, start: number): Promise<Data> {
  const { rows: length, present, values } = piece;
  const nullCount = present === undefined ? 0 : present.reduce((nulls, one) => nulls + 1 - one, 0);
  const nullBitmap = present === undefined || nullCount === 0 ? null : packBits(present);
  switch (field.type) {
    case "bool":
      return makeData({ type: new Bool(), length, nullCount, nullBitmap, data: packBits(values) });
    case "int64":
      return makeData({ type: new Int64(), length, nullCount, nullBitmap, data: new BigInt64Array(aligned(values)) });
    case "float64":
      return makeData({ type: new Float64(), length, nullCount, nullBitmap, data: new Float64Array(aligned(values)) });
    case "utf8": {
      const { valueOffsets, data } = await copyText(piece, number, start);
      return makeData({ type: new Utf8(), length, nullCount, nullBitmap, valueOffsets, data });
    }
  }
}

async function copyText(piece: ColumnPiece, field: number, start: number): Promise<{ valueOffsets: Int32Array; data: Uint8Array }> {
  const offsets = piece.offsets as Int32Array;
  const data = new Uint8Array((offsets.at(-1) as number) - (offsets[0] as number));
  const valueOffsets = new Int32Array(piece.rows + 1);
  let at = 0;
  let next = 0;
  await piece.eachText((bytes, row) => {
    if (!isUtf8(bytes)) throw new CacheError("metadata_invalid", "A12", { file: "metadata.arrow", where: `row ${start + row}, field ${field}` }, "the text is not UTF-8");
    while (next <= row) valueOffsets[next++] = at;
    data.set(bytes, at);
    at += bytes.length;
    if (at >= 2 ** 31) throw new LimitError("the text of one batch is too long for an Arrow column");
  });
  while (next <= piece.rows) valueOffsets[next++] = at;
  return { valueOffsets, data };
}

function packBits(bytes: Uint8Array): Uint8Array {
  const bits = new Uint8Array(Math.ceil(bytes.length / 64) * 8);
  bytes.forEach((one, i) => {
    if (one === 1) bits[i >> 3] = (bits[i >> 3] as number) | (1 << (i & 7));
  });
  return bits;
}

/** A copy whose first byte is where a number may begin. */
function aligned(bytes: Uint8Array): ArrayBuffer {
  return bytes.slice().buffer as ArrayBuffer;
}
