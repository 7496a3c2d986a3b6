import type { ByteSource } from "./source/source.js";
import { HttpSource, type HttpOptions } from "./source/http.js";
import { IndexFile } from "./index-file.js";
import { readManifest, type Field, type Manifest, type ShardEntry } from "./manifest.js";
import { Metadata, metadataReader, type Cell } from "./metadata/metadata.js";
import { decodeRecord } from "./record.js";
import type { DrawStream } from "./sampling/stream.js";
import { checkFile, checkTrailer } from "./shard.js";
import { verifyCache, type Verified } from "./verify.js";

/** A metadata value: `int64` is a `bigint`, `float64` a `number`. */
export type MetadataValue = null | boolean | bigint | number | string;

/** One sample. */
export interface Sample {
  readonly index: number;
  /** The payload, decoded and compared with its CRC. */
  readonly payload: Uint8Array;
  /** The row of metadata by field name. It has no prototype, so that any name is a member like any other. */
  readonly metadata: Readonly<Record<string, MetadataValue>>;
}

/** A sample of a window, with the position it was drawn at. */
export interface DrawnSample extends Sample {
  readonly position: bigint;
}

/** Options of opening. */
export interface CacheOptions {
  /** How many blocks of 64 KiB are kept of entries, of lengths and of metadata each; 64 where absent. */
  readonly blocks?: number;
}

/** Options of iterating. */
export interface IterateOptions {
  /** The first sample; 0 where absent. */
  readonly start?: number;
  /** The sample behind the last; the number of samples where absent. */
  readonly end?: number;
  /** How many samples are read at once; 8 where absent. The order stays. */
  readonly ahead?: number;
}

const floatView = new DataView(new ArrayBuffer(8));

/** An open cache. Everything it delivers was checked before; damage that a use doesn't touch may pass until it is verified. */
export class Cache {
  readonly manifest: Manifest;
  readonly #source: ByteSource;
  readonly #index: IndexFile;
  readonly #metadata: Metadata;
  // Shards whose trailer was checked.
  readonly #used = new Map<number, Promise<unknown>>();

  private constructor(source: ByteSource, { manifest, index, metadata }: Verified) {
    this.#source = source;
    this.manifest = manifest;
    this.#index = index;
    this.#metadata = metadata;
  }

  /** Opens a cache: checks the manifest, the heads of index and metadata, and nothing in proportion to the samples.
   *
   * @throws CacheError where a condition of opening (section 10.5) is broken.
   * @throws SourceError where bytes can't be had.
   */
  static async open(source: ByteSource, options: CacheOptions = {}): Promise<Cache> {
    const blocks = options.blocks ?? 64;
    const manifest = await readManifest(source);
    await checkFile(source, manifest.metadata);
    await checkFile(source, manifest.index);
    const index = await IndexFile.open(source, manifest, { blocks });
    const metadata = await Metadata.open(metadataReader(source, manifest, index.metadataSums, blocks), manifest);
    return new Cache(source, { manifest, index, metadata });
  }

  /** Opens a cache after whole verification: every byte of every file is read, every condition checked.
   *
   * @throws CacheError - The first condition that is broken, in the order of section 10.5.
   */
  static async verified(source: ByteSource, options: CacheOptions = {}): Promise<Cache> {
    return new Cache(source, await verifyCache(source, options.blocks ?? 64));
  }

  /** Number of samples. */
  get samples(): number {
    return this.manifest.samples;
  }

  /** Metadata columns. */
  get fields(): readonly Field[] {
    return this.manifest.fields;
  }

  /** The identity of the content, 64 digits (section 9). */
  get identity(): string {
    return this.manifest.identity;
  }

  /** First row and number of rows of each record batch of the metadata. */
  get batches(): readonly { readonly start: number; readonly rows: number }[] {
    return this.#metadata.batches;
  }

  /** A sample: payload and metadata.
   *
   * @param index - 0 .. samples - 1.
   * @throws RangeError for another index.
   * @throws CacheError
   */
  async sample(index: number): Promise<Sample> {
    const [payload, metadata] = await Promise.all([this.payload(index), this.row(index)]);
    return { index, payload, metadata };
  }

  /** The payload of a sample. */
  async payload(index: number): Promise<Uint8Array> {
    this.#checkIndex(index);
    const entry = await this.#index.entry(index);
    const shard = this.manifest.shards[entry.shard] as ShardEntry;
    await this.#use(entry.shard, shard);
    return decodeRecord(await this.#source.read(shard.file, entry.offset, entry.storedLength), entry, shard.file, index);
  }

  /** The metadata of a sample. */
  async row(index: number): Promise<Record<string, MetadataValue>> {
    const cells = await this.cells(index);
    const row = Object.create(null) as Record<string, MetadataValue>;
    this.fields.forEach((field, i) => {
      row[field.name] = toValue(cells[i] as Cell, field);
    });
    return row;
  }

  /** The metadata of a sample in the order of the fields, with a `float64` as its 64 bits: a `number` may lose the payload of a NaN. */
  async cells(index: number): Promise<Cell[]> {
    this.#checkIndex(index);
    return Promise.all(this.fields.map((_, field) => this.#metadata.cell(index, field)));
  }

  /** The rows `from .. to` of a column, in pieces of one batch each, for building tables. Text is checked where it is used. */
  columnPieces(field: number, from: number, to: number): ReturnType<Metadata["pieces"]> {
    return this.#metadata.pieces(field, from, to);
  }

  /** Samples in order. */
  async *iterate(options: IterateOptions = {}): AsyncGenerator<Sample, void> {
    const end = options.end ?? this.samples;
    const start = options.start ?? 0;
    if (!Number.isSafeInteger(start) || !Number.isSafeInteger(end) || start < 0 || start > end || end > this.samples) {
      throw new RangeError(`samples ${start}..${end} of ${this.samples}`);
    }
    function* numbers(): Generator<number> {
      for (let i = start; i < end; i++) yield i;
    }
    yield* ordered(numbers(), (i) => this.sample(i), options.ahead ?? 8);
  }

  /** The samples of a window of positions, in the order of a draw stream over all samples of this cache.
   *
   * @param stream - Its rows are this cache's samples.
   * @param start - The first position.
   * @param count - How many positions.
   */
  async *window(stream: DrawStream, start: bigint, count: bigint, options: Pick<IterateOptions, "ahead"> = {}): AsyncGenerator<DrawnSample, void> {
    if (stream.rows !== BigInt(this.samples)) throw new RangeError(`the stream has ${stream.rows} rows, the cache ${this.samples} samples`);
    const draw = async ([position, row]: [bigint, bigint]): Promise<DrawnSample> => ({ position, ...(await this.sample(Number(row))) });
    yield* ordered(stream.window(start, count), draw, options.ahead ?? 8);
  }

  /** Whole verification, from the manifest on.
   *
   * @throws CacheError - The first condition that is broken, in the order of section 10.5.
   */
  async verify(): Promise<void> {
    await verifyCache(this.#source, 64);
  }

  /** Frees what the source holds. */
  async close(): Promise<void> {
    await this.#source.close();
  }

  #checkIndex(index: number): void {
    if (!Number.isSafeInteger(index) || index < 0 || index >= this.samples) throw new RangeError(`sample ${index} of ${this.samples}`);
  }

  #use(number: number, shard: ShardEntry): Promise<unknown> {
    let used = this.#used.get(number);
    if (used === undefined) {
      used = checkFile(this.#source, shard).then(() => checkTrailer(this.#source, shard, this.manifest.codec));
      used.catch(() => this.#used.delete(number));
      this.#used.set(number, used);
    }
    return used;
  }
}

/** Opens a cache on a web server.
 *
 * @param url - Of the cache's folder.
 */
export function openUrl(url: string | URL, options: CacheOptions & HttpOptions = {}): Promise<Cache> {
  return Cache.open(new HttpSource(url, options), options);
}

function toValue(cell: Cell, field: Field): MetadataValue {
  if (field.type !== "float64" || cell === null) return cell;
  floatView.setBigUint64(0, cell as bigint);
  return floatView.getFloat64(0);
}

/** Maps with up to `ahead` at once and yields in order. */
async function* ordered<T, R>(items: Iterable<T>, map: (item: T) => Promise<R>, ahead: number): AsyncGenerator<R, void> {
  const running: Promise<R>[] = [];
  for (const item of items) {
    const next = map(item);
    // Awaited later: a failure before that must not count as unhandled.
    next.catch(() => undefined);
    running.push(next);
    if (running.length >= Math.max(1, ahead)) yield await (running.shift() as Promise<R>);
  }
  for (const one of running) yield await one;
}
