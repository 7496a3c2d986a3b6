import { viewOf } from "../bytes.js";
import { BlockReader } from "../blocks.js";
import { CacheError } from "../errors.js";
import type { Field, Manifest } from "../manifest-members.js";
import type { ByteSource } from "../source/source.js";
import { decodeUtf8, isUtf8 } from "../utf8.js";
import { readFraming } from "./framing.js";
import type { Batch, BufferPlace, ColumnPlace } from "./layout.js";

/** A value as it stands in the file: `null`, a truth value, an `int64`, the 64 bits of a `float64` (unsigned), or text. */
export type Cell = null | boolean | bigint | string;

/** Rows of one column that lie in one batch. */
export interface ColumnPiece {
  readonly rows: number;
  /** One byte a row: 1 present, 0 null; `undefined` where none is null. */
  readonly present: Uint8Array | undefined;
  /** `bool`: one byte a row; `int64` and `float64`: eight bytes a row as in the file; text: none. */
  readonly values: Uint8Array;
  /** Text: where each row's bytes begin, and where the last one's end (A11 holds). */
  readonly offsets: Int32Array | undefined;
  /** Text: calls `use` with the bytes of each row that is not null, in order. They are not checked (A12). */
  eachText(use: (bytes: Uint8Array, row: number) => void): Promise<void>;
}

const MAX_TEXT = 2 ** 30;
// Text is read in groups of neighbours up to this many bytes; a longer value is a group of its own.
const GROUP = 1 << 20;
const PIECE = 65536;

/** `metadata.arrow`, after the checks of opening (A1 to A10). */
export class Metadata {
  /** Record batches in order. */
  readonly batches: readonly Batch[];
  readonly #fields: readonly Field[];
  readonly #reader: BlockReader;

  private constructor(reader: BlockReader, fields: readonly Field[], batches: readonly Batch[]) {
    this.#reader = reader;
    this.#fields = fields;
    this.batches = batches;
  }

  /** Reads both ends of the file and the header of each batch.
   *
   * @param reader - From {@link metadataReader}.
   * @throws CacheError
   */
  static async open(reader: BlockReader, manifest: Manifest): Promise<Metadata> {
    return new Metadata(reader, manifest.fields, await readFraming(reader, manifest));
  }

  /** One value (A1, A11, A12 where they concern it).
   *
   * @throws CacheError
   */
  async cell(row: number, field: number): Promise<Cell> {
    const batch = this.batches[this.batchOf(row)] as Batch;
    const place = batch.columns[field] as ColumnPlace;
    const { type } = this.#fields[field] as Field;
    const at = row - batch.start;
    const present = place.nullCount === 0 || (await this.#bit(place.validity, at));
    if (type === "utf8") {
      const text = place.text as BufferPlace;
      const offsets = viewOf(await this.#reader.read(place.values.offset + 4 * at, 8));
      const [a, b] = [offsets.getInt32(0, true), offsets.getInt32(4, true)];
      this.#checkOffsets(a, b, text, row, field);
      if (!present) return null;
      return decodeUtf8(await this.#reader.read(text.offset + a, b - a)) ?? this.#fail("A12", row, field, "the text is not UTF-8");
    }
    if (!present) return null;
    if (type === "bool") return this.#bit(place.values, at);
    const view = viewOf(await this.#reader.read(place.values.offset + 8 * at, 8));
    return type === "int64" ? view.getBigInt64(0, true) : view.getBigUint64(0, true);
  }

  /** Number of the batch that holds a row. */
  batchOf(row: number): number {
    let low = 0;
    let high = this.batches.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if ((this.batches[middle] as Batch).start <= row) low = middle;
      else high = middle - 1;
    }
    return low;
  }

  /** The rows `from .. to` of a column, cut where batches end. */
  async pieces(field: number, from: number, to: number): Promise<ColumnPiece[]> {
    const pieces: ColumnPiece[] = [];
    for (let number = this.batchOf(from); from < to; number++) {
      const batch = this.batches[number] as Batch;
      const end = Math.min(to, batch.start + batch.rows);
      pieces.push(await this.#piece(batch, field, from - batch.start, end - batch.start));
      from = end;
    }
    return pieces;
  }

  /** A13, A11 and A12 for every batch and column.
   *
   * @throws CacheError
   */
  async verify(): Promise<void> {
    for (const batch of this.batches) {
      for (let field = 0; field < this.#fields.length; field++) await this.#verifyColumn(batch, field);
    }
  }

  async #verifyColumn(batch: Batch, field: number): Promise<void> {
    const { nullCount } = batch.columns[field] as ColumnPlace;
    const text = (this.#fields[field] as Field).type === "utf8";
    if (nullCount === 0 && !text) return;
    let nulls = 0;
    for (let from = 0; from < batch.rows; from += PIECE) {
      const piece = await this.#piece(batch, field, from, Math.min(batch.rows, from + PIECE));
      for (const one of piece.present ?? []) if (one === 0) nulls++;
      await piece.eachText((bytes, row) => {
        if (!isUtf8(bytes)) this.#fail("A12", batch.start + from + row, field, "the text is not UTF-8");
      });
    }
    if (nulls !== nullCount) this.#fail("A13", batch.start, field, `null_count of the batch is ${nullCount}, its validity says ${nulls}`);
  }

  async #piece(batch: Batch, field: number, from: number, to: number): Promise<ColumnPiece> {
    const place = batch.columns[field] as ColumnPlace;
    const { type } = this.#fields[field] as Field;
    const rows = to - from;
    const present = place.nullCount === 0 ? undefined : await this.#bits(place.validity, from, to);
    let values: Uint8Array = new Uint8Array(0);
    let offsets: Int32Array | undefined;
    if (type === "utf8") offsets = await this.#offsets(batch, field, from, to);
    else if (type === "bool") values = await this.#bits(place.values, from, to);
    else values = await this.#reader.read(place.values.offset + 8 * from, 8 * rows);
    const eachText = async (use: (bytes: Uint8Array, row: number) => void): Promise<void> => {
      if (offsets !== undefined) await this.#eachText(place.text as BufferPlace, offsets, present, use);
    };
    return { rows, present, values, offsets, eachText };
  }

  async #eachText(
    text: BufferPlace, offsets: Int32Array, present: Uint8Array | undefined, use: (bytes: Uint8Array, row: number) => void,
  ): Promise<void> {
    const rows = offsets.length - 1;
    const shown = (row: number): boolean => present === undefined || present[row] === 1;
    for (let first = 0; first < rows; ) {
      if (!shown(first)) {
        first++;
        continue;
      }
      const base = offsets[first] as number;
      let end = first + 1;
      while (end < rows && shown(end) && (offsets[end + 1] as number) - base <= GROUP) end++;
      const bytes = await this.#reader.read(text.offset + base, (offsets[end] as number) - base);
      for (; first < end; first++) use(bytes.subarray((offsets[first] as number) - base, (offsets[first + 1] as number) - base), first);
    }
  }

  /** The offsets of rows `from .. to` and the end of the last, after A11. */
  async #offsets(batch: Batch, field: number, from: number, to: number): Promise<Int32Array> {
    const place = batch.columns[field] as ColumnPlace;
    const view = viewOf(await this.#reader.read(place.values.offset + 4 * from, 4 * (to - from + 1)));
    const offsets = new Int32Array(to - from + 1);
    for (let i = 0; i < offsets.length; i++) {
      offsets[i] = view.getInt32(4 * i, true);
      if (i > 0) this.#checkOffsets(offsets[i - 1] as number, offsets[i] as number, place.text as BufferPlace, batch.start + from + i - 1, field);
    }
    return offsets;
  }

  #checkOffsets(a: number, b: number, text: BufferPlace, row: number, field: number): void {
    if (a < 0 || b < a || b > text.length || b - a > MAX_TEXT) {
      this.#fail("A11", row, field, `the offsets ${a} and ${b} are not allowed in ${text.length} bytes of text`);
    }
  }

  async #bit(bits: BufferPlace, at: number): Promise<boolean> {
    const [byte] = await this.#reader.read(bits.offset + Math.floor(at / 8), 1);
    return (((byte as number) >> (at % 8)) & 1) === 1;
  }

  /** Bits `from .. to` as one byte each. */
  async #bits(bits: BufferPlace, from: number, to: number): Promise<Uint8Array> {
    const start = Math.floor(from / 8);
    const bytes = await this.#reader.read(bits.offset + start, Math.ceil(to / 8) - start);
    const out = new Uint8Array(to - from);
    for (let i = 0, at = from - 8 * start; i < out.length; i++, at++) out[i] = ((bytes[at >> 3] as number) >> (at & 7)) & 1;
    return out;
  }

  #fail(check: string, row: number, field: number, message: string): never {
    throw new CacheError("metadata_invalid", check, { file: "metadata.arrow", where: `row ${row}, field ${field}` }, message);
  }
}

/** A reader of `metadata.arrow` through its sums of blocks (A1).
 *
 * @param blocks - How many blocks of 64 KiB are kept.
 */
export function metadataReader(source: ByteSource, manifest: Manifest, sums: Uint32Array, blocks: number): BlockReader {
  const { file, size } = manifest.metadata;
  return new BlockReader(source, { file, offset: 0, length: size, sums, code: "metadata_damaged", check: "A1" }, blocks);
}
