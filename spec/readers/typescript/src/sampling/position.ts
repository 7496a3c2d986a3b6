import { JsonError, parseJson } from "../json.js";
import { POSITIONS, type Mode } from "./stream.js";

/** A saved position (section 12). */
export interface Position {
  readonly mode: Mode;
  readonly seed: bigint;
  readonly stream: number;
  readonly rows: bigint;
  readonly windowStart: bigint;
  readonly windowLength: bigint;
  readonly delivered: bigint;
  readonly next: bigint;
  readonly epochLength: bigint | null;
  /** Digest of the loaded caches, 64 digits. */
  readonly caches: string;
  /** The first 8 digits of the identities. */
  readonly cacheHeads: readonly string[];
  /** Rows digest; weights digest in the weighted modes. */
  readonly table: { readonly rows: string; readonly weights: string | null };
}

/** A position that can't be restored. */
export class PositionError extends Error {
  override readonly name = "PositionError";
  /** The member that is the reason; empty where it is no JSON object at all. */
  readonly member: string;

  constructor(member: string, message: string) {
    super(member === "" ? message : `member "${member}" of the position: ${message}`);
    this.member = member;
  }
}

const MODES: readonly Mode[] = ["ordered", "weighted", "permutation", "weighted_order"];
const MEMBERS = [
  "format", "version", "algorithm", "mode", "seed", "stream", "rows", "window_start", "window_len", "delivered", "next", "epoch_len", "caches",
  "cache_heads", "table",
];

/** Parses and checks the JSON text of a saved position.
 *
 * @throws PositionError
 */
export function parsePosition(text: string): Position {
  try {
    return checkPosition(parseJson(text));
  } catch (error) {
    if (error instanceof JsonError) throw new PositionError("", `no JSON: ${error.message}`);
    throw error;
  }
}

/** Checks the form of a saved position, already parsed.
 *
 * @throws PositionError with the name of the first member that is wrong, in the order of the text.
 */
export function checkPosition(value: unknown): Position {
  if (typeof value !== "object" || value === null || Array.isArray(value)) throw new PositionError("", "a position is a JSON object");
  const members = value as Record<string, unknown>;
  const get = (name: string): unknown => (Object.hasOwn(members, name) ? members[name] : undefined);
  const expect = (name: string, wanted: unknown): void => {
    if (get(name) !== wanted) throw new PositionError(name, `it is not ${JSON.stringify(wanted)}`);
  };
  const digits = (name: string, least: bigint, most: bigint): bigint => {
    const text = get(name);
    const number = typeof text === "string" && /^(0|[1-9][0-9]{0,19})$/.test(text) ? BigInt(text) : undefined;
    if (number === undefined || number < least || number > most) throw new PositionError(name, `it is no text of decimal digits from ${least} to ${most}`);
    return number;
  };

  expect("format", "dataset_rt.position");
  expect("version", 1);
  expect("algorithm", 1);
  // After the versions: another one may have other members.
  for (const name of Object.keys(members)) if (!MEMBERS.includes(name)) throw new PositionError(name, "it is unknown");
  const mode = MODES.find((one) => one === get("mode"));
  if (mode === undefined) throw new PositionError("mode", `it is none of ${MODES.join(", ")}`);
  const seed = digits("seed", 0n, (1n << 64n) - 1n);
  const stream = get("stream");
  if (typeof stream !== "number" || !Number.isInteger(stream) || stream < 0 || stream > 0xffffffff) throw new PositionError("stream", "it is no integer of 0 .. 2^32 - 1");
  const rows = digits("rows", 1n, 1n << 62n);
  const windowStart = digits("window_start", 0n, POSITIONS);
  const windowLength = digits("window_len", 0n, POSITIONS - windowStart);
  const delivered = digits("delivered", 0n, windowLength);
  const next = digits("next", windowStart + windowLength, POSITIONS);
  const epochLength = get("epoch_len") === null ? null : digits("epoch_len", 1n, POSITIONS - 1n);
  const caches = get("caches");
  if (!isDigits(caches, 64)) throw new PositionError("caches", "it is not 64 hexadecimal digits");
  const heads = get("cache_heads");
  if (!Array.isArray(heads) || heads.length < 1 || heads.length > 64 || !heads.every((head) => isDigits(head, 8))) {
    throw new PositionError("cache_heads", "it is no list of 1 .. 64 texts of 8 hexadecimal digits");
  }
  return {
    mode, seed, stream, rows, windowStart, windowLength, delivered, next, epochLength, caches,
    cacheHeads: heads as string[],
    table: checkTable(get("table"), mode),
  };
}

function checkTable(value: unknown, mode: Mode): Position["table"] {
  const fail = (message: string): never => {
    throw new PositionError("table", message);
  };
  if (typeof value !== "object" || value === null || Array.isArray(value)) return fail("it is no object");
  const table = value as Record<string, unknown>;
  if (Object.keys(table).sort().join() !== "rows,weights") fail("its members are not `rows` and `weights`");
  const { rows, weights } = table as { rows: unknown; weights: unknown };
  if (!isDigits(rows, 64)) return fail("`rows` is not 64 hexadecimal digits");
  if (isWeighted(mode)) return isDigits(weights, 64) ? { rows, weights } : fail(`\`weights\` is not 64 hexadecimal digits in mode ${mode}`);
  return weights === null ? { rows, weights } : fail(`\`weights\` is not null in mode ${mode}`);
}

function isDigits(value: unknown, count: number): value is string {
  return typeof value === "string" && value.length === count && /^[0-9a-f]*$/.test(value);
}

function isWeighted(mode: Mode): boolean {
  return mode === "weighted" || mode === "weighted_order";
}

/** What a position must have in common with the dataset it is restored into. */
export type PositionOwner = Pick<Position, "caches" | "rows" | "mode" | "seed" | "stream" | "table">;

/** Refuses a position of another dataset (section 12).
 *
 * @throws PositionError with the name of the first member that differs.
 */
export function matchPosition(position: Position, owner: PositionOwner): void {
  for (const name of ["caches", "rows", "mode", "seed", "stream"] as const) {
    if (position[name] !== owner[name]) throw new PositionError(name, `it is ${position[name]}, the dataset's is ${owner[name]}`);
  }
  if (position.table.rows !== owner.table.rows) throw new PositionError("table.rows", "the tables have other rows");
  if (isWeighted(position.mode) && position.table.weights !== owner.table.weights) throw new PositionError("table.weights", "the tables have other weights");
}

/** The JSON text of a position. */
export function formatPosition(position: Position): string {
  const { mode, stream, caches, cacheHeads, table } = position;
  return JSON.stringify({
    format: "dataset_rt.position", version: 1, algorithm: 1, mode,
    seed: String(position.seed), stream, rows: String(position.rows),
    window_start: String(position.windowStart), window_len: String(position.windowLength),
    delivered: String(position.delivered), next: String(position.next),
    epoch_len: position.epochLength === null ? null : String(position.epochLength),
    caches, cache_heads: cacheHeads, table: { rows: table.rows, weights: table.weights },
  });
}
