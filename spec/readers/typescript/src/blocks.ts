import { allocate } from "./bytes.js";
import { crc32c } from "./checksums/crc32c.js";
import { CacheError } from "./errors.js";
import type { ByteSource } from "./source/source.js";

/** Bytes a sum of section 17, 18 or 32 stands for. */
export const BLOCK = 65536;

/** A byte range of a file that has a CRC for each of its blocks. */
export interface BlockRange {
  readonly file: string;
  /** Where the range begins in the file. */
  readonly offset: number;
  /** Bytes of the range; it lies in the file. */
  readonly length: number;
  /** One CRC for each block of {@link BLOCK} bytes. */
  readonly sums: Uint32Array;
  /** What the error says where a CRC is wrong. */
  readonly code: "index_damaged" | "metadata_damaged";
  readonly check: "I14" | "A1";
}

/** Reads from such a range; no byte is delivered before the CRC of its block was compared. Keeps the blocks used last. */
export class BlockReader {
  readonly length: number;
  readonly #source: ByteSource;
  readonly #range: BlockRange;
  readonly #capacity: number;
  // In order of last use.
  readonly #blocks = new Map<number, Promise<Uint8Array>>();

  /**
   * @param capacity - How many blocks are kept, at least 1.
   */
  constructor(source: ByteSource, range: BlockRange, capacity: number) {
    this.length = range.length;
    this.#source = source;
    this.#range = range;
    this.#capacity = Math.max(1, capacity);
  }

  /** The bytes `offset .. offset + length` of the range; the caller doesn't write into them.
   *
   * @throws CacheError where a block has another CRC.
   */
  async read(offset: number, length: number): Promise<Uint8Array> {
    if (offset < 0 || length < 0 || offset + length > this.length) throw new RangeError(`${offset} + ${length} is outside of ${this.length} bytes`);
    if (length === 0) return new Uint8Array(0);
    const first = Math.floor(offset / BLOCK);
    const last = Math.floor((offset + length - 1) / BLOCK);
    if (first === last) return (await this.#block(first)).subarray(offset - first * BLOCK, offset - first * BLOCK + length);
    if (last - first >= this.#capacity || last - first >= 4) return this.#readThrough(first, last, offset, length);
    const blocks: Promise<Uint8Array>[] = [];
    for (let block = first; block <= last; block++) blocks.push(this.#block(block));
    const bytes = allocate(length);
    (await Promise.all(blocks)).forEach((block, i) => {
      const start = (first + i) * BLOCK;
      const from = Math.max(offset, start);
      bytes.set(block.subarray(from - start, Math.min(offset + length - start, block.length)), from - offset);
    });
    return bytes;
  }

  /** Compares the CRC of every block, in order. */
  async verify(): Promise<void> {
    for (let at = 0; at < this.length; at += 16 * BLOCK) await this.#readThrough(at / BLOCK, Math.ceil(Math.min(at + 16 * BLOCK, this.length) / BLOCK) - 1, at, 1);
  }

  #block(block: number): Promise<Uint8Array> {
    let bytes = this.#blocks.get(block);
    if (bytes === undefined) {
      bytes = this.#load(block, block);
      // What failed is tried again by the next use: the cause may have been the way to the file.
      bytes.catch(() => this.#blocks.delete(block));
    } else {
      this.#blocks.delete(block);
    }
    this.#blocks.set(block, bytes);
    for (const old of this.#blocks.keys()) {
      if (this.#blocks.size <= this.#capacity) break;
      this.#blocks.delete(old);
    }
    return bytes;
  }

  /** Reads many blocks by one request, past those that are kept. */
  async #readThrough(first: number, last: number, offset: number, length: number): Promise<Uint8Array> {
    const bytes = await this.#load(first, last);
    return bytes.subarray(offset - first * BLOCK, offset - first * BLOCK + length);
  }

  async #load(first: number, last: number): Promise<Uint8Array> {
    const { file, offset, sums, code, check } = this.#range;
    const start = first * BLOCK;
    const bytes = await this.#source.read(file, offset + start, Math.min((last + 1) * BLOCK, this.length) - start);
    for (let block = first; block <= last; block++) {
      const at = block * BLOCK - start;
      const crc = crc32c(bytes.subarray(at, at + BLOCK));
      if (crc !== sums[block]) {
        const from = offset + block * BLOCK;
        throw new CacheError(code, check, { file, where: `bytes ${from}..${Math.min(from + BLOCK, offset + this.length)}` }, "the block has another CRC");
      }
    }
    return bytes;
  }
}

/** The CRCs of the blocks of `bytes`, as sections 17, 18 and 32 hold them. */
export function blockSums(bytes: Uint8Array): Uint32Array {
  const sums = new Uint32Array(Math.ceil(bytes.length / BLOCK));
  for (let i = 0; i < sums.length; i++) sums[i] = crc32c(bytes.subarray(i * BLOCK, (i + 1) * BLOCK));
  return sums;
}

/** Little-endian u32s of a section of sums. */
export function sumsFrom(bytes: Uint8Array): Uint32Array {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const sums = new Uint32Array(bytes.length / 4);
  for (let i = 0; i < sums.length; i++) sums[i] = view.getUint32(4 * i, true);
  return sums;
}
