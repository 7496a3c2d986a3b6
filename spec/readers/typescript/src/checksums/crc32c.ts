// Eight tables, so that the main loop takes eight bytes a step.
const TABLES = makeTables();

function makeTables(): Uint32Array[] {
  const tables = [new Uint32Array(256)];
  const first = tables[0] as Uint32Array;
  for (let n = 0; n < 256; n++) {
    let c = n;
    for (let bit = 0; bit < 8; bit++) c = c & 1 ? (c >>> 1) ^ 0x82f63b78 : c >>> 1;
    first[n] = c >>> 0;
  }
  for (let k = 1; k < 8; k++) {
    const before = tables[k - 1] as Uint32Array;
    tables.push(before.map((c) => (first[c & 255] as number) ^ (c >>> 8)));
  }
  return tables;
}

/** CRC-32C (Castagnoli) of `bytes`.
 *
 * @param crc - The CRC of what stands before `bytes`; 0 at the beginning.
 * @returns An unsigned 32-bit number.
 */
export function crc32c(bytes: Uint8Array, crc = 0): number {
  const [t0, t1, t2, t3, t4, t5, t6, t7] = TABLES as [
    Uint32Array, Uint32Array, Uint32Array, Uint32Array, Uint32Array, Uint32Array, Uint32Array, Uint32Array,
  ];
  let c = ~crc;
  let i = 0;
  const end = bytes.length;
  for (const last = end - 8; i <= last; i += 8) {
    const low =
      c ^ ((bytes[i] as number) | ((bytes[i + 1] as number) << 8) | ((bytes[i + 2] as number) << 16) | ((bytes[i + 3] as number) << 24));
    c =
      (t7[low & 255] as number) ^
      (t6[(low >>> 8) & 255] as number) ^
      (t5[(low >>> 16) & 255] as number) ^
      (t4[low >>> 24] as number) ^
      (t3[bytes[i + 4] as number] as number) ^
      (t2[bytes[i + 5] as number] as number) ^
      (t1[bytes[i + 6] as number] as number) ^
      (t0[bytes[i + 7] as number] as number);
  }
  for (; i < end; i++) c = (t0[(c ^ (bytes[i] as number)) & 255] as number) ^ (c >>> 8);
  return ~c >>> 0;
}
