import assert from "node:assert/strict";
import { test } from "node:test";

import { Cache, CacheError, crc32c, decodeLz4Block, sha256 } from "../dist/index.js";
import { loadValid, MemorySource, noise, resign, resignIndexHead, resignManifest, viewOf, type Files } from "./support.js";

/** Whole verification and every sample; anything but a value or a CacheError fails the test. */
async function survive(files: Files): Promise<CacheError | undefined> {
  try {
    const cache = await Cache.verified(new MemorySource(files));
    for (let i = 0; i < Math.min(cache.samples, 50); i++) await cache.sample(i);
    return undefined;
  } catch (error) {
    if (error instanceof CacheError) return error;
    throw error;
  }
}

test("each changed byte of a named file is noticed", async () => {
  for (const id of ["minimal", "lz4-mixed", "nullable"]) {
    const names = [...loadValid(id).keys()];
    for (const name of names) {
      const files = loadValid(id);
      const bytes = files.get(name) as Uint8Array;
      for (let at = 0; at < bytes.length; at += id === "minimal" ? 3 : 37) {
        bytes[at] = (bytes[at] as number) ^ 0x10;
        assert.ok((await survive(files)) instanceof CacheError, `${id}, ${name}, byte ${at}`);
        bytes[at] = (bytes[at] as number) ^ 0x10;
      }
      for (const cut of [0, 1, Math.floor(bytes.length / 2), bytes.length - 1]) {
        files.set(name, bytes.slice(0, cut));
        assert.ok((await survive(files)) instanceof CacheError, `${id}, ${name}, cut at ${cut}`);
      }
    }
  }
});

test("no number in metadata whose checksums fit makes the reader read or allocate by it", async () => {
  for (const id of ["nullable", "pyarrow-metadata"]) {
    const size = (loadValid(id).get("metadata.arrow") as Uint8Array).length;
    for (const value of [0xffffffff, 0x7fffffff, 0xfffffff8, 0]) {
      for (let at = id === "nullable" ? 8 : 12; at + 4 <= size; at += id === "nullable" ? 28 : 12) {
        const files = loadValid(id);
        viewOf(files.get("metadata.arrow") as Uint8Array).setUint32(at, value, true);
        resign(files);
        await survive(files);
      }
    }
  }
});

test("no number in the head of the index, in entries or in a shard's ends does either", async () => {
  const change = async (name: string, at: number, value: number, sign: (files: Files) => void): Promise<void> => {
    const files = loadValid("lz4-mixed");
    viewOf(files.get(name) as Uint8Array).setUint32(at, value, true);
    sign(files);
    await survive(files);
  };
  const index = loadValid("lz4-mixed").get("index.bin") as Uint8Array;
  const shard = loadValid("lz4-mixed").get("shards/000000.bin") as Uint8Array;
  for (const value of [0xffffffff, 0x7fffffff, 0]) {
    for (let at = 8; at < 128 + 160; at += 4) {
      await change("index.bin", at, value, (files) => {
        const head = files.get("index.bin") as Uint8Array;
        // Where the number of sections is absurd there is no table to sum.
        if (128 + 32 * viewOf(head).getUint32(40, true) <= head.length) resignIndexHead(head);
        resignManifest(files);
      });
    }
    for (let at = 320; at < index.length; at += 8) await change("index.bin", at, value, resign);
    for (let at = 0; at < 64; at += 4) {
      await change("shards/000000.bin", at, value, (files) => signShard(files.get("shards/000000.bin") as Uint8Array, files));
      await change("shards/000000.bin", shard.length - 64 + at, value, (files) => signShard(files.get("shards/000000.bin") as Uint8Array, files));
    }
    const footer = Number(viewOf(shard).getBigUint64(shard.length - 56, true));
    for (let at = footer; at < shard.length - 64; at += 4) {
      await change("shards/000000.bin", at, value, (files) => signShard(files.get("shards/000000.bin") as Uint8Array, files));
    }
  }
});

/** Makes CRCs and id of a shard fit its content, as far as its own numbers lead anywhere. */
function signShard(shard: Uint8Array, files: Files): void {
  const view = viewOf(shard);
  const trailer = shard.length - 64;
  view.setUint32(60, crc32c(shard.subarray(0, 60)), true);
  const footer = Number(view.getBigUint64(trailer + 8, true));
  if (footer <= trailer) {
    const bytes = shard.subarray(footer, trailer);
    view.setUint32(trailer + 40, crc32c(bytes), true);
    shard.set(sha256(shard.subarray(0, 64), bytes, shard.subarray(trailer, trailer + 8)).subarray(0, 16), trailer + 24);
  }
  view.setUint32(trailer + 52, crc32c(shard.subarray(trailer, trailer + 52)), true);
  resignManifest(files, (manifest) => {
    manifest.shards[0].id = Buffer.from(shard.subarray(trailer + 24, trailer + 40)).toString("hex");
  });
}

test("text that isn't UTF-8 is refused where it is used, also through a good-looking file", async () => {
  const files = loadValid("pyarrow-metadata");
  const bytes = files.get("metadata.arrow") as Uint8Array;
  const cache = await Cache.open(new MemorySource(files));
  const text = Object.values(await cache.row(0)).find((value) => typeof value === "string" && value.length > 0) as string;
  const at = Buffer.from(bytes).indexOf(text);
  assert.ok(at > 0);
  bytes[at] = 0xff;
  resign(files);
  const broken = await Cache.open(new MemorySource(files));
  await assert.rejects(broken.row(0), (error: CacheError) => error.code === "metadata_invalid" && error.check === "A12");
});

test("any bytes are an LZ4 block or not, and never more output than was asked for", () => {
  const random = noise(7);
  for (let round = 0; round < 5_000; round++) {
    const block = Uint8Array.from({ length: random.next().value % 24 }, () => {
      const value = random.next().value;
      return value % 3 === 0 ? 255 : value % 5 === 0 ? 0 : value & 255;
    });
    const length = random.next().value % 200;
    const out = decodeLz4Block(block, length);
    assert.ok(out === undefined || out.length === length);
  }
});
