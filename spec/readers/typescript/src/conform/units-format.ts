import { join } from "node:path";

import { crcToHex, up, utf8, viewOf } from "../bytes.js";
import { blockSums } from "../blocks.js";
import { crc32c } from "../checksums/crc32c.js";
import { Cache } from "../cache.js";
import { CacheError } from "../errors.js";
import { parseRecords } from "../footer.js";
import { identityOf } from "../identity.js";
import { INDEX_HEADER, parseEntry, parseIndexHeader, parseSections } from "../index-layout.js";
import { decodeLz4Block } from "../lz4.js";
import { checkManifestFrame, type Codec } from "../manifest.js";
import { isShardName } from "../manifest-members.js";
import type { ColumnPiece } from "../metadata/metadata.js";
import { HEADER, parseShardHeader, parseShardTrailer } from "../shard.js";
import { FileSource } from "../source/file.js";
import { rotateShards, splitBatches } from "../writer-rules.js";
import { read, tagged, type Members, type Tagged } from "./tagged.js";

/** Computes the output of a case from its input.
 *
 * @param folder - Of the vectors: some cases name a valid cache.
 */
export type UnitRule = (input: Members, folder: string) => Tagged | Promise<Tagged>;

/** Rules of the unit vectors of the format. */
export const FORMAT_UNITS: Readonly<Record<string, UnitRule>> = {
  "unit/crc32c": (input) => {
    const crc = crc32c(read.bytes(input, "data"));
    return { number: tagged.uint64(crc), hex: tagged.utf8(crcToHex(crc)) };
  },
  "unit/block-sums": (input) => tagged.uint64s(blockSums(new Uint8Array(read.number(input, "zero_bytes")))),
  "unit/lz4-blocks": (input) => {
    const payload = decodeLz4Block(read.bytes(input, "stored"), read.number(input, "raw_len"));
    return payload === undefined ? tagged.null() : tagged.bytes(payload);
  },
  "unit/shard-parts": shardParts,
  "unit/index-entries": (input) => {
    const { shard, offset, storedLength, crc } = parseEntry(viewOf(read.bytes(input, "entry")));
    return { shard: tagged.uint64(shard), offset: tagged.uint64(offset), stored_len: tagged.uint64(storedLength), crc: tagged.uint64(crc) };
  },
  "unit/index-headers": indexHeaders,
  "unit/rotation": (input) =>
    tagged.uint64s(
      rotateShards(read.numbers(input, "stored_len"), read.number(input, "max_shard_bytes"), 2 ** read.number(input, "align"), read.text(input, "codec") as Codec),
    ),
  "unit/batches": (input) => tagged.uint64s(splitBatches(repeat(read.numbers(input, "rows"), read.numbers(input, "bytes")))),
  "unit/identity": identityOfCache,
  "unit/identity-by-rule": async (input) => tagged.hex(await identityByRule(read.number(input, "samples"))),
  "unit/shard-names": (input) => tagged.bool(isShardName(read.text(input, "name"))),
  "unit/manifest-tail": (input) => {
    try {
      checkManifestFrame(read.bytes(input, "manifest"));
      return tagged.utf8("ok");
    } catch (error) {
      if (error instanceof CacheError) return tagged.utf8(error.code);
      throw error;
    }
  },
};

function* repeat(counts: readonly number[], values: readonly number[]): Generator<number> {
  for (const [i, count] of counts.entries()) for (let k = 0; k < count; k++) yield values[i] as number;
}

function shardParts(input: Members): Tagged {
  const header = parseShardHeader(read.bytes(input, "header"));
  const trailer = parseShardTrailer(read.bytes(input, "trailer"));
  if (header === undefined || trailer === undefined) throw new Error("header or trailer is damaged");
  const footer = read.bytes(input, "footer");
  const count = Number(trailer.count);
  const records = parseRecords(footer.subarray(0, 8 * count), header.codec === 0 ? undefined : footer.subarray(8 * count, 12 * count));
  const offsets: number[] = [];
  let end = HEADER;
  for (const { storedLength } of records) {
    offsets.push(up(end, 2 ** header.align));
    end = (offsets.at(-1) as number) + storedLength;
  }
  return {
    header: {
      codec: tagged.uint64(header.codec), align: tagged.uint64(header.align), part: tagged.uint64(header.part),
      first: tagged.uint64(header.first), ordinal: tagged.uint64(header.ordinal),
    },
    trailer: {
      count: tagged.uint64(trailer.count), F: tagged.uint64(trailer.footer), size: tagged.uint64(trailer.size), id: tagged.hex(trailer.id),
      last: tagged.bool((trailer.flags & 1) === 1),
    },
    records: {
      offsets: tagged.uint64s(offsets),
      stored_len: tagged.uint64s(records.map((record) => record.storedLength)),
      raw_len: tagged.uint64s(records.map((record) => record.rawLength)),
      crc: tagged.uint64s(records.map((record) => record.crc)),
    },
  };
}

function indexHeaders(input: Members): Tagged {
  const head = read.bytes(input, "head");
  const header = parseIndexHeader(head);
  if (header === undefined) throw new Error("the magic is wrong");
  const sections = parseSections(head.subarray(INDEX_HEADER, INDEX_HEADER + 32 * header.sections));
  return {
    codec: tagged.uint64(header.codec), align: tagged.uint64(header.align), samples: tagged.uint64(header.samples),
    shards: tagged.uint64(header.shards), size: tagged.uint64(header.size), identity: tagged.hex(header.identity),
    sections: {
      kind: tagged.uint64s(sections.map((section) => section.kind)),
      flags: tagged.uint64s(sections.map((section) => section.flags)),
      offset: tagged.uint64s(sections.map((section) => section.offset)),
      length: tagged.uint64s(sections.map((section) => section.length)),
      crc: tagged.uint64s(sections.map((section) => section.crc)),
    },
  };
}

/** The columns are those of a valid cache; lengths and CRCs of payloads come from the case. */
async function identityOfCache(input: Members, folder: string): Promise<Tagged> {
  const lengths = read.numbers(input, "raw_len");
  const crcs = read.numbers(input, "crc");
  const cache = await Cache.open(new FileSource(join(folder, "v1", "valid", read.text(input, "cache"), "cache")));
  try {
    return tagged.hex(
      await identityOf({
        samples: cache.samples,
        fields: cache.fields,
        payloads: async (from, count) => Array.from({ length: count }, (_, i) => ({ rawLength: lengths[from + i] as number, crc: crcs[from + i] as number })),
        pieces: (field, from, to) => cache.columnPieces(field, from, to),
      }),
    );
  } finally {
    await cache.close();
  }
}

/** The content that the note of the vector describes. */
function identityByRule(samples: number): Promise<string> {
  return identityOf({
    samples,
    fields: [
      { name: "n", type: "int64", nullable: false },
      { name: "t", type: "utf8", nullable: true },
    ],
    payloads: async (from, count) =>
      Array.from({ length: count }, (_, k) => ({ rawLength: (from + k) % 7, crc: Math.imul(from + k, 2654435761) >>> 0 })),
    pieces: async (field, from, to) => [field === 0 ? numbersPiece(from, to) : decimalsPiece(from, to)],
  });
}

function numbersPiece(from: number, to: number): ColumnPiece {
  const values = new Uint8Array(8 * (to - from));
  const view = viewOf(values);
  for (let i = from; i < to; i++) view.setBigInt64(8 * (i - from), BigInt(i), true);
  return { rows: to - from, present: undefined, values, offsets: undefined, eachText: async () => undefined };
}

function decimalsPiece(from: number, to: number): ColumnPiece {
  const rows = to - from;
  const present = Uint8Array.from({ length: rows }, (_, k) => ((from + k) % 3 === 0 ? 0 : 1));
  const offsets = new Int32Array(rows + 1);
  for (let k = 0; k < rows; k++) offsets[k + 1] = (offsets[k] as number) + (present[k] === 1 ? String(from + k).length : 0);
  return {
    rows, present, values: new Uint8Array(0), offsets,
    eachText: async (use) => {
      for (let k = 0; k < rows; k++) if (present[k] === 1) use(utf8(String(from + k)), k);
    },
  };
}
