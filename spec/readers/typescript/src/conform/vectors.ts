import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { isDeepStrictEqual } from "node:util";

import { describe } from "./document.js";
import type { Members, Tagged } from "./tagged.js";
import { FORMAT_UNITS } from "./units-format.js";
import { SAMPLING_UNITS } from "./units-sampling.js";

/** A vector as `index.json` lists it. */
export interface Vector {
  readonly id: string;
  readonly kind: "unit" | "valid" | "invalid";
  readonly path: string;
  readonly expected: string;
  readonly checks?: readonly string[];
}

/** What came of a vector; no `problem` where it passed. */
export interface Outcome {
  readonly vector: Vector;
  readonly problem?: string;
  /** The condition that was found broken, where one was. */
  readonly check?: string;
}

const UNITS = { ...FORMAT_UNITS, ...SAMPLING_UNITS };

/** Reads the list of vectors. */
export async function listVectors(folder: string): Promise<Vector[]> {
  return (JSON.parse(await readFile(join(folder, "index.json"), "utf8")) as { vectors: Vector[] }).vectors;
}

/** Runs every listed vector, then reports paths that are not listed. */
export async function* runVectors(folder: string): AsyncGenerator<Outcome, void> {
  const vectors = await listVectors(folder);
  for (const vector of vectors) {
    try {
      yield { vector, ...(await RUN[vector.kind](folder, vector)) };
    } catch (error) {
      yield { vector, problem: `failed: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}` };
    }
  }
  const listed = new Set(vectors.map(({ path }) => path));
  for (const kind of ["units", "valid", "invalid"]) {
    for (const name of await readdir(join(folder, "v1", kind))) {
      const path = `v1/${kind}/${name}`;
      if (!listed.has(path)) yield { vector: { id: path, kind: "unit", path, expected: "" }, problem: "the path isn't listed" };
    }
  }
}

const RUN: Record<Vector["kind"], (folder: string, vector: Vector) => Promise<Omit<Outcome, "vector">>> = {
  unit: async (folder, { id, path }) => {
    const rule = UNITS[id];
    if (rule === undefined) return { problem: "no rule for it" };
    const { cases } = JSON.parse(await readFile(join(folder, path), "utf8")) as { cases: { in: Members; out: Tagged }[] };
    if (cases.length === 0) return { problem: "no cases" };
    for (const [i, one] of cases.entries()) {
      const out = await rule(one.in, folder);
      if (!isDeepStrictEqual(out, one.out)) return { problem: `case ${i}: ${difference(out, one.out)}` };
    }
    return {};
  },
  valid: async (folder, { path }) => {
    const { document, error } = await describe(join(folder, path, "cache"), false);
    if (error !== undefined) return { problem: error.message };
    const expected = JSON.parse(await readFile(join(folder, path, "expected.json"), "utf8")) as Tagged;
    return isDeepStrictEqual(document, expected) ? {} : { problem: difference(document, expected) };
  },
  invalid: async (folder, { path, expected }) => {
    const { error } = await describe(join(folder, path, "cache"), false);
    if (error === undefined) return { problem: `was read; ${expected} was expected` };
    return { check: error.check, ...(error.code === expected ? {} : { problem: `${expected} was expected: ${error.message}` }) };
  },
};

function difference(found: Tagged, expected: Tagged): string {
  const show = (value: Tagged): string => {
    const text = JSON.stringify(value);
    return text.length > 300 ? `${text.slice(0, 300)}...` : text;
  };
  return `${show(found)} was found, ${show(expected)} was expected`;
}
