#!/usr/bin/env node
import { existsSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";

import { CacheError } from "../errors.js";
import { openDirectory } from "../node.js";
import { describe } from "./document.js";
import { drawOrder, parseOrder } from "./order.js";
import { runVectors } from "./vectors.js";

const USAGE = `usage: dataset-rt-conform CACHE [--all-rows]
       dataset-rt-conform CACHE --order ORDER
       dataset-rt-conform --batch [--all-rows]   (cache folders on standard input)
       dataset-rt-conform --vectors FOLDER
`;

async function main(args: readonly string[]): Promise<number> {
  const [first, second, third] = args;
  if (first === "--batch" && args.length === 1) return batch(false);
  if (first === "--batch" && second === "--all-rows" && args.length === 2) return batch(true);
  if (first === "--vectors" && second !== undefined && args.length === 2) return vectors(second);
  if (first !== undefined && !first.startsWith("--")) {
    if (args.length === 1) return cache(first, false);
    if (second === "--all-rows" && args.length === 2) return cache(first, true);
    if (second === "--order" && third !== undefined && args.length === 3) return order(first, third);
  }
  process.stderr.write(USAGE);
  return 2;
}

async function cache(folder: string, allRows: boolean): Promise<number> {
  const { document, error } = await describe(folder, allRows);
  process.stdout.write(`${JSON.stringify(document)}\n`);
  if (error === undefined) return 0;
  process.stderr.write(`${error.message}\n`);
  return 1;
}

async function batch(allRows: boolean): Promise<number> {
  for await (const folder of createInterface({ input: process.stdin, crlfDelay: Infinity })) {
    if (folder === "") continue;
    const { document, error } = await describe(folder, allRows);
    process.stdout.write(`${JSON.stringify(document)}\n`);
    if (error !== undefined) process.stderr.write(`${folder}: ${error.message}\n`);
  }
  return 0;
}

async function order(folder: string, text: string): Promise<number> {
  const wanted = parseOrder(text);
  if (wanted === undefined) {
    process.stderr.write("ORDER is a JSON object with mode, seed, stream, start and count\n");
    return 2;
  }
  try {
    const opened = await openDirectory(folder);
    process.stdout.write(`${JSON.stringify(drawOrder(wanted, opened.samples))}\n`);
    await opened.close();
    return 0;
  } catch (error) {
    if (!(error instanceof CacheError)) throw error;
    process.stdout.write(`${JSON.stringify({ outcome: "invalid", code: error.code })}\n`);
    process.stderr.write(`${error.message}\n`);
    return 1;
  }
}

async function vectors(folder: string): Promise<number> {
  if (!existsSync(join(folder, "index.json"))) {
    process.stderr.write(`${folder} has no index.json\n`);
    return 2;
  }
  const counts = { unit: [0, 0], valid: [0, 0], invalid: [0, 0] } as Record<string, [number, number]>;
  let failed = 0;
  for await (const { vector, problem } of runVectors(folder)) {
    const count = counts[vector.kind] as [number, number];
    count[1]++;
    if (problem === undefined) {
      count[0]++;
    } else {
      failed++;
      process.stdout.write(`${vector.id}: ${problem}\n`);
    }
  }
  const parts = Object.entries(counts).map(([kind, [passed, all]]) => `${kind} ${passed}/${all}`);
  process.stdout.write(`${parts.join(", ")}: ${failed === 0 ? "all passed" : `${failed} failed`}\n`);
  return failed === 0 ? 0 : 1;
}

try {
  process.exitCode = await main(process.argv.slice(2));
} catch (error) {
  // Neither a cache that was read nor one that was refused: bytes couldn't be had, or don't fit into memory.
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = 3;
}
