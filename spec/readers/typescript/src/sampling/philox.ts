const MULTIPLIER_0 = 0xd2511f53;
const MULTIPLIER_1 = 0xcd9e8d57;
const WEYL_0 = 0x9e3779b9;
const WEYL_1 = 0xbb67ae85;

/** What a block is drawn for (section 3): no two uses share a block. */
export const Domain = { Draw: 1, Round: 2, Pass: 3, Race: 4, Small: 5 } as const;

/** The upper 32 bits of the product of two unsigned 32-bit numbers. */
export function mulHigh(a: number, b: number): number {
  const aLow = a & 0xffff;
  const aHigh = a >>> 16;
  const bLow = b & 0xffff;
  const bHigh = b >>> 16;
  const middle = aHigh * bLow + ((aLow * bLow) >>> 16);
  const other = aLow * bHigh + (middle % 0x10000);
  return aHigh * bHigh + Math.floor(middle / 0x10000) + Math.floor(other / 0x10000);
}

/** The lower 32 bits of the product. */
export function mulLow(a: number, b: number): number {
  return Math.imul(a, b) >>> 0;
}

/** Four 32-bit words. */
export type Words = [number, number, number, number];

/** Philox4x32-10: the counter after ten rounds under the key; all are unsigned 32-bit numbers. */
export function philox(counter: Readonly<Words>, key: readonly [number, number]): Words {
  let [c0, c1, c2, c3] = counter;
  let [k0, k1] = key;
  for (let round = 0; round < 10; round++) {
    const high0 = mulHigh(MULTIPLIER_0, c0);
    const low0 = mulLow(MULTIPLIER_0, c0);
    const high1 = mulHigh(MULTIPLIER_1, c2);
    const low1 = mulLow(MULTIPLIER_1, c2);
    c0 = (high1 ^ c1 ^ k0) >>> 0;
    c1 = low1;
    c2 = (high0 ^ c3 ^ k1) >>> 0;
    c3 = low0;
    k0 = (k0 + WEYL_0) >>> 0;
    k1 = (k1 + WEYL_1) >>> 0;
  }
  return [c0, c1, c2, c3];
}

/** The words of a block, least significant first.
 *
 * @param key - Below 2^64.
 * @param index - Below 2^64.
 * @param stream - Below 2^32.
 * @param sub - Below 2^24.
 */
export function blockWords(key: bigint, index: bigint, stream: number, domain: number, sub = 0): Words {
  return philox([low32(index), high32(index), stream, domain + 256 * sub], [low32(key), high32(key)]);
}

/** A block as a 128-bit integer. */
export function block(key: bigint, index: bigint, stream: number, domain: number, sub = 0): bigint {
  const [w0, w1, w2, w3] = blockWords(key, index, stream, domain, sub);
  return (join(w2, w3) << 64n) | join(w0, w1);
}

/** A bounded integer 0 .. m-1 of a block (section 4). */
export function scale(x: bigint, m: bigint): bigint {
  return (x * m) >> 128n;
}

/** The 64-bit number of two words. */
export function join(low: number, high: number): bigint {
  return (BigInt(high) << 32n) | BigInt(low);
}

/** The lower 32 bits of a number below 2^64. */
export function low32(x: bigint): number {
  return Number(x & 0xffffffffn);
}

/** The upper 32 bits of a number below 2^64. */
export function high32(x: bigint): number {
  return Number(x >> 32n);
}
