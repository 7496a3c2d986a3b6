import { firstNonZero, u64le, viewOf } from "./bytes.js";
import { crc32c } from "./checksums/crc32c.js";
import { Sha256 } from "./checksums/sha256.js";
import type { Codec, ShardEntry } from "./manifest-members.js";
import { footerLength, type RecordInfo } from "./shard.js";
import type { ByteSource } from "./source/source.js";
import { CHUNK } from "./stream.js";

// Records whose lengths are read at once.
const RECORDS = 65536;

/** Reads the lengths and CRCs at the end of a shard (section 5.3). Their place was checked (S5). */
export class Footer {
  readonly #source: ByteSource;
  readonly #entry: ShardEntry;
  readonly #codec: Codec;
  readonly #offset: number;
  readonly #length: number;

  constructor(source: ByteSource, entry: ShardEntry, codec: Codec, offset: number) {
    this.#source = source;
    this.#entry = entry;
    this.#codec = codec;
    this.#offset = offset;
    this.#length = footerLength(entry.samples, codec);
  }

  /** The footer's CRC, and the first 16 bytes of SHA-256(header | footer | count), which are the shard's id. */
  async digest(header: Uint8Array): Promise<{ crc: number; id: Uint8Array }> {
    const hash = new Sha256().update(header);
    let crc = 0;
    for (let at = 0; at < this.#length; at += CHUNK) {
      const bytes = await this.#source.read(this.#entry.file, this.#offset + at, Math.min(CHUNK, this.#length - at));
      crc = crc32c(bytes, crc);
      hash.update(bytes);
    }
    return { crc, id: hash.update(u64le(this.#entry.samples)).digest().subarray(0, 16) };
  }

  /** Whether the zero bytes at the footer's end are zero. */
  async hasZeroPadding(): Promise<boolean> {
    const used = this.#entry.samples * (this.#codec === "none" ? 8 : 12);
    return firstNonZero(await this.#source.read(this.#entry.file, this.#offset + used, this.#length - used)) < 0;
  }

  /** What the footer says of each record, in lists. */
  async *records(): AsyncGenerator<RecordInfo[], void> {
    const { file, samples } = this.#entry;
    for (let from = 0; from < samples; from += RECORDS) {
      const count = Math.min(RECORDS, samples - from);
      const pairs = await this.#source.read(file, this.#offset + 8 * from, 8 * count);
      const raw = this.#codec === "none" ? undefined : await this.#source.read(file, this.#offset + 8 * samples + 4 * from, 4 * count);
      yield parseRecords(pairs, raw);
    }
  }
}

/** What the two lists of a footer say; `raw` is there with a codec alone. */
export function parseRecords(pairs: Uint8Array, raw: Uint8Array | undefined): RecordInfo[] {
  const view = viewOf(pairs);
  const rawView = raw === undefined ? undefined : viewOf(raw);
  const records: RecordInfo[] = [];
  for (let i = 0; 8 * i < pairs.length; i++) {
    const storedLength = view.getUint32(8 * i, true);
    records.push({ storedLength, rawLength: rawView === undefined ? storedLength : rawView.getUint32(4 * i, true), crc: view.getUint32(8 * i + 4, true) });
  }
  return records;
}
