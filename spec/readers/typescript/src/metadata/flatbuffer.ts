import { viewOf } from "../bytes.js";

/** Bytes that are no sound flatbuffer. */
export class FlatError extends Error {
  override readonly name = "FlatError";
}

/** Reads a flatbuffer; every offset and length is compared with the buffer before it is used. */
export class FlatBuffer {
  readonly bytes: Uint8Array;
  readonly view: DataView;

  constructor(bytes: Uint8Array) {
    this.bytes = bytes;
    this.view = viewOf(bytes);
  }

  /** The root table. */
  root(): FlatTable {
    return new FlatTable(this, this.follow(0));
  }

  /** Throws where `length` bytes at `at` aren't all in the buffer. */
  within(at: number, length: number, what: string): void {
    if (at < 0 || at + length > this.bytes.length) throw new FlatError(`${what} at ${at} with ${length} bytes is outside of ${this.bytes.length} bytes`);
  }

  /** Where the unsigned offset at `at` leads. */
  follow(at: number): number {
    this.within(at, 4, "an offset");
    const offset = this.view.getUint32(at, true);
    // An offset of 0 leads to itself: no writer makes one.
    if (offset === 0) throw new FlatError(`the offset at ${at} is 0`);
    this.within(at + offset, 4, "what an offset leads to");
    return at + offset;
  }
}

/** A vector: where its items begin and how many there are. */
export interface FlatVector {
  readonly at: number;
  readonly count: number;
}

/** A table of a flatbuffer. Slots are numbered as in the schema; a slot that is absent has its default. */
export class FlatTable {
  readonly #buffer: FlatBuffer;
  readonly #at: number;
  readonly #vtable: number;
  readonly #slots: number;
  readonly #size: number;

  constructor(buffer: FlatBuffer, at: number) {
    this.#buffer = buffer;
    this.#at = at;
    buffer.within(at, 4, "a table");
    this.#vtable = at - buffer.view.getInt32(at, true);
    buffer.within(this.#vtable, 4, "a vtable");
    const vtableSize = buffer.view.getUint16(this.#vtable, true);
    this.#size = buffer.view.getUint16(this.#vtable + 2, true);
    if (vtableSize < 4 || vtableSize % 2 !== 0 || this.#size < 4) throw new FlatError(`the vtable at ${this.#vtable} has impossible sizes`);
    buffer.within(this.#vtable, vtableSize, "a vtable");
    buffer.within(at, this.#size, "a table");
    this.#slots = (vtableSize - 4) / 2;
  }

  /** Where the value of a slot stands; `undefined` where the slot is absent. */
  #slot(slot: number, width: number): number | undefined {
    if (slot >= this.#slots) return undefined;
    const offset = this.#buffer.view.getUint16(this.#vtable + 4 + 2 * slot, true);
    if (offset === 0) return undefined;
    if (offset < 4 || offset + width > this.#size) throw new FlatError(`slot ${slot} of the table at ${this.#at} is outside of it`);
    return this.#at + offset;
  }

  /** Whether a slot with an offset is there. */
  has(slot: number): boolean {
    return this.#slot(slot, 4) !== undefined;
  }

  /** An unsigned byte. */
  u8(slot: number): number {
    const at = this.#slot(slot, 1);
    return at === undefined ? 0 : this.#buffer.view.getUint8(at);
  }

  /** A signed 16-bit number. */
  i16(slot: number): number {
    const at = this.#slot(slot, 2);
    return at === undefined ? 0 : this.#buffer.view.getInt16(at, true);
  }

  /** A signed 32-bit number. */
  i32(slot: number): number {
    const at = this.#slot(slot, 4);
    return at === undefined ? 0 : this.#buffer.view.getInt32(at, true);
  }

  /** A signed 64-bit number. */
  i64(slot: number): bigint {
    const at = this.#slot(slot, 8);
    return at === undefined ? 0n : this.#buffer.view.getBigInt64(at, true);
  }

  /** A table; `undefined` where absent. */
  table(slot: number): FlatTable | undefined {
    const at = this.#slot(slot, 4);
    return at === undefined ? undefined : new FlatTable(this.#buffer, this.#buffer.follow(at));
  }

  /** A vector with items of `width` bytes, all of them in the buffer; an absent one is empty. */
  vector(slot: number, width: number): FlatVector {
    const at = this.#slot(slot, 4);
    if (at === undefined) return { at: 0, count: 0 };
    const start = this.#buffer.follow(at);
    const count = this.#buffer.view.getUint32(start, true);
    this.#buffer.within(start + 4, count * width, "a vector");
    return { at: start + 4, count };
  }

  /** The bytes of a text; empty where absent. */
  text(slot: number): Uint8Array {
    const { at, count } = this.vector(slot, 1);
    return this.#buffer.bytes.subarray(at, at + count);
  }
}
