import assert from "node:assert/strict";
import { test } from "node:test";

import { runVectors } from "../dist/conform/vectors.js";
import { VECTORS } from "./support.js";

test("every listed vector passes, and invalid caches fail by the listed check", async () => {
  const counts: Record<string, number> = { unit: 0, valid: 0, invalid: 0 };
  const problems: string[] = [];
  for await (const { vector, problem, check } of runVectors(VECTORS)) {
    counts[vector.kind] = (counts[vector.kind] as number) + 1;
    if (problem !== undefined) problems.push(`${vector.id}: ${problem}`);
    if (vector.kind === "invalid" && !vector.checks?.includes(check ?? "")) problems.push(`${vector.id}: found by ${check}, listed are ${vector.checks}`);
  }
  assert.deepEqual(problems, []);
  assert.ok((counts["unit"] as number) > 0 && (counts["valid"] as number) > 0 && (counts["invalid"] as number) > 0);
});
