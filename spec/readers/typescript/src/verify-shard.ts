import { allocate, crcToHex, firstNonZero, toHex, up } from "./bytes.js";
import { crc32c } from "./checksums/crc32c.js";
import { CacheError, type ErrorCode } from "./errors.js";
import { Footer } from "./footer.js";
import type { IndexFile } from "./index-file.js";
import type { Manifest, ShardEntry } from "./manifest-members.js";
import { decodeRecord } from "./record.js";
import { checkTrailer, codecByte, HEADER, lengthsProblem, parseShardHeader, type RecordInfo, type ShardHeader } from "./shard.js";
import type { ByteSource } from "./source/source.js";
import { FileStream } from "./stream.js";

/** A shard's place in the chain of its part. */
export interface ChainLink {
  readonly file: string;
  readonly part: bigint;
  readonly ordinal: number;
  readonly first: bigint;
  readonly count: number;
  readonly last: boolean;
}

/** S1 to S16 of one shard.
 *
 * @param number - Its place in the manifest's list.
 * @param start - The sample that is its record 0.
 * @throws CacheError
 */
export async function verifyShard(source: ByteSource, manifest: Manifest, index: IndexFile, number: number, start: number): Promise<ChainLink> {
  const entry = manifest.shards[number] as ShardEntry;
  const { codec, alignment } = manifest;
  const fail = (code: ErrorCode, check: string, where: string, message: string): never => {
    throw new CacheError(code, check, { file: entry.file, where }, message);
  };
  const trailer = await checkTrailer(source, entry, codec);
  const headerBytes = await source.read(entry.file, 0, HEADER);
  const header = checkHeader(headerBytes, manifest, fail);

  const end = Number(trailer.footer);
  const footer = new Footer(source, entry, codec, end);
  const { crc, id } = await footer.digest(headerBytes);
  if (crc !== trailer.footerCrc) fail("shard_damaged", "S10", "footer", `its CRC is ${crcToHex(crc)}, the trailer says ${crcToHex(trailer.footerCrc)}`);
  if (!(await footer.hasZeroPadding())) fail("shard_invalid", "S11", "footer", "its padding is not zero");

  // S13 comes behind S11 and S12, but is found in the same pass over the footer.
  let mismatch: CacheError | undefined;
  let sample = start;
  let at = HEADER;
  for await (const records of footer.records()) {
    const entries = await index.entries(sample, records.length);
    for (const [i, record] of records.entries()) {
      const problem = lengthsProblem(record.storedLength, record.rawLength);
      if (problem !== undefined) fail("shard_invalid", "S11", `record ${sample + i - start}`, problem);
      at = up(at, alignment);
      const own = entries[i];
      const same =
        own !== undefined && own.shard === number && own.offset === at && own.storedLength === record.storedLength && own.crc === record.crc && own.rawLength === record.rawLength;
      if (!same) {
        mismatch ??= new CacheError("entry_invalid", "S13", { file: "index.bin", where: `entry ${sample + i}` }, `it isn't the one that follows from the footer of ${entry.file}`);
      }
      at += record.storedLength;
      // Beyond 2^53 sums would not be exact; the file ends long before.
      if (at > end) fail("shard_invalid", "S11", `record ${sample + i - start}`, `it ends at ${at}, the footer begins at ${end}`);
    }
    sample += records.length;
  }
  if (up(at, 64) !== end) fail("shard_invalid", "S11", "footer", `the records end at ${at}, so the footer must begin at ${up(at, 64)}, not ${end}`);
  if (toHex(id) !== trailer.id) fail("shard_invalid", "S12", "trailer", `the id is ${trailer.id}, header and footer give ${toHex(id)}`);
  if (mismatch !== undefined) throw mismatch;

  await verifyRecords(source, entry, footer, alignment, start, end);
  return { file: entry.file, part: header.part, ordinal: header.ordinal, first: header.first, count: entry.samples, last: (trailer.flags & 1) === 1 };
}

/** S6 to S9. */
function checkHeader(bytes: Uint8Array, manifest: Manifest, fail: (code: ErrorCode, check: string, where: string, message: string) => never): ShardHeader {
  const header = parseShardHeader(bytes);
  if (header === undefined) return fail("shard_damaged", "S6", "header", "the magic or the crc is wrong");
  if (header.version !== 1) fail("version_unsupported", "S7", "header", `version ${header.version}`);
  if (header.flags !== 0) fail("feature_unsupported", "S8", "header", `required flags 0x${header.flags.toString(16)}; this reader knows none`);
  if (firstNonZero(bytes.subarray(36, 60)) >= 0) fail("shard_invalid", "S9", "header", "reserved bytes are not zero");
  if (header.codec !== codecByte(manifest.codec)) fail("shard_invalid", "S9", "header", `codec ${header.codec} isn't the manifest's ${manifest.codec}`);
  if (header.align !== Math.log2(manifest.alignment)) fail("shard_invalid", "S9", "header", `align ${header.align} isn't the manifest's alignment ${manifest.alignment}`);
  return header;
}

/** S14 to S16, by reading the file once. */
async function verifyRecords(source: ByteSource, entry: ShardEntry, footer: Footer, alignment: number, start: number, end: number): Promise<void> {
  const stream = new FileStream(source, entry);
  let dirty: number | undefined;
  const padding = async (to: number): Promise<void> =>
    stream.pass(to - stream.position, (bytes, offset) => {
      const at = firstNonZero(bytes);
      if (at >= 0) dirty ??= offset + at;
    });
  await stream.pass(HEADER, () => undefined);
  let sample = start;
  for await (const records of footer.records()) {
    for (const record of records) {
      await padding(up(stream.position, alignment));
      await verifyRecord(stream, record, entry.file, sample++);
    }
  }
  await padding(end);
  await stream.finish("S15");
  if (dirty !== undefined) throw new CacheError("shard_invalid", "S16", { file: entry.file, where: `byte ${dirty}` }, "padding is not zero");
}

async function verifyRecord(stream: FileStream, record: RecordInfo, file: string, sample: number): Promise<void> {
  if (record.storedLength === record.rawLength) {
    // Payloads may be 4 GiB long: not held, only summed.
    let crc = 0;
    await stream.pass(record.storedLength, (bytes) => {
      crc = crc32c(bytes, crc);
    });
    if (crc !== record.crc) throw new CacheError("record_damaged", "S14", { file, where: `sample ${sample}` }, `the payload's CRC is ${crcToHex(crc)}, the entry says ${crcToHex(record.crc)}`);
    return;
  }
  const stored = allocate(record.storedLength);
  let at = 0;
  await stream.pass(record.storedLength, (bytes) => {
    stored.set(bytes, at);
    at += bytes.length;
  });
  decodeRecord(stored, record, file, sample);
}

/** S17: the shards form whole chains in ascending order (section 5.6).
 *
 * @throws CacheError
 */
export function verifyChains(links: readonly ChainLink[]): void {
  let before: ChainLink | undefined;
  const fail = (link: ChainLink, message: string): never => {
    throw new CacheError("shard_invalid", "S17", { file: link.file }, message);
  };
  for (const link of links) {
    if (before !== undefined && link.part === before.part) {
      if (before.last) fail(before, `it is marked as last of part ${before.part}, but another follows`);
      if (link.ordinal !== before.ordinal + 1) fail(link, `ordinal ${link.ordinal} follows ${before.ordinal} in part ${link.part}`);
      if (link.first !== before.first + BigInt(before.count)) fail(link, `first is ${link.first}, the shards before have ${before.first + BigInt(before.count)} samples`);
    } else {
      if (before !== undefined && !before.last) fail(before, `part ${before.part} ends with it, but it isn't marked as last`);
      if (before !== undefined && link.part < before.part) fail(link, `part ${link.part} follows part ${before.part}`);
      if (link.ordinal !== 0 || link.first !== 0n) fail(link, `part ${link.part} begins with ordinal ${link.ordinal} and first ${link.first}`);
    }
    before = link;
  }
  if (before !== undefined && !before.last) fail(before, `part ${before.part} ends with it, but it isn't marked as last`);
}
