import { sha256, Sha256 } from "../checksums/sha256.js";
import { toHex, u64le } from "../bytes.js";
import { Cache } from "../cache.js";
import { CacheError } from "../errors.js";
import type { FieldType } from "../manifest.js";
import type { Cell } from "../metadata/metadata.js";
import { FileSource } from "../source/file.js";
import { tagged, type Tagged } from "./tagged.js";

/** What the command says of a cache. */
export interface Answer {
  readonly document: Tagged;
  /** The condition that is broken, where one is. */
  readonly error?: CacheError;
}

// Payloads up to this many bytes are shown; of longer ones length and digest.
const SHOWN_BYTES = 256;
// More rows are shown as first, middle and last eight.
const SHOWN_ROWS = 32;

/** Whole verification of a cache, then its content: the document of `expected.json`. */
export async function describe(folder: string, allRows: boolean): Promise<Answer> {
  const source = new FileSource(folder);
  try {
    const cache = await Cache.verified(source);
    return { document: await content(cache, allRows) };
  } catch (error) {
    if (error instanceof CacheError) return { document: { outcome: "invalid", code: error.code }, error };
    throw error;
  } finally {
    await source.close();
  }
}

async function content(cache: Cache, allRows: boolean): Promise<Tagged> {
  const shown = shownRows(cache.samples, allRows);
  const rows: Tagged[] = [];
  const hash = new Sha256();
  for (let i = 0; i < cache.samples; i++) {
    const payload = await cache.payload(i);
    hash.update(u64le(payload.length)).update(payload);
    if (!shown(i)) continue;
    const cells = await cache.cells(i);
    rows.push({
      index: tagged.uint64(i),
      payload: showPayload(payload),
      values: cache.fields.map(({ type }, k) => showCell(cells[k] as Cell, type)),
    });
  }
  return {
    outcome: "valid",
    identity: tagged.hex(cache.identity),
    samples: tagged.uint64(cache.samples),
    fields: cache.fields.map(({ name, type, nullable }) => ({ name: tagged.utf8(name), type: tagged.utf8(type), nullable: tagged.bool(nullable) })),
    payloads_sha256: tagged.bytes(hash.digest()),
    rows,
  };
}

function shownRows(samples: number, all: boolean): (row: number) => boolean {
  if (all || samples <= SHOWN_ROWS) return () => true;
  const middle = Math.floor(samples / 2);
  return (row) => row < 8 || (row >= middle && row < middle + 8) || row >= samples - 8;
}

function showPayload(payload: Uint8Array): Tagged {
  return payload.length <= SHOWN_BYTES ? tagged.bytes(payload) : { type: "bytes_digest", value: `${payload.length}:${toHex(sha256(payload))}` };
}

function showCell(cell: Cell, type: FieldType): Tagged {
  if (cell === null) return tagged.null();
  switch (type) {
    case "bool":
      return tagged.bool(cell as boolean);
    case "int64":
      return tagged.int64(cell as bigint);
    case "float64":
      return tagged.float64(cell as bigint);
    case "utf8":
      return tagged.utf8(cell as string);
  }
}
