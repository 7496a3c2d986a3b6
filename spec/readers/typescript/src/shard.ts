import { toHex, up, viewOf } from "./bytes.js";
import { crc32c } from "./checksums/crc32c.js";
import { CacheError, type ErrorCode } from "./errors.js";
import type { Codec, ShardEntry } from "./manifest-members.js";
import type { ByteSource } from "./source/source.js";

const MAGIC = "89445254530d0a1a";
const END_MAGIC = "1a0a0d5354524489";

/** Bytes of a shard's header. */
export const HEADER = 64;
/** Bytes of a shard's trailer. */
export const TRAILER = 64;
/** The longest payload that may be stored compressed. */
export const MAX_COMPRESSED = 0x7e000000;

/** Length of a shard's footer with its padding (section 5.3). */
export function footerLength(count: number, codec: Codec): number {
  return up(count * (codec === "none" ? 8 : 12), 8);
}

/** The byte of a codec in binary files. */
export function codecByte(codec: Codec): number {
  return codec === "none" ? 0 : 1;
}

/** What a shard's header says (section 5.1). */
export interface ShardHeader {
  readonly version: number;
  readonly codec: number;
  readonly align: number;
  readonly flags: number;
  readonly part: bigint;
  readonly first: bigint;
  readonly ordinal: number;
}

/** What a shard's trailer says (section 5.4). */
export interface ShardTrailer {
  readonly count: bigint;
  /** F: where the footer begins. */
  readonly footer: bigint;
  readonly size: bigint;
  /** 32 digits. */
  readonly id: string;
  readonly footerCrc: number;
  readonly flags: number;
  readonly version: number;
}

/** Lengths and CRC of one record. */
export interface RecordInfo {
  readonly storedLength: number;
  readonly rawLength: number;
  /** CRC of the payload. */
  readonly crc: number;
}

/** Reads the fields of a header, 64 bytes; `undefined` where magic or CRC are wrong. */
export function parseShardHeader(bytes: Uint8Array): ShardHeader | undefined {
  const view = viewOf(bytes);
  if (toHex(bytes.subarray(0, 8)) !== MAGIC || crc32c(bytes.subarray(0, 60)) !== view.getUint32(60, true)) return undefined;
  return {
    version: view.getUint16(8, true),
    codec: view.getUint8(10),
    align: view.getUint8(11),
    flags: view.getUint32(12, true),
    part: view.getBigUint64(16, true),
    first: view.getBigUint64(24, true),
    ordinal: view.getUint32(32, true),
  };
}

/** Whether the magic of a trailer, 64 bytes, is right. */
export function hasTrailerMagic(bytes: Uint8Array): boolean {
  return toHex(bytes.subarray(56, 64)) === END_MAGIC;
}

/** Reads the fields of a trailer, 64 bytes; `undefined` where magic or CRC are wrong. */
export function parseShardTrailer(bytes: Uint8Array): ShardTrailer | undefined {
  const view = viewOf(bytes);
  if (!hasTrailerMagic(bytes) || crc32c(bytes.subarray(0, 52)) !== view.getUint32(52, true)) return undefined;
  return {
    count: view.getBigUint64(0, true),
    footer: view.getBigUint64(8, true),
    size: view.getBigUint64(16, true),
    id: toHex(bytes.subarray(24, 40)),
    footerCrc: view.getUint32(40, true),
    flags: view.getUint32(44, true),
    version: view.getUint32(48, true),
  };
}

/** Why lengths break condition E4, or `undefined` where they don't. */
export function lengthsProblem(storedLength: number, rawLength: number): string | undefined {
  if (storedLength > rawLength) return `stored_len ${storedLength} is more than raw_len ${rawLength}`;
  if (storedLength < rawLength && rawLength > 255 * storedLength) return `raw_len ${rawLength} is more than 255 * stored_len ${storedLength}`;
  if (storedLength < rawLength && rawLength > MAX_COMPRESSED) return `raw_len ${rawLength} is too long for a compressed payload`;
  return undefined;
}

/** F1 and F2 for one file.
 *
 * @throws CacheError
 */
export async function checkFile(source: ByteSource, file: { readonly file: string; readonly size: number }): Promise<void> {
  const size = await source.size(file.file);
  if (size === undefined) throw new CacheError("file_missing", "F1", file, `${source.location} has no regular file of this name`);
  if (size !== file.size) throw new CacheError("file_size", "F2", file, `it has ${size} bytes, the manifest says ${file.size}`);
}

/** S1 to S5: what is checked before anything of a shard is used. The file's size was compared with the manifest's (F2).
 *
 * @returns The trailer.
 * @throws CacheError
 */
export async function checkTrailer(source: ByteSource, entry: ShardEntry, codec: Codec): Promise<ShardTrailer> {
  const fail = (code: ErrorCode, check: string, message: string): never => {
    throw new CacheError(code, check, { file: entry.file, where: "trailer" }, message);
  };
  if (entry.size < 136) fail("shard_damaged", "S1", `the file has ${entry.size} bytes, a shard at least 136`);
  const bytes = await source.read(entry.file, entry.size - TRAILER, TRAILER);
  if (!hasTrailerMagic(bytes)) fail("shard_damaged", "S1", "the magic is wrong");
  const trailer = parseShardTrailer(bytes) ?? fail("shard_damaged", "S2", "the crc is wrong");
  if (trailer.id !== entry.id) fail("shard_mismatch", "S3", `the id is ${trailer.id}, the manifest means ${entry.id}`);
  if (trailer.version !== 1) fail("version_unsupported", "S4", `version ${trailer.version}`);
  if ((trailer.flags & ~1) !== 0) fail("shard_invalid", "S5", `reserved bits of the flags 0x${trailer.flags.toString(16)} are set`);
  if (trailer.count !== BigInt(entry.samples)) fail("shard_invalid", "S5", `count is ${trailer.count}, the manifest says ${entry.samples}`);
  if (trailer.size !== BigInt(entry.size)) fail("shard_invalid", "S5", `size is ${trailer.size}, the file has ${entry.size} bytes`);
  const footer = entry.size - TRAILER - footerLength(entry.samples, codec);
  if (trailer.footer !== BigInt(footer) || footer % 64 !== 0) {
    fail("shard_invalid", "S5", `F is ${trailer.footer}; it must be ${footer} and a multiple of 64`);
  }
  return trailer;
}
