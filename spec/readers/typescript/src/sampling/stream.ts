import { permutationOf, type Permutation } from "./permutation.js";
import { drawEqual, drawTicket, Tickets } from "./tickets.js";
import { weightedOrder } from "./weighted-order.js";
import { allEqual, checkWeights } from "./weights.js";

/** How positions become rows (section 1). */
export type Mode = "ordered" | "weighted" | "permutation" | "weighted_order";

/** Positions are below this. */
export const POSITIONS = 1n << 63n;

/** The mode of a configuration (section 1).
 *
 * @throws RangeError for a weight that isn't finite and above zero.
 */
export function modeOf(shuffle: boolean, replacement: boolean, weights: ArrayLike<number | bigint>): Mode {
  const checked = checkWeights(weights);
  if (!shuffle) return "ordered";
  if (replacement) return "weighted";
  return allEqual(checked) ? "permutation" : "weighted_order";
}

/** What a draw stream depends on. */
export interface StreamOptions {
  readonly mode: Mode;
  /** How many rows the table has, 1 .. 2^62. */
  readonly rows: bigint | number;
  /** 0 .. 2^64-1; 0 where absent. */
  readonly seed?: bigint | number;
  /** 0 .. 2^32-1; 0 where absent. */
  readonly stream?: number;
  /** One weight a row. May be absent where all are equal; `weighted_order` needs them. */
  readonly weights?: ArrayLike<number | bigint>;
}

/** A function from positions to rows. Any position may be asked for, in any order. */
export class DrawStream {
  readonly mode: Mode;
  readonly rows: bigint;
  readonly seed: bigint;
  readonly stream: number;
  readonly #weights: Float64Array | undefined;
  readonly #tickets: Tickets | undefined;
  #permutation: { pass: bigint; value: Permutation } | undefined;
  #order: { pass: bigint; value: Uint32Array } | undefined;

  /** @throws RangeError where an option is out of its range. */
  constructor(options: StreamOptions) {
    this.mode = options.mode;
    this.rows = integer("rows", options.rows, 1n, 1n << 62n);
    this.seed = integer("seed", options.seed ?? 0n, 0n, (1n << 64n) - 1n);
    this.stream = Number(integer("stream", options.stream ?? 0, 0n, 0xffffffffn));
    if (options.weights !== undefined) {
      const weights = checkWeights(options.weights);
      if (BigInt(weights.length) !== this.rows) throw new RangeError(`${weights.length} weights for ${this.rows} rows`);
      if (this.mode === "weighted" && !allEqual(weights)) this.#tickets = new Tickets(weights);
      if (this.mode === "weighted_order") this.#weights = weights;
    } else if (this.mode === "weighted_order") {
      throw new RangeError("a weighted order needs weights");
    }
  }

  /** The row of a position.
   *
   * @throws RangeError for a position outside of 0 .. 2^63-1.
   */
  row(position: bigint): bigint {
    if (position < 0n || position >= POSITIONS) throw new RangeError(`position ${position} is outside of 0 .. 2^63 - 1`);
    const pass = position / this.rows;
    const place = position % this.rows;
    switch (this.mode) {
      case "ordered":
        return place;
      case "weighted":
        return this.#tickets === undefined
          ? drawEqual(this.rows, this.seed, this.stream, position)
          : drawTicket(this.#tickets, this.seed, this.stream, position);
      case "permutation":
        if (this.#permutation?.pass !== pass) this.#permutation = { pass, value: permutationOf(this.rows, this.seed, this.stream, pass) };
        return this.#permutation.value.row(place);
      case "weighted_order":
        if (this.#order?.pass !== pass) this.#order = { pass, value: weightedOrder(this.#weights as Float64Array, this.seed, this.stream, pass) };
        return BigInt(this.#order.value[Number(place)] as number);
    }
  }

  /** Positions and rows of the window `[start, start + count)`.
   *
   * @throws RangeError for a window that reaches past 2^63, at once.
   */
  window(start: bigint, count: bigint): Generator<[position: bigint, row: bigint], void> {
    if (start < 0n || count < 0n || start + count > POSITIONS) throw new RangeError(`the window ${start} + ${count} is outside of 0 .. 2^63`);
    return this.#window(start, start + count);
  }

  *#window(start: bigint, end: bigint): Generator<[bigint, bigint], void> {
    for (let position = start; position < end; position++) yield [position, this.row(position)];
  }
}

function integer(name: string, value: bigint | number, least: bigint, most: bigint): bigint {
  if (typeof value === "number" && !Number.isSafeInteger(value)) throw new RangeError(`${name} is ${value}, no exact integer; use a bigint`);
  const exact = BigInt(value);
  if (exact < least || exact > most) throw new RangeError(`${name} is ${exact}; ${least} .. ${most} are allowed`);
  return exact;
}
