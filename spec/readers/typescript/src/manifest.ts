import { toHex } from "./bytes.js";
import { sha256 } from "./checksums/sha256.js";
import { CacheError, LimitError, type ErrorCode } from "./errors.js";
import { parseMembers, type Manifest } from "./manifest-members.js";
import type { ByteSource } from "./source/source.js";

export type { Codec, Field, FieldType, FileEntry, Manifest, ShardEntry } from "./manifest-members.js";

/** Name of the manifest's file. */
export const MANIFEST = "manifest.json";

// A JavaScript text holds about 2^29 characters.
const MAX_BYTES = 2 ** 28;
const TAIL = 78;
const PREFIX = '{"format":"dataset_rt.cache","version":';
const TAIL_FORM = /^,"sha256":"([0-9a-f]{64})"\}\n$/;

function fail(code: ErrorCode, check: string, where: string, message: string): never {
  throw new CacheError(code, check, { file: MANIFEST, where }, message);
}

/** Checks prefix, tail, digest and version of a manifest (M2 to M6).
 *
 * @throws CacheError
 */
export function checkManifestFrame(bytes: Uint8Array): void {
  const size = bytes.length;
  const tail = size < TAIL ? undefined : TAIL_FORM.exec(latin1(bytes, size - TAIL, size));
  if (!tail) fail("manifest_damaged", "M2", `bytes ${Math.max(0, size - TAIL)}..${size}`, 'the file doesn\'t end with ,"sha256":"..."}');
  const digest = toHex(sha256(bytes.subarray(0, size - TAIL)));
  if (digest !== tail[1]) fail("manifest_damaged", "M3", `bytes 0..${size - TAIL}`, `the digest is ${digest}, the tail says ${tail[1]}`);
  if (latin1(bytes, 0, PREFIX.length) !== PREFIX) fail("manifest_damaged", "M4", `bytes 0..${PREFIX.length}`, `the file doesn't begin with ${PREFIX}`);
  // The comma stands before the tail, whose own doesn't count.
  const after = latin1(bytes, PREFIX.length, Math.min(size - TAIL, PREFIX.length + 17));
  const version = /^(0|[1-9][0-9]*),/.exec(after)?.[1];
  if (version === undefined || !Number.isSafeInteger(Number(version))) {
    fail("manifest_invalid", "M5", "version", "the version is no integer of 0 .. 2^53 - 1 with a comma behind it");
  }
  if (version !== "1") fail("version_unsupported", "M6", "version", `version ${version} was found, this reader knows version 1`);
}

/** Parses and checks the bytes of a manifest (M2 to M15).
 *
 * @throws CacheError
 */
export function parseManifest(bytes: Uint8Array): Manifest {
  checkManifestFrame(bytes);
  return parseMembers(bytes);
}

/** Reads and checks the manifest of a cache (M1 to M15).
 *
 * @throws CacheError
 * @throws LimitError where the manifest is larger than 256 MiB.
 */
export async function readManifest(source: ByteSource): Promise<Manifest> {
  const size = await source.size(MANIFEST);
  if (size === undefined) throw new CacheError("file_missing", "M1", { file: MANIFEST }, `${source.location} has no regular file of this name`);
  if (size > MAX_BYTES) throw new LimitError(`${MANIFEST} has ${size} bytes; this reader holds at most ${MAX_BYTES}`);
  return parseManifest(await source.read(MANIFEST, 0, size));
}

function latin1(bytes: Uint8Array, from: number, to: number): string {
  return String.fromCharCode(...bytes.subarray(from, to));
}
