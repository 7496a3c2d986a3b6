import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";

import { PACKAGE, validFolder, VECTORS } from "./support.js";

/** Specifiers of everything a module of the build needs, from its entry on. */
function needs(entry: string): Set<string> {
  const outside = new Set<string>();
  const seen = new Set<string>();
  const follow = (path: string): void => {
    if (seen.has(path)) return;
    seen.add(path);
    const text = readFileSync(path, "utf8");
    for (const [, specifier] of text.matchAll(/(?:from\s+|import\s+|import\()["']([^"']+)["']/g) as Iterable<[string, string]>) {
      if (specifier.startsWith(".")) follow(join(dirname(path), specifier));
      else outside.add(specifier);
    }
    assert.doesNotMatch(text.replace(/\/\*[\s\S]*?\*\/|\/\/.*/g, ""), /\b(?:process|Buffer|__dirname|require)\b/, path);
  };
  follow(join(PACKAGE, "dist", entry));
  assert.ok(seen.size > 1);
  return outside;
}

test("the core needs nothing but a browser, and the Arrow entry nothing but Arrow", () => {
  assert.deepEqual([...needs("index.js")], []);
  assert.deepEqual([...needs("arrow.js")], ["apache-arrow"]);
  assert.ok([...needs("node.js")].every((specifier) => specifier.startsWith("node:")));
});

function run(args: string[], input = ""): { status: number | null; stdout: string; stderr: string } {
  return spawnSync(process.execPath, [join(PACKAGE, "dist", "conform", "main.js"), ...args], { input, encoding: "utf8" });
}

test("the command answers as the vectors' README says", () => {
  const valid = run([validFolder("minimal")]);
  assert.equal(valid.status, 0);
  assert.deepEqual(JSON.parse(valid.stdout), JSON.parse(readFileSync(join(validFolder("minimal"), "..", "expected.json"), "utf8")));

  const bad = join(VECTORS, "v1", "invalid", "shard-id", "cache");
  const invalid = run([bad]);
  assert.equal(invalid.status, 1);
  assert.deepEqual(JSON.parse(invalid.stdout), { outcome: "invalid", code: "shard_invalid" });
  assert.match(invalid.stderr, /shards\//);

  const batch = run(["--batch"], `${bad}\n${validFolder("minimal")}\n`);
  assert.equal(batch.status, 0);
  assert.deepEqual(batch.stdout.trim().split("\n").map((line) => JSON.parse(line).outcome), ["invalid", "valid"]);

  const rows = JSON.parse(run([validFolder("many-samples"), "--all-rows"]).stdout).rows;
  assert.equal(rows.length, 5000);

  for (const wrong of [[], ["--batch", "x"], ["--vectors"], ["--vectors", "none"], ["a", "b"], ["a", "--order", "{}"], ["a", "--order", "no"]]) assert.equal(run(wrong).status, 2);
});

test("the command draws windows", () => {
  const order = (mode: string, start: string, count: string): string[] => {
    const { status, stdout } = run([validFolder("many-shards"), "--order", JSON.stringify({ mode, seed: "42", stream: "0", start, count })]);
    assert.equal(status, 0);
    return JSON.parse(stdout).values;
  };
  const n = order("permutation", "0", "1000").indexOf("0");
  assert.ok(n >= 0);
  const samples = JSON.parse(run([validFolder("many-shards")]).stdout).samples.value;
  for (const mode of ["ordered", "permutation", "weighted_order"]) assert.equal(new Set(order(mode, samples, samples)).size, Number(samples));
  assert.equal(order("weighted", "3", "4").length, 4);
  assert.equal(run([validFolder("many-shards"), "--order", JSON.stringify({ mode: "ordered", seed: "0", stream: "0", start: String(2n ** 63n - 1n), count: "2" })]).status, 2);
});
