import { toHex, viewOf } from "../bytes.js";
import type { BlockReader } from "../blocks.js";
import { CacheError } from "../errors.js";
import type { Field, Manifest } from "../manifest-members.js";
import { FlatBuffer, FlatError, type FlatTable } from "./flatbuffer.js";
import { buffersOf, valueBytes, type Batch, type BufferPlace, type ColumnPlace } from "./layout.js";
import { schemaProblem } from "./schema.js";

const FILE = "metadata.arrow";
const MAGIC = "4152524f5731";
const START = `${MAGIC}0000`;
const V5 = 4;
// Batch headers are read this many at once: over a network each is a request.
const AHEAD = 8;

interface BlockPlace {
  readonly offset: number;
  readonly metaLength: number;
  readonly bodyLength: number;
}

function fail(check: string, where: string, message: string): never {
  throw new CacheError("metadata_invalid", check, { file: FILE, where }, message);
}

/** A2 to A10: finds the batches and columns of `metadata.arrow`.
 *
 * @throws CacheError
 */
export async function readFraming(reader: BlockReader, manifest: Manifest): Promise<Batch[]> {
  const { footerAt, footer } = await readFooter(reader);
  const blocks = sound("A3", "footer", () => {
    const buffer = new FlatBuffer(footer);
    const root = buffer.root();
    if (root.i16(0) !== V5) fail("A3", "footer", `version ${root.i16(0)} is not V5`);
    const problem = schemaProblem(buffer, root, manifest.fields);
    if (problem !== undefined) fail("A4", "footer", problem);
    return readBlocks(buffer, root, footerAt, manifest.samples);
  });

  const batches: Batch[] = [];
  let start = 0;
  for (let at = 0; at < blocks.length; at += AHEAD) {
    const some = await Promise.all(
      blocks.slice(at, at + AHEAD).map((block, i) => readBatch(reader, block, at + i, manifest)),
    );
    for (const batch of some) {
      batches.push({ ...batch, start });
      // Both are at most 2^53 - 1, and the sum is compared before the next is added.
      start += batch.rows;
      if (start > manifest.samples) fail("A8", `batch ${batches.length - 1}`, `the batches have more than ${manifest.samples} rows`);
    }
  }
  if (start !== manifest.samples) fail("A8", "footer", `the batches have ${start} rows, the cache ${manifest.samples} samples`);
  return batches;
}

/** A2. */
async function readFooter(reader: BlockReader): Promise<{ footerAt: number; footer: Uint8Array }> {
  const size = reader.length;
  if (size < 26) fail("A2", "the file", `it has ${size} bytes, an Arrow file at least 26`);
  const [head, end] = await Promise.all([reader.read(0, 8), reader.read(size - 10, 10)]);
  if (toHex(head) !== START || toHex(end.subarray(4)) !== MAGIC) fail("A2", "the file", 'it doesn\'t begin and end with "ARROW1"');
  const length = viewOf(end).getInt32(0, true);
  if (length < 8 || length > size - 10 - 8) fail("A2", "footer", `a length of ${length} doesn't fit between byte 8 and ${size - 10}`);
  return { footerAt: size - 10 - length, footer: await reader.read(size - 10 - length, length) };
}

/** A5. */
function readBlocks(buffer: FlatBuffer, root: FlatTable, footerAt: number, samples: number): BlockPlace[] {
  const list = root.vector(3, 24);
  if (list.count > samples) fail("A8", "footer", `${list.count} batches for ${samples} samples; each has at least one row`);
  const blocks: BlockPlace[] = [];
  let before = 8n;
  for (let i = 0; i < list.count; i++) {
    const at = list.at + 24 * i;
    const offset = buffer.view.getBigInt64(at, true);
    const metaLength = buffer.view.getInt32(at + 8, true);
    const bodyLength = buffer.view.getBigInt64(at + 16, true);
    const end = offset + BigInt(metaLength) + bodyLength;
    if (offset < 8n || offset % 8n !== 0n || metaLength < 16 || metaLength % 8 !== 0 || bodyLength < 0n || end > BigInt(footerAt)) {
      fail("A5", `block ${i}`, `offset ${offset}, metaDataLength ${metaLength}, bodyLength ${bodyLength} are not allowed or lead beyond ${footerAt}`);
    }
    // Blocks that lie in one another could make a small file cost a large one's time.
    if (offset < before) fail("A5", `block ${i}`, `offset ${offset} is in front of ${before}, where the block before ends`);
    before = end;
    blocks.push({ offset: Number(offset), metaLength, bodyLength: Number(bodyLength) });
  }
  return blocks;
}


/** A6, A7, A9, A10 for one batch; its `start` is not known yet. */
async function readBatch(reader: BlockReader, block: BlockPlace, number: number, manifest: Manifest): Promise<Batch> {
  const where = `batch ${number}`;
  const bytes = await reader.read(block.offset, block.metaLength);
  const view = viewOf(bytes);
  if (view.getUint32(0, true) !== 0xffffffff || view.getInt32(4, true) !== block.metaLength - 8) {
    fail("A6", where, `the message at ${block.offset} doesn't begin with FF FF FF FF and the length ${block.metaLength - 8}`);
  }
  return sound("A6", where, () => {
    const buffer = new FlatBuffer(bytes.subarray(8));
    const message = buffer.root();
    if (message.i16(0) !== V5) fail("A6", where, `version ${message.i16(0)} is not V5`);
    const batch = message.u8(1) === 3 ? message.table(2) : undefined;
    if (batch === undefined) fail("A6", where, `the header (code ${message.u8(1)}) is no RecordBatch`);
    if (message.i64(3) !== BigInt(block.bodyLength)) fail("A6", where, `bodyLength is ${message.i64(3)}, the footer says ${block.bodyLength}`);

    if (batch.has(3)) fail("A7", where, "it is compressed");
    if (batch.vector(4, 8).count !== 0) fail("A7", where, "it has variadic buffer counts");
    const length = batch.i64(0);
    if (length < 1n) fail("A7", where, `it has ${length} rows`);
    if (length > BigInt(manifest.samples)) fail("A8", where, `it has ${length} rows, the cache ${manifest.samples} samples`);
    const rows = Number(length);
    const nodes = batch.vector(1, 16);
    const buffers = batch.vector(2, 16);
    if (nodes.count !== manifest.fields.length) fail("A7", where, `${nodes.count} nodes for ${manifest.fields.length} fields`);
    const needed = manifest.fields.reduce((sum, field) => sum + buffersOf(field), 0);
    if (buffers.count !== needed) fail("A7", where, `${buffers.count} buffers, the fields have ${needed}`);
    for (let i = 0; i < nodes.count; i++) {
      const found = buffer.view.getBigInt64(nodes.at + 16 * i, true);
      if (found !== length) fail("A7", `${where}, field ${i}`, `its node has ${found} rows, the batch ${rows}`);
    }
    const places = readBuffers(buffer, buffers.at, buffers.count, block, where);
    const columns: ColumnPlace[] = [];
    let next = 0;
    for (const [i, field] of manifest.fields.entries()) {
      const nullCount = buffer.view.getBigInt64(nodes.at + 16 * i + 8, true);
      const own = places.slice(next, (next += buffersOf(field)));
      columns.push(column(field, own, nullCount, rows, `${where}, field ${i}`));
    }
    return { start: 0, rows, columns };
  });
}

/** A9. */
function readBuffers(buffer: FlatBuffer, at: number, count: number, block: BlockPlace, where: string): BufferPlace[] {
  const body = block.offset + block.metaLength;
  const places: BufferPlace[] = [];
  let before = 0n;
  for (let i = 0; i < count; i++, at += 16) {
    const offset = buffer.view.getBigInt64(at, true);
    const length = buffer.view.getBigInt64(at + 8, true);
    if (offset < 0n || length < 0n || offset % 8n !== 0n || offset + length > BigInt(block.bodyLength)) {
      fail("A9", `${where}, buffer ${i}`, `offset ${offset} and length ${length} are not allowed in a body of ${block.bodyLength} bytes`);
    }
    if (length !== 0n) {
      if (offset < before) fail("A9", `${where}, buffer ${i}`, `offset ${offset} is in front of ${before}, where the buffer before ends`);
      before = offset + length;
    }
    places.push({ offset: body + Number(offset), length: Number(length) });
  }
  return places;
}

/** A10. */
function column(field: Field, places: readonly BufferPlace[], nullCount: bigint, rows: number, where: string): ColumnPlace {
  const [validity, values, text] = places as [BufferPlace, BufferPlace, BufferPlace | undefined];
  if (nullCount < 0n || nullCount > BigInt(rows) || (nullCount !== 0n && !field.nullable)) fail("A10", where, `null_count ${nullCount} in ${rows} rows is not allowed`);
  if (values.length < valueBytes(field, rows)) fail("A10", where, `${values.length} bytes of values or offsets, ${rows} rows need ${valueBytes(field, rows)}`);
  if (nullCount !== 0n && validity.length < Math.ceil(rows / 8)) fail("A10", where, `${validity.length} bytes of validity for ${rows} rows`);
  return { nullCount: Number(nullCount), validity, values, text };
}

function sound<T>(check: string, where: string, read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (error instanceof FlatError) fail(check, where, `no sound flatbuffer: ${error.message}`);
    throw error;
  }
}
