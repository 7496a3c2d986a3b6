import { allocate } from "./bytes.js";

/** Decodes one LZ4 block (no frame, no size prefix, no dictionary).
 *
 * @param block - The stored bytes.
 * @param rawLength - How many bytes must come of them. The caller has checked that it is at most `255 * block.length`
 *   (condition E4), so that the allocation is bounded by bytes that are there.
 * @returns The payload, or `undefined` where the block is broken: an offset of 0 or before the beginning, an end anywhere but
 *   after literals, more or fewer than `rawLength` bytes.
 */
export function decodeLz4Block(block: Uint8Array, rawLength: number): Uint8Array<ArrayBuffer> | undefined {
  const out = allocate(rawLength);
  const end = block.length;
  let read = 0;
  let written = 0;
  for (;;) {
    if (read >= end) return undefined;
    const token = block[read++] as number;

    let literals = token >> 4;
    if (literals === 15) {
      let more: number;
      do {
        if (read >= end) return undefined;
        more = block[read++] as number;
        literals += more;
      } while (more === 255);
    }
    if (literals > end - read || literals > rawLength - written) return undefined;
    out.set(block.subarray(read, read + literals), written);
    read += literals;
    written += literals;
    if (read === end) return written === rawLength ? out : undefined;

    if (end - read < 2) return undefined;
    const offset = (block[read] as number) | ((block[read + 1] as number) << 8);
    read += 2;
    if (offset === 0 || offset > written) return undefined;
    let length = (token & 15) + 4;
    if (length === 19) {
      let more: number;
      do {
        if (read >= end) return undefined;
        more = block[read++] as number;
        length += more;
      } while (more === 255);
    }
    if (length > rawLength - written) return undefined;
    if (offset >= length) {
      out.copyWithin(written, written - offset, written - offset + length);
      written += length;
    } else {
      // The match overlaps what it makes: byte by byte, so that the pattern repeats.
      for (let stop = written + length; written < stop; written++) out[written] = out[written - offset] as number;
    }
  }
}
