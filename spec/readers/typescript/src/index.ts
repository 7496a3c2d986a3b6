/**
 * Reader of the DatasetRT cache format, version 1, and of its sampling algorithm, version 1. This entry runs in browsers and in
 * Node; `./node` adds folders of the file system, `./arrow` tables of Apache Arrow.
 *
 * @packageDocumentation
 */
export { Cache, openUrl, type CacheOptions, type DrawnSample, type IterateOptions, type MetadataValue, type Sample } from "./cache.js";
export { crc32c } from "./checksums/crc32c.js";
export { Sha256, sha256 } from "./checksums/sha256.js";
export { CacheError, LimitError, SourceError, type ErrorCode, type Place, type SourceFailure } from "./errors.js";
export { decodeLz4Block } from "./lz4.js";
export { parseManifest, type Codec, type Field, type FieldType, type FileEntry, type Manifest, type ShardEntry } from "./manifest.js";
export type { Cell, ColumnPiece } from "./metadata/metadata.js";
export { HttpSource, type HttpOptions } from "./source/http.js";
export type { ByteSource } from "./source/source.js";
export { cachesDigest, runsOf, tableDigest, type Run } from "./sampling/digests.js";
export { permutationOf, type Permutation } from "./sampling/permutation.js";
export { block, philox, scale, type Words } from "./sampling/philox.js";
export {
  checkPosition, formatPosition, matchPosition, parsePosition, PositionError, type Position, type PositionOwner,
} from "./sampling/position.js";
export { DrawStream, modeOf, type Mode, type StreamOptions } from "./sampling/stream.js";
export { Tickets } from "./sampling/tickets.js";
export { weightedOrder } from "./sampling/weighted-order.js";
export { rankPositions, rankSteps, Windows, workerSteps, type Policy, type RankPosition, type Window } from "./sampling/windows.js";
