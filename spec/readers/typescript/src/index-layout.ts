import { toHex, viewOf } from "./bytes.js";

const MAGIC = "89445254490d0a1a";

/** Bytes of the header of `index.bin`. */
export const INDEX_HEADER = 128;
/** Bytes of a row of its section table. */
export const SECTION_ROW = 32;

/** What the header of `index.bin` says (section 6.1). */
export interface IndexHeader {
  readonly version: number;
  readonly codec: number;
  readonly align: number;
  readonly flags: number;
  readonly samples: bigint;
  readonly shards: bigint;
  readonly size: bigint;
  readonly sections: number;
  /** 64 digits. */
  readonly identity: string;
  readonly crc: number;
}

/** A row of the section table (section 6.2). */
export interface Section {
  readonly kind: number;
  readonly flags: number;
  readonly offset: bigint;
  readonly length: bigint;
  readonly crc: number;
}

/** An entry (section 6.3). */
export interface Entry {
  readonly shard: number;
  /** Offset of the record in the shard's file. */
  readonly offset: number;
  readonly storedLength: number;
  /** CRC of the payload. */
  readonly crc: number;
}

/** Reads the fields of a header, 128 bytes, without checking its crc; `undefined` where the magic is wrong. */
export function parseIndexHeader(bytes: Uint8Array): IndexHeader | undefined {
  if (toHex(bytes.subarray(0, 8)) !== MAGIC) return undefined;
  const view = viewOf(bytes);
  return {
    version: view.getUint16(8, true),
    codec: view.getUint8(10),
    align: view.getUint8(11),
    flags: view.getUint32(12, true),
    samples: view.getBigUint64(16, true),
    shards: view.getBigUint64(24, true),
    size: view.getBigUint64(32, true),
    sections: view.getUint32(40, true),
    identity: toHex(bytes.subarray(48, 80)),
    crc: view.getUint32(124, true),
  };
}

/** Reads the rows of a section table. */
export function parseSections(table: Uint8Array): Section[] {
  const view = viewOf(table);
  const sections: Section[] = [];
  for (let at = 0; at + SECTION_ROW <= table.length; at += SECTION_ROW) {
    sections.push({
      kind: view.getUint32(at, true),
      flags: view.getUint32(at + 4, true),
      offset: view.getBigUint64(at + 8, true),
      length: view.getBigUint64(at + 16, true),
      crc: view.getUint32(at + 24, true),
    });
  }
  return sections;
}

/** Reads the entry at `at`. */
export function parseEntry(view: DataView, at = 0): Entry {
  const high = view.getUint32(at + 4, true);
  return {
    shard: high >>> 8,
    offset: (high & 255) * 2 ** 32 + view.getUint32(at, true),
    storedLength: view.getUint32(at + 8, true),
    crc: view.getUint32(at + 12, true),
  };
}
