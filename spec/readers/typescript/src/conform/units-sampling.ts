import { cachesDigest, runsOf, tableDigest } from "../sampling/digests.js";
import { mix, permutationNumber, permutationOf, roundKeys, sides } from "../sampling/permutation.js";
import { block, philox, scale, type Words } from "../sampling/philox.js";
import { checkPosition, PositionError } from "../sampling/position.js";
import { DrawStream, modeOf, type StreamOptions } from "../sampling/stream.js";
import { Tickets } from "../sampling/tickets.js";
import { exponential, race, raceKeys, weightedOrder } from "../sampling/weighted-order.js";
import { bitsOf, checkWeights } from "../sampling/weights.js";
import { rankPositions, workerSteps, type Policy } from "../sampling/windows.js";
import { read, tagged, type Members, type Tagged } from "./tagged.js";
import type { UnitRule } from "./units-format.js";

/** Rules of the unit vectors of the sampling algorithm. */
export const SAMPLING_UNITS: Readonly<Record<string, UnitRule>> = {
  "unit/philox": (input) => tagged.uint64s(philox(read.numbers(input, "counter") as Words, read.numbers(input, "key") as [number, number])),
  "unit/blocks": (input) =>
    tagged.uint128(
      block(read.big(input, "key"), read.big(input, "index"), read.number(input, "stream"), read.number(input, "domain"), read.number(input, "sub")),
    ),
  "unit/scale": (input) => tagged.uint64(scale(read.big(input, "x"), read.big(input, "m"))),
  "unit/ordered": (input) => rows(input, { mode: "ordered", rows: read.big(input, "rows") }),
  "unit/tickets": (input) => {
    const tickets = new Tickets(checkWeights(read.floats(input, "weights")));
    return { tickets: tagged.uint64s(tickets.counts), sum: tagged.uint64(tickets.sum) };
  },
  "unit/draws": (input) => rows(input, weightedBy(input, "weighted")),
  "unit/draws-equal": (input) => rows(input, { mode: "weighted", rows: read.big(input, "rows") }),
  "unit/modes": (input) => tagged.utf8(modeOf(read.bool(input, "shuffle"), read.bool(input, "replacement"), read.floats(input, "weights"))),
  "unit/permutation-number": (input) =>
    tagged.uint64(permutationNumber(read.big(input, "rows"), read.big(input, "seed"), read.number(input, "stream"), read.big(input, "pass"))),
  "unit/permutation-small": wholePass,
  "unit/permutation-large": wholePass,
  "unit/permutation-points": (input) => {
    const n = read.big(input, "rows");
    const { a, b } = sides(n);
    const permutation = permutationOf(n, read.big(input, "seed"), read.number(input, "stream"), read.big(input, "pass"));
    const found = read.bigs(input, "places").map((place) => {
      const row = permutation.row(place);
      if (permutation.place(row) !== place) throw new Error(`the inverse of place ${place} leads elsewhere`);
      return row;
    });
    return { sides: tagged.uint64s([a, b]), rows: tagged.uint64s(found) };
  },
  "unit/permutation-positions": (input) => rows(input, { mode: "permutation", rows: read.big(input, "rows") }),
  "unit/round-keys": (input) => tagged.uint64s(roundKeys(read.big(input, "seed"), read.number(input, "stream"), read.big(input, "pass"))),
  "unit/mix": (input) => tagged.uint64(mix(read.big(input, "x"))),
  "unit/exponential": (input) => tagged.float64(bitsOf(exponential(read.big(input, "x")))),
  "unit/race": (input) => tagged.uint64(race(read.float(input, "e"), read.float(input, "weight"))),
  "unit/weighted-order": (input) => {
    const from = [checkWeights(read.floats(input, "weights")), read.big(input, "seed"), read.number(input, "stream"), read.big(input, "pass")] as const;
    return { keys: tagged.uint64s(raceKeys(...from)), order: tagged.uint64s(weightedOrder(...from)) };
  },
  "unit/weighted-order-positions": (input) => rows(input, weightedBy(input, "weighted_order")),
  "unit/ranks": ranks,
  "unit/workers": (input) =>
    tagged.uint64s(workerSteps(read.number(input, "steps"), read.number(input, "workers"), read.number(input, "worker"), read.number(input, "batch"))),
  "unit/table-digest": tableDigests,
  "unit/caches-digest": (input) => tagged.utf8(cachesDigest(read.texts(input, "identities"))),
  "unit/position": position,
  "unit/position-ranges": position,
};

function position(input: Members): Record<string, Tagged> {
  try {
    checkPosition(input["position"]);
    return { accepted: tagged.bool(true) };
  } catch (error) {
    if (error instanceof PositionError) return { accepted: tagged.bool(false), member: tagged.utf8(error.member) };
    throw error;
  }
}

function weightedBy(input: Members, mode: "weighted" | "weighted_order"): StreamOptions {
  const weights = read.floats(input, "weights");
  return { mode, rows: weights.length, weights };
}

function rows(input: Members, options: StreamOptions): Tagged {
  const seeded = "seed" in input ? { seed: read.big(input, "seed"), stream: read.number(input, "stream") } : {};
  const stream = new DrawStream({ ...options, ...seeded });
  return tagged.uint64s(read.bigs(input, "positions").map((position) => stream.row(position)));
}

function wholePass(input: Members): Tagged {
  const n = read.number(input, "rows");
  const permutation = permutationOf(BigInt(n), read.big(input, "seed"), read.number(input, "stream"), read.big(input, "pass"));
  const all = Array.from({ length: n }, (_, i) => BigInt(i));
  return { order: tagged.uint64s(all.map((place) => permutation.row(place))), inverse: tagged.uint64s(all.map((row) => permutation.place(row))) };
}

function ranks(input: Members): Tagged {
  const window = { start: read.big(input, "start"), length: read.big(input, "length") };
  try {
    const taken = [
      ...rankPositions(read.text(input, "policy") as Policy, window, read.big(input, "delivered"), read.big(input, "ranks"), read.big(input, "rank")),
    ];
    return {
      positions: tagged.uint64s(taken.map(({ position }) => position)),
      padding: { type: "bool", values: taken.map(({ padding }) => String(padding)) },
    };
  } catch (error) {
    if (error instanceof RangeError) return { refused: tagged.bool(true) };
    throw error;
  }
}

function tableDigests(input: Members): Tagged {
  const samples = read.bigs(input, "sample");
  const table = read.bigs(input, "cache").map((cache, i): [bigint, bigint] => [cache, samples[i] as bigint]);
  const runs = runsOf(table, "weights" in input ? read.floats(input, "weights") : undefined);
  return {
    runs: runs.map(({ cache, first, count, weight }) => ({
      cache: tagged.uint64(cache),
      first: tagged.uint64(first),
      count: tagged.uint64(count),
      ...(weight === undefined ? {} : { weight_bits: tagged.uint64(weight) }),
    })),
    digest: tagged.utf8(tableDigest(runs)),
  };
}
