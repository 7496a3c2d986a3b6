import { block, blockWords, Domain, high32, join, low32, mulHigh, mulLow, scale } from "./philox.js";

/** The largest table whose permutations are numbered. */
export const SMALL = 20n;

/** The permutation of one pass: places to rows and back. */
export interface Permutation {
  /** The row at a place, both 0 .. n-1. */
  row(place: bigint): bigint;
  /** The place of a row. */
  place(row: bigint): bigint;
}

/** The permutation of a pass over `rows` rows (section 7). */
export function permutationOf(rows: bigint, seed: bigint, stream: number, pass: bigint): Permutation {
  return rows <= SMALL ? new NumberedPermutation(rows, seed, stream, pass) : new NetworkPermutation(rows, seed, stream, pass);
}

/** The draw below n! behind a pass of at most 20 rows. */
export function permutationNumber(rows: bigint, seed: bigint, stream: number, pass: bigint): bigint {
  return scale(block(seed, pass, stream, Domain.Small), factorial(rows));
}

function factorial(n: bigint): bigint {
  return n <= 1n ? 1n : n * factorial(n - 1n);
}

class NumberedPermutation implements Permutation {
  readonly #rows: bigint[] = [];

  constructor(rows: bigint, seed: bigint, stream: number, pass: bigint) {
    let r = permutationNumber(rows, seed, stream, pass);
    const left = Array.from({ length: Number(rows) }, (_, i) => BigInt(i));
    for (let i = rows - 1n; i >= 0n; i--) {
      const f = factorial(i);
      this.#rows.push(...left.splice(Number(r / f), 1));
      r %= f;
    }
  }

  row(place: bigint): bigint {
    return this.#rows[Number(place)] as bigint;
  }

  place(row: bigint): bigint {
    return BigInt(this.#rows.indexOf(row));
  }
}

/** The sides of the network for more than 20 rows: the smallest even a with a * a >= n, and ceil(n / a). */
export function sides(rows: bigint): { a: bigint; b: bigint } {
  let a = ceilRoot(rows);
  a += a % 2n;
  return { a, b: (rows + a - 1n) / a };
}

/** The smallest integer whose square is at least n; by integers, since a root in binary64 is wrong for some n above 2^52. */
function ceilRoot(n: bigint): bigint {
  let low = 1n;
  let high = 1n << 32n;
  while (low < high) {
    const middle = (low + high) >> 1n;
    if (middle * middle >= n) high = middle;
    else low = middle + 1n;
  }
  return low;
}

/** The 24 round keys of a pass, 64 bits each. */
export function roundKeys(seed: bigint, stream: number, pass: bigint): bigint[] {
  const keys: bigint[] = [];
  for (let i = 0; i < 12; i++) {
    const [w0, w1, w2, w3] = blockWords(seed, pass, stream, Domain.Round, i);
    keys.push(join(w0, w1), join(w2, w3));
  }
  return keys;
}

// 64-bit numbers are pairs of 32-bit halves here: a place takes 24 rounds, and BigInts would make each of them many times slower.
let high = 0;
let low = 0;

function xorShift(by: number): void {
  low = (low ^ ((low >>> by) | (high << (32 - by)))) >>> 0;
  high = (high ^ (high >>> by)) >>> 0;
}

function multiply(factorHigh: number, factorLow: number): void {
  high = (mulHigh(low, factorLow) + mulLow(high, factorLow) + mulLow(low, factorHigh)) >>> 0;
  low = mulLow(low, factorLow);
}

/** Leaves mix(x) of section 7.2 in `high` and `low`, which hold x. */
function mixHalves(): void {
  xorShift(30);
  multiply(0xbf58476d, 0x1ce4e5b9);
  xorShift(27);
  multiply(0x94d049bb, 0x133111eb);
  xorShift(31);
}

/** The mixing function of the network, on numbers below 2^64. */
export function mix(x: bigint): bigint {
  high = high32(x);
  low = low32(x);
  mixHalves();
  return join(low, high);
}

class NetworkPermutation implements Permutation {
  readonly #rows: bigint;
  readonly #a: number;
  readonly #b: number;
  readonly #bBig: bigint;
  readonly #high = new Uint32Array(24);
  readonly #low = new Uint32Array(24);

  constructor(rows: bigint, seed: bigint, stream: number, pass: bigint) {
    this.#rows = rows;
    const { a, b } = sides(rows);
    // n is at most 2^62, so both are at most 2^31.
    this.#a = Number(a);
    this.#b = Number(b);
    this.#bBig = b;
    roundKeys(seed, stream, pass).forEach((key, i) => {
      this.#high[i] = high32(key);
      this.#low[i] = low32(key);
    });
  }

  row(place: bigint): bigint {
    const a = this.#a;
    const b = this.#b;
    do {
      let left = Number(place / this.#bBig);
      let right = Number(place % this.#bBig);
      for (let i = 0; i < 24; i += 2) {
        left = (left + this.#step(right, i, a)) % a;
        right = (right + this.#step(left, i + 1, b)) % b;
      }
      place = BigInt(left) * this.#bBig + BigInt(right);
    } while (place >= this.#rows);
    return place;
  }

  place(row: bigint): bigint {
    const a = this.#a;
    const b = this.#b;
    do {
      let left = Number(row / this.#bBig);
      let right = Number(row % this.#bBig);
      for (let i = 22; i >= 0; i -= 2) {
        right = (right + b - this.#step(left, i + 1, b)) % b;
        left = (left + a - this.#step(right, i, a)) % a;
      }
      row = BigInt(left) * this.#bBig + BigInt(right);
    } while (row >= this.#rows);
    return row;
  }

  /** (mix(x xor k_i) * m) >> 64, below m. */
  #step(x: number, i: number, m: number): number {
    high = this.#high[i] as number;
    low = ((this.#low[i] as number) ^ x) >>> 0;
    mixHalves();
    return mulHigh(high, m) + (mulLow(high, m) + mulHigh(low, m) >= 0x100000000 ? 1 : 0);
  }
}
