/** The closed list of error codes of the format (section 12 of its text). */
export type ErrorCode =
  | "manifest_damaged"
  | "version_unsupported"
  | "feature_unsupported"
  | "manifest_invalid"
  | "name_invalid"
  | "file_missing"
  | "file_size"
  | "index_damaged"
  | "index_invalid"
  | "entry_invalid"
  | "metadata_damaged"
  | "metadata_invalid"
  | "shard_damaged"
  | "shard_invalid"
  | "shard_mismatch"
  | "record_damaged"
  | "checksum_mismatch"
  | "identity_mismatch";

/** Where in a cache a check failed. */
export interface Place {
  /** Name of the file below the cache's folder, e.g. `shards/000000.bin`. */
  readonly file: string;
  /** What in the file: a member, a byte range, a sample, a row and field. */
  readonly where?: string;
}

/** A cache breaks a condition of the format. */
export class CacheError extends Error {
  override readonly name = "CacheError";
  /** One of the codes of the format. */
  readonly code: ErrorCode;
  /** The condition that is broken, by its name in the text, e.g. `S10`. */
  readonly check: string;
  /** Name of the file below the cache's folder. */
  readonly file: string;
  /** What in the file, where that can be said. */
  readonly where: string | undefined;

  constructor(code: ErrorCode, check: string, place: Place, message: string) {
    super(`${code} (${check}) in ${place.file}${place.where === undefined ? "" : `, ${place.where}`}: ${message}`);
    this.code = code;
    this.check = check;
    this.file = place.file;
    this.where = place.where;
  }
}

/** Why a {@link ByteSource} couldn't deliver bytes. */
export type SourceFailure = "status" | "range_ignored" | "wrong_length" | "network" | "io";

/** Bytes couldn't be had: an answer of a server or an error of the system, which says nothing about the cache. */
export class SourceError extends Error {
  override readonly name = "SourceError";
  readonly failure: SourceFailure;
  /** Path or URL of the file. */
  readonly file: string;

  constructor(failure: SourceFailure, file: string, message: string, options?: ErrorOptions) {
    super(`${file}: ${message}`, options);
    this.failure = failure;
    this.file = file;
  }
}

/** Something legal is larger than this reader or its JavaScript engine can hold. Nothing is rounded or cut instead. */
export class LimitError extends RangeError {
  override readonly name = "LimitError";
}
