import { LimitError } from "./errors.js";

/** `x` rounded up to a multiple of `a`; both below 2^53, and so must be the result. */
export function up(x: number, a: number): number {
  return Math.ceil(x / a) * a;
}

/** New zeroed bytes. The caller has checked `length` against the size of a file.
 *
 * @throws LimitError where the engine can't hold as many.
 */
export function allocate(length: number): Uint8Array<ArrayBuffer> {
  try {
    return new Uint8Array(length);
  } catch (cause) {
    throw new LimitError(`${length} bytes don't fit in the memory of this JavaScript engine`, { cause });
  }
}

/** A view for reading numbers out of `bytes`. */
export function viewOf(bytes: Uint8Array): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

/** Lower-case hexadecimal digits, two a byte. */
export function toHex(bytes: Uint8Array): string {
  let text = "";
  for (const byte of bytes) text += byte.toString(16).padStart(2, "0");
  return text;
}

/** The bytes behind an even number of hexadecimal digits. */
export function fromHex(text: string): Uint8Array<ArrayBuffer> {
  if (text.length % 2 !== 0 || !/^[0-9a-fA-F]*$/.test(text)) throw new RangeError("not an even number of hexadecimal digits");
  const bytes = new Uint8Array(text.length / 2);
  for (let i = 0; i < bytes.length; i++) bytes[i] = Number.parseInt(text.slice(2 * i, 2 * i + 2), 16);
  return bytes;
}

/** A CRC as the manifest writes it: eight digits, most significant first. */
export function crcToHex(crc: number): string {
  return crc.toString(16).padStart(8, "0");
}

/** Whether two byte strings are equal. */
export function equalBytes(a: Uint8Array, b: Uint8Array): boolean {
  if (a.length !== b.length) return false;
  for (let i = 0; i < a.length; i++) if (a[i] !== b[i]) return false;
  return true;
}

/** Index of the first byte that is not zero, or -1. */
export function firstNonZero(bytes: Uint8Array): number {
  for (let i = 0; i < bytes.length; i++) if (bytes[i] !== 0) return i;
  return -1;
}

const encoder = new TextEncoder();

/** The UTF-8 form of a text. */
export function utf8(text: string): Uint8Array<ArrayBuffer> {
  return encoder.encode(text);
}

/** 8 little-endian bytes of an unsigned integer below 2^64. */
export function u64le(value: number | bigint): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(8);
  viewOf(bytes).setBigUint64(0, BigInt(value), true);
  return bytes;
}

/** 4 little-endian bytes of an unsigned integer below 2^32. */
export function u32le(value: number): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(4);
  viewOf(bytes).setUint32(0, value, true);
  return bytes;
}
