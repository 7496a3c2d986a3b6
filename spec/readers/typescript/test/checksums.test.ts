import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { test } from "node:test";

import { crc32c, Sha256, sha256 } from "../dist/index.js";

const bytes = Uint8Array.from({ length: 400 }, (_, i) => (i * 7 + (i >> 3)) & 255);
const hex = (digest: Uint8Array): string => Buffer.from(digest).toString("hex");

test("SHA-256 is that of the platform for every length around its blocks, however it is fed", () => {
  for (let length = 0; length <= 260; length++) {
    const expected = createHash("sha256").update(bytes.subarray(0, length)).digest("hex");
    assert.equal(hex(sha256(bytes.subarray(0, length))), expected);
    const hash = new Sha256();
    for (let at = 0; at < length; at += 37) hash.update(bytes.subarray(at, Math.min(length, at + 37)));
    assert.equal(hex(hash.digest()), expected);
  }
});

test("CRC-32C has the check value of its definition, at any alignment and in pieces", () => {
  const digits = new TextEncoder().encode("123456789");
  assert.equal(crc32c(digits), 0xe3069283);
  assert.equal(crc32c(new Uint8Array(0)), 0);
  for (let cut = 0; cut <= 40; cut++) assert.equal(crc32c(bytes.subarray(cut), crc32c(bytes.subarray(0, cut))), crc32c(bytes));
});
