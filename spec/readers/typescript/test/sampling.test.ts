import assert from "node:assert/strict";
import { test } from "node:test";

import { DrawStream, formatPosition, matchPosition, modeOf, parsePosition, PositionError, rankPositions, Windows, type Position } from "../dist/index.js";

test("an option outside of its range is refused, never rounded", () => {
  const make = (options: object) => () => new DrawStream({ mode: "ordered", rows: 3, ...options });
  for (const options of [{ rows: 0 }, { rows: 2n ** 62n + 1n }, { rows: 1.5 }, { seed: 2n ** 64n }, { seed: -1 }, { seed: 2 ** 60 }, { stream: 2 ** 32 }, { stream: -1 }]) {
    assert.throws(make(options), RangeError, JSON.stringify(options, (_, value) => (typeof value === "bigint" ? String(value) : value)));
  }
  const stream = new DrawStream({ mode: "ordered", rows: 3 });
  assert.equal(stream.row(2n ** 63n - 1n), (2n ** 63n - 1n) % 3n);
  assert.throws(() => stream.row(2n ** 63n), RangeError);
  assert.throws(() => stream.row(-1n), RangeError);
  assert.throws(() => stream.window(2n ** 63n - 1n, 2n), RangeError);
});

test("a weight that isn't finite and above zero is refused in every mode", () => {
  for (const weight of [0, -1, Infinity, NaN, -0]) {
    for (const mode of ["ordered", "weighted", "permutation", "weighted_order"] as const) {
      assert.throws(() => new DrawStream({ mode, rows: 2, weights: [1, weight] }), RangeError);
    }
    assert.throws(() => modeOf(false, false, [weight]), RangeError);
  }
  assert.throws(() => new DrawStream({ mode: "weighted", rows: 2, weights: [1] }), RangeError);
  assert.throws(() => new DrawStream({ mode: "weighted_order", rows: 2 }), RangeError);
});

test("integer weights are rounded to nearest, ties to even", () => {
  assert.equal(modeOf(true, false, [2n ** 53n, 2n ** 53n + 1n]), "permutation");
  assert.equal(modeOf(true, false, [2n ** 53n + 2n, 2n ** 53n + 3n]), "weighted_order");
});

test("positions may be asked for in any order", () => {
  const weights = [1, 2, 3, 4, 5];
  for (const mode of ["weighted", "permutation", "weighted_order"] as const) {
    const there = new DrawStream({ mode, rows: 5, seed: 7, weights });
    const back = new DrawStream({ mode, rows: 5, seed: 7, weights });
    const positions = Array.from({ length: 40 }, (_, i) => BigInt(i));
    const forward = positions.map((position) => there.row(position));
    assert.deepEqual(positions.reverse().map((position) => back.row(position)).reverse(), forward);
  }
});

test("windows follow one another, and ranks share them", () => {
  const windows = new Windows(10n, 7n);
  assert.deepEqual([windows.take(), windows.take(), windows.next], [{ start: 0n, length: 7n }, { start: 7n, length: 7n }, 14n]);
  assert.throws(() => new Windows(10n, 1n, 2n ** 63n).take(), RangeError);
  const window = { start: 100n, length: 10n };
  const take = (rank: bigint) => [...rankPositions("pad", window, 0n, 3n, rank)].map(({ position }) => position);
  assert.deepEqual([take(0n), take(1n), take(2n)], [[100n, 103n, 106n, 109n], [101n, 104n, 107n, 100n], [102n, 105n, 108n, 101n]]);
  for (const policy of ["pad", "drop", "error"] as const) assert.throws(() => rankPositions(policy, window, 0n, 11n, 0n), RangeError);
});

test("a position survives its text, and another dataset refuses it by the member", () => {
  const position: Position = {
    mode: "weighted", seed: 2n ** 64n - 1n, stream: 3, rows: 7n, windowStart: 20n, windowLength: 10n, delivered: 4n, next: 30n, epochLength: null,
    caches: "0".repeat(64), cacheHeads: ["00000000"], table: { rows: "1".repeat(64), weights: "2".repeat(64) },
  };
  assert.deepEqual(parsePosition(formatPosition(position)), position);
  matchPosition(position, position);
  assert.throws(() => matchPosition(position, { ...position, rows: 8n }), (error: PositionError) => error.member === "rows");
  assert.throws(() => matchPosition(position, { ...position, table: { ...position.table, weights: "3".repeat(64) } }), (error: PositionError) => error.member === "table.weights");
  for (const text of ["", "[]", "null", '{"format":"dataset_rt.position","format":"dataset_rt.position"}']) assert.throws(() => parsePosition(text), PositionError);
});
