import { toHex, u32le, u64le, utf8, viewOf } from "./bytes.js";
import { Sha256 } from "./checksums/sha256.js";
import type { Field, FieldType } from "./manifest-members.js";
import type { ColumnPiece } from "./metadata/metadata.js";

/** Samples of a block of the identity. */
export const IDENTITY_BLOCK = 65536;

/** What the identity is computed from. */
export interface Content {
  readonly samples: number;
  readonly fields: readonly Pick<Field, "name" | "type" | "nullable">[];
  /** Length and CRC of the payloads `from .. from + count`. */
  payloads(from: number, count: number): Promise<readonly { readonly rawLength: number; readonly crc: number }[]>;
  /** The rows `from .. to` of a column, in pieces. */
  pieces(field: number, from: number, to: number): Promise<readonly ColumnPiece[]>;
}

const TYPES: Record<FieldType, number> = { bool: 1, int64: 2, float64: 3, utf8: 4 };

/** The identity of a content (section 9), 64 digits. */
export async function identityOf(content: Content): Promise<string> {
  const hash = new Sha256();
  hash.update(utf8("dataset_rt content 1\0")).update(u64le(content.samples)).update(u32le(content.fields.length));
  for (const { name, type, nullable } of content.fields) {
    const bytes = utf8(name);
    hash.update(u32le(bytes.length)).update(bytes).update(Uint8Array.of(TYPES[type], nullable ? 1 : 0));
  }
  for (let from = 0; from < content.samples; from += IDENTITY_BLOCK) {
    hash.update(await blockDigest(content, from, Math.min(content.samples, from + IDENTITY_BLOCK)));
  }
  return toHex(hash.digest());
}

async function blockDigest(content: Content, from: number, to: number): Promise<Uint8Array> {
  const hash = new Sha256();
  const payloads = await content.payloads(from, to - from);
  const numbers = new Uint8Array(8 * payloads.length);
  const view = viewOf(numbers);
  payloads.forEach(({ rawLength, crc }, i) => {
    view.setUint32(8 * i, rawLength, true);
    view.setUint32(8 * i + 4, crc, true);
  });
  hash.update(numbers);
  for (const [i, { type, nullable }] of content.fields.entries()) {
    const pieces = await content.pieces(i, from, to);
    if (nullable) for (const { present, rows } of pieces) hash.update(present ?? new Uint8Array(rows).fill(1));
    if (type === "utf8") {
      for (const piece of pieces) hash.update(textLengths(piece));
      for (const piece of pieces) await piece.eachText((bytes) => hash.update(bytes));
    } else {
      for (const piece of pieces) hash.update(withoutNulls(piece, type === "bool" ? 1 : 8));
    }
  }
  return hash.digest();
}

function textLengths({ rows, present, offsets }: ColumnPiece): Uint8Array {
  const bytes = new Uint8Array(4 * rows);
  const view = viewOf(bytes);
  for (let i = 0; i < rows; i++) {
    const length = ((offsets as Int32Array)[i + 1] as number) - ((offsets as Int32Array)[i] as number);
    if (present === undefined || present[i] === 1) view.setUint32(4 * i, length, true);
  }
  return bytes;
}

function withoutNulls({ rows, present, values }: ColumnPiece, width: number): Uint8Array {
  if (present === undefined) return values;
  const bytes = values.slice();
  for (let i = 0; i < rows; i++) if (present[i] === 0) bytes.fill(0, width * i, width * (i + 1));
  return bytes;
}
