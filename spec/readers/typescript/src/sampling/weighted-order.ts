import { LimitError } from "../errors.js";
import { block, blockWords, Domain, join } from "./philox.js";
import { bitsOf, frexp } from "./weights.js";

const SQRT2 = 1.4142135623730951;
const LN2 = 97551793252584 / 2 ** 47;

/** The exponential variate E(x) of section 8.1.
 *
 * @param x - Below 2^64.
 */
export function exponential(x: bigint): number {
  return exponentialOf(Number(x >> 11n) + 1);
}

/** E for u = (x >> 11) + 1, an integer of 1 .. 2^53. */
function exponentialOf(u: number): number {
  const { mantissa, exponent } = frexp(u);
  // u = m * 2^(53 - k) with m in [1, 2).
  let m = mantissa * 2;
  let k = 53 - (exponent - 1);
  if (m > SQRT2) {
    m /= 2;
    k -= 1;
  }
  const s = (1 - m) / (1 + m);
  const z = s * s;
  let t = 325 / 256;
  t = 704 / 225 - z / t;
  t = 81 / 64 - z / t;
  t = 28 / 9 - z / t;
  t = 5 / 4 - z / t;
  t = 3 - z / t;
  t = 1 - z / t;
  return k * LN2 + 2 * (s / t);
}

/** The key that orders rows as E / w does (section 8.2). */
export function race(e: number, weight: number): bigint {
  if (e === 0) return 0n;
  const one = frexp(e);
  const two = frexp(weight);
  return bitsOf(one.mantissa / two.mantissa) + (BigInt(one.exponent - two.exponent + 64) << 52n);
}

/** The sub-key of a pass. */
export function passKey(seed: bigint, stream: number, pass: bigint): bigint {
  return block(seed, pass, stream, Domain.Pass) & 0xffffffffffffffffn;
}

/** The keys of all rows in a pass. */
export function raceKeys(weights: Float64Array, seed: bigint, stream: number, pass: bigint): BigUint64Array {
  const key = passKey(seed, stream, pass);
  const keys = new BigUint64Array(weights.length);
  for (let i = 0; i < keys.length; i++) {
    const [w0, w1] = blockWords(key, BigInt(i), stream, Domain.Race);
    keys[i] = race(exponential(join(w0, w1)), weights[i] as number);
  }
  return keys;
}

/** All rows of a pass by ascending (key, row).
 *
 * @throws LimitError for 2^32 rows and more.
 */
export function weightedOrder(weights: Float64Array, seed: bigint, stream: number, pass: bigint): Uint32Array {
  if (weights.length >= 2 ** 32) throw new LimitError(`${weights.length} rows can't be sorted here`);
  const keys = raceKeys(weights, seed, stream, pass);
  return Uint32Array.from(keys, (_, i) => i).sort((i, j) => {
    const a = keys[i] as bigint;
    const b = keys[j] as bigint;
    return a < b ? -1 : a > b ? 1 : i - j;
  });
}
