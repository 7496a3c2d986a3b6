import { block, Domain, scale } from "./philox.js";
import { decompose } from "./weights.js";

/** The tickets of unequal weights (section 6.3). */
export class Tickets {
  /** q of each row. */
  readonly counts: BigUint64Array;
  /** S: their sum. */
  readonly sum: bigint;
  readonly #ends: BigUint64Array;

  /**
   * @param weights - Finite and above zero; at least one.
   */
  constructor(weights: Float64Array) {
    const n = weights.length;
    let largest = 0;
    for (const weight of weights) if (weight > largest) largest = weight;
    const { significand, exponent } = decompose(largest);
    const top = exponent + significand.toString(2).length - 1;
    const shifted = new BigUint64Array(n);
    let total = 0n;
    for (let i = 0; i < n; i++) {
      const one = decompose(weights[i] as number);
      const shift = one.exponent + 62 - top;
      // The significand has 53 bits: nothing remains of it beyond.
      const t = shift >= 0 ? one.significand << BigInt(shift) : shift <= -53 ? 0n : one.significand >> BigInt(-shift);
      shifted[i] = t;
      total += t;
    }
    const s = BigInt(Math.max(0, total.toString(2).length - 63));
    this.counts = shifted.map((t) => (t >> s > 1n ? t >> s : 1n));
    this.#ends = new BigUint64Array(n);
    let sum = 0n;
    this.counts.forEach((q, i) => {
      sum += q;
      this.#ends[i] = sum;
    });
    this.sum = sum;
  }

  /** The row a ticket belongs to: the first whose tickets and those before it are more. */
  row(ticket: bigint): number {
    let low = 0;
    let high = this.#ends.length - 1;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#ends[middle] as bigint) > ticket) high = middle;
      else low = middle + 1;
    }
    return low;
  }
}

/** The row of a position with unequal weights. */
export function drawTicket(tickets: Tickets, seed: bigint, stream: number, position: bigint): bigint {
  return BigInt(tickets.row(scale(block(seed, position, stream, Domain.Draw), tickets.sum)));
}

/** The row of a position with equal weights (section 6.2). */
export function drawEqual(rows: bigint, seed: bigint, stream: number, position: bigint): bigint {
  return scale(block(seed, position, stream, Domain.Draw), rows);
}
