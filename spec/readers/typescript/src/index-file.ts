import { crcToHex, firstNonZero, viewOf } from "./bytes.js";
import { BLOCK, BlockReader, sumsFrom } from "./blocks.js";
import { crc32c } from "./checksums/crc32c.js";
import { CacheError, type ErrorCode } from "./errors.js";
import { INDEX_HEADER, parseEntry, parseIndexHeader, parseSections, SECTION_ROW, type Entry, type Section } from "./index-layout.js";
import type { Manifest } from "./manifest-members.js";
import { codecByte, footerLength, lengthsProblem, TRAILER } from "./shard.js";
import type { ByteSource } from "./source/source.js";

/** Where a sample's payload is. */
export interface SampleEntry extends Entry {
  /** Bytes of the payload. */
  readonly rawLength: number;
}

/** Options of {@link IndexFile.open}. */
export interface IndexOptions {
  /** How many blocks of 64 KiB are kept of entries and of lengths each. */
  readonly blocks: number;
}

const KINDS = new Set([1, 2, 17, 18, 32]);

/** `index.bin`, after the checks of opening (I1 to I13). */
export class IndexFile {
  /** Sums of the blocks of `metadata.arrow`. */
  readonly metadataSums: Uint32Array;
  readonly #manifest: Manifest;
  readonly #source: ByteSource;
  readonly #entries: BlockReader;
  readonly #rawLengths: BlockReader | undefined;
  readonly #sections: readonly Section[];

  private constructor(
    source: ByteSource, manifest: Manifest, sections: readonly Section[], metadataSums: Uint32Array, entries: BlockReader, rawLengths: BlockReader | undefined,
  ) {
    this.#source = source;
    this.#manifest = manifest;
    this.#sections = sections;
    this.metadataSums = metadataSums;
    this.#entries = entries;
    this.#rawLengths = rawLengths;
  }

  /** Reads header, section table and sums (I1 to I13). The file's size was compared with the manifest's (F2).
   *
   * @throws CacheError
   */
  static async open(source: ByteSource, manifest: Manifest, options: IndexOptions): Promise<IndexFile> {
    const { file, size } = manifest.index;
    if (size < INDEX_HEADER) fail("index_damaged", "I1", "header", `the file has ${size} bytes, the header ${INDEX_HEADER}`);
    const head = await source.read(file, 0, INDEX_HEADER);
    const header = parseIndexHeader(head) ?? fail("index_damaged", "I1", "header", "the magic is wrong");
    const tableEnd = INDEX_HEADER + SECTION_ROW * header.sections;
    if (tableEnd > size) fail("index_damaged", "I2", "header", `${header.sections} sections don't fit into ${size} bytes`);
    const table = await source.read(file, INDEX_HEADER, tableEnd - INDEX_HEADER);
    const crc = crc32c(table, crc32c(head.subarray(0, 124)));
    if (crc !== header.crc) fail("index_damaged", "I3", "header", `the crc is ${crcToHex(crc)}, the header says ${crcToHex(header.crc)}`);
    if (header.version !== 1) fail("version_unsupported", "I4", "header", `version ${header.version}`);
    if (firstNonZero(head.subarray(44, 48)) >= 0 || firstNonZero(head.subarray(80, 124)) >= 0) fail("index_invalid", "I5", "header", "reserved bytes are not zero");
    for (let at = 28; at < table.length; at += SECTION_ROW) {
      if (firstNonZero(table.subarray(at, at + 4)) >= 0) fail("index_invalid", "I5", "section table", "reserved bytes are not zero");
    }
    if (header.flags !== 0) fail("feature_unsupported", "I6", "header", `required flags 0x${header.flags.toString(16)}; this reader knows none`);
    agree("codec", header.codec, codecByte(manifest.codec));
    agree("align", header.align, Math.log2(manifest.alignment));
    agree("samples", header.samples, BigInt(manifest.samples));
    agree("shards", header.shards, BigInt(manifest.shards.length));
    agree("size", header.size, BigInt(size));
    if (header.identity !== manifest.identity) fail("index_invalid", "I8", "header", `the identity is ${header.identity}, the manifest's is ${manifest.identity}`);

    const sections = parseSections(table);
    checkSections(sections, tableEnd, BigInt(size));
    const found = new Map(sections.map((section) => [section.kind, section]));
    checkPresence(found, manifest);
    const sums = new Map<number, Uint32Array>();
    for (const kind of [17, 18, 32]) {
      const section = found.get(kind);
      if (section === undefined) continue;
      // Offset and length lie in the file, whose size is an exact number.
      const bytes = await source.read(file, Number(section.offset), Number(section.length));
      if (crc32c(bytes) !== section.crc) fail("index_damaged", "I13", `section ${kind}`, "the section has another CRC");
      sums.set(kind, sumsFrom(bytes));
    }
    const blocks = (kind: number): BlockReader | undefined => {
      const section = found.get(kind);
      const own = sums.get(kind + 16);
      if (section === undefined || own === undefined) return undefined;
      return new BlockReader(
        source,
        { file, offset: Number(section.offset), length: Number(section.length), sums: own, code: "index_damaged", check: "I14" },
        options.blocks,
      );
    };
    return new IndexFile(source, manifest, sections, sums.get(32) as Uint32Array, blocks(1) as BlockReader, blocks(2));
  }

  /** The entries of samples `from .. from + count`, read through the sums of blocks (I14), otherwise unchecked. */
  async entries(from: number, count: number): Promise<SampleEntry[]> {
    const [bytes, raw] = await Promise.all([this.#entries.read(16 * from, 16 * count), this.#rawLengths?.read(4 * from, 4 * count)]);
    const view = viewOf(bytes);
    const rawView = raw === undefined ? undefined : viewOf(raw);
    const entries: SampleEntry[] = [];
    for (let i = 0; i < count; i++) {
      const entry = parseEntry(view, 16 * i);
      entries.push({ ...entry, rawLength: rawView === undefined ? entry.storedLength : rawView.getUint32(4 * i, true) });
    }
    return entries;
  }

  /** The entry of one sample, checked (I14, E1 to E4).
   *
   * @throws CacheError
   */
  async entry(sample: number): Promise<SampleEntry> {
    const [entry] = await this.entries(sample, 1);
    this.checkEntry(entry as SampleEntry, sample);
    return entry as SampleEntry;
  }

  /** E1 to E4 for the entry of a sample.
   *
   * @throws CacheError
   */
  checkEntry(entry: SampleEntry, sample: number): void {
    const { shards, alignment, codec } = this.#manifest;
    const { offset, storedLength } = entry;
    const refuse = (check: string, message: string): never => fail("entry_invalid", check, `entry ${sample}`, message);
    const shard = shards[entry.shard] ?? refuse("E1", `shard ${entry.shard} of ${shards.length}`);
    if (offset < 64 || offset % alignment !== 0) refuse("E2", `offset ${offset} is below 64 or no multiple of ${alignment}`);
    const records = shard.size - TRAILER - footerLength(shard.samples, codec);
    if (offset + storedLength > records) refuse("E3", `the record ends at ${offset + storedLength}, the footer of ${shard.file} begins at ${records}`);
    const problem = lengthsProblem(storedLength, entry.rawLength);
    if (problem !== undefined) refuse("E4", problem);
  }

  /** I14 for all blocks: section 1, then section 2.
   *
   * @throws CacheError
   */
  async verifyBlocks(): Promise<void> {
    await this.#entries.verify();
    await this.#rawLengths?.verify();
  }

  /** I16: the bytes between sections are zero.
   *
   * @throws CacheError
   */
  async verifyPadding(): Promise<void> {
    const { file } = this.#manifest.index;
    let end = INDEX_HEADER + SECTION_ROW * this.#sections.length;
    for (const section of this.#sections) {
      const start = Number(section.offset);
      if (firstNonZero(await this.#source.read(file, end, start - end)) >= 0) fail("index_invalid", "I16", `bytes ${end}..${start}`, "padding is not zero");
      end = start + Number(section.length);
    }
  }
}

function fail(code: ErrorCode, check: string, where: string, message: string): never {
  throw new CacheError(code, check, { file: "index.bin", where }, message);
}

function agree(name: string, found: number | bigint, expected: number | bigint): void {
  if (found !== expected) fail("index_invalid", "I7", "header", `${name} is ${found}, it must be ${expected}`);
}

/** I9 to I11. */
function checkSections(sections: readonly Section[], tableEnd: number, size: bigint): void {
  let before = -1;
  for (const { kind, flags, crc } of sections) {
    if (kind <= before) fail("index_invalid", "I9", `section ${kind}`, `kinds don't ascend: it follows ${before}`);
    if ((flags & ~1) !== 0 || (flags !== 0 && KINDS.has(kind))) fail("index_invalid", "I9", `section ${kind}`, `flags 0x${flags.toString(16)} are not allowed`);
    if (kind < 16 && crc !== 0) fail("index_invalid", "I9", `section ${kind}`, "its crc is not 0");
    before = kind;
  }
  for (const { kind, flags } of sections) {
    if (!KINDS.has(kind) && flags === 0) fail("feature_unsupported", "I10", `section ${kind}`, "this reader doesn't know it, and it may not be ignored");
  }
  let end = BigInt(tableEnd);
  for (const { kind, offset, length } of sections) {
    const start = ((end + 63n) / 64n) * 64n;
    if (offset !== start) fail("index_invalid", "I11", `section ${kind}`, `it begins at ${offset}, it must at ${start}`);
    end = offset + length;
    if (end > size) fail("index_invalid", "I11", `section ${kind}`, `it ends at ${end}, the file at ${size}`);
  }
  if (end !== size) fail("index_invalid", "I11", "section table", `the last section ends at ${end}, the file at ${size}`);
}

/** I12. */
function checkPresence(found: ReadonlyMap<number, Section>, manifest: Manifest): void {
  const blocksOf = (length: bigint): bigint => 4n * ((length + BigInt(BLOCK) - 1n) / BigInt(BLOCK));
  const samples = BigInt(manifest.samples);
  const coded = manifest.codec !== "none";
  const expected: [number, bigint | undefined][] = [
    [1, 16n * samples],
    [2, coded ? 4n * samples : undefined],
    [17, blocksOf(16n * samples)],
    [18, coded ? blocksOf(4n * samples) : undefined],
    [32, blocksOf(BigInt(manifest.metadata.size))],
  ];
  for (const [kind, length] of expected) {
    const section = found.get(kind);
    if (section?.length !== length) {
      fail("index_invalid", "I12", `section ${kind}`, `it has ${section?.length ?? "no"} bytes, it must have ${length ?? "none and be absent"}`);
    }
  }
}
