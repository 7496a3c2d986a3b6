import { up } from "./bytes.js";
import type { Codec } from "./manifest-members.js";
import { footerLength, HEADER, TRAILER } from "./shard.js";

// A reader needs none of these; they let one check which cache a writer had to make.

/** How many samples each shard has, by the rule of section 11.1.
 *
 * @param storedLengths - Bytes of each record, in the order of the samples.
 * @param limit - The writer's `max_shard_bytes`.
 */
export function rotateShards(storedLengths: Iterable<number>, limit: number, alignment: number, codec: Codec): number[] {
  const shards: number[] = [];
  let count = 0;
  let end = HEADER;
  for (const length of storedLengths) {
    const next = up(end, alignment) + length;
    if (count > 0 && up(next, 64) + footerLength(count + 1, codec) + TRAILER > limit) {
      shards.push(count);
      count = 0;
      end = HEADER;
    }
    end = up(end, alignment) + length;
    count++;
  }
  if (count > 0) shards.push(count);
  return shards;
}

const BATCH_ROWS = 65536;
const BATCH_TEXT = 2 ** 24;

/** How many rows each batch of the metadata has, by the rule of section 7.4.
 *
 * @param textBytes - Bytes of all text columns together, of each row.
 */
export function splitBatches(textBytes: Iterable<number>): number[] {
  const batches: number[] = [];
  let rows = 0;
  let text = 0;
  for (const bytes of textBytes) {
    if (rows > 0 && (rows === BATCH_ROWS || text + bytes > BATCH_TEXT)) {
      batches.push(rows);
      rows = 0;
      text = 0;
    }
    rows++;
    text += bytes;
  }
  if (rows > 0) batches.push(rows);
  return batches;
}
