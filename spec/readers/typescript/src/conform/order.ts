import { JsonError, parseJson, type JsonValue } from "../json.js";
import { DrawStream, POSITIONS, type Mode } from "../sampling/stream.js";
import { tagged, type Tagged } from "./tagged.js";

const MODES: Readonly<Record<string, Mode>> = { ordered: "ordered", weighted: "weighted", permutation: "permutation", weighted_order: "weighted_order" };

/** An order as the command takes it. */
export interface Order {
  readonly mode: Mode;
  readonly seed: bigint;
  readonly stream: number;
  readonly start: bigint;
  readonly count: bigint;
}

/** Reads the argument of `--order`; `undefined` where it is wrong. */
export function parseOrder(text: string): Order | undefined {
  let value: JsonValue;
  try {
    value = parseJson(text);
  } catch (error) {
    if (error instanceof JsonError) return undefined;
    throw error;
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) return undefined;
  const members = value as Record<string, JsonValue | undefined>;
  const number = (name: string, below: bigint): bigint | undefined => {
    const member = members[name];
    const digits = typeof member === "number" ? String(member) : member;
    if (typeof digits !== "string" || !/^[0-9]{1,20}$/.test(digits)) return undefined;
    const found = BigInt(digits);
    return found < below ? found : undefined;
  };
  const name = members["mode"];
  const mode = typeof name === "string" && Object.hasOwn(MODES, name) ? MODES[name] : undefined;
  const seed = number("seed", 1n << 64n);
  const stream = number("stream", 1n << 32n);
  const start = number("start", POSITIONS);
  const count = number("count", POSITIONS + 1n);
  if (mode === undefined || seed === undefined || stream === undefined || start === undefined || count === undefined) return undefined;
  return start + count > POSITIONS ? undefined : { mode, seed, stream: Number(stream), start, count };
}

/** The rows of a window over all samples once, with row number + 1 as weight. */
export function drawOrder(order: Order, samples: number): Tagged {
  const weighted = order.mode === "weighted" || order.mode === "weighted_order";
  const weights = weighted ? Float64Array.from({ length: samples }, (_, i) => i + 1) : undefined;
  const stream = new DrawStream({ ...order, rows: samples, ...(weights === undefined ? {} : { weights }) });
  return tagged.uint64s(Array.from(stream.window(order.start, order.count), ([, row]) => row));
}
