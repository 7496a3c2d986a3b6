import assert from "node:assert/strict";
import { cpSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";

import { Cache, CacheError, DrawStream, LimitError, type DrawnSample, type Sample } from "../dist/index.js";
import { openDirectory } from "../dist/node.js";
import { toArrowTable } from "../dist/arrow.js";
import { loadValid, MemorySource, resignManifest, signed, validFolder } from "./support.js";

async function all<T>(items: AsyncIterable<T>): Promise<T[]> {
  const list: T[] = [];
  for await (const item of items) list.push(item);
  return list;
}

function temporary(): { folder: string; remove: () => void } {
  const folder = mkdtempSync(join(tmpdir(), "reader-"));
  return { folder, remove: () => rmSync(folder, { recursive: true }) };
}

test("a sample has its payload and its row", async () => {
  const cache = await openDirectory(validFolder("minimal"));
  const { index, payload, metadata } = await cache.sample(0);
  assert.deepEqual([index, new TextDecoder().decode(payload), Object.keys(metadata)], [0, "hello", []]);
  await assert.rejects(cache.sample(1), RangeError);
  await assert.rejects(cache.sample(-1), RangeError);
  await assert.rejects(cache.sample(0.5), RangeError);
  await cache.close();
});

test("iteration is in order, whole or in part, however far it reads ahead", async () => {
  const cache = await openDirectory(validFolder("many-samples"));
  for (const ahead of [1, 8]) {
    const part = await all(cache.iterate({ start: 4000, end: 4100, ahead }));
    assert.deepEqual(part.map((sample: Sample) => sample.index), Array.from({ length: 100 }, (_, i) => 4000 + i));
    assert.deepEqual(part.map((sample: Sample) => sample.metadata["i"]), Array.from({ length: 100 }, (_, i) => BigInt(4000 + i)));
  }
  await assert.rejects(all(cache.iterate({ end: 5001 })), RangeError);
  await cache.close();
});

test("a window delivers what its positions draw", async () => {
  const cache = await openDirectory(validFolder("many-samples"));
  const weights = Float64Array.from({ length: 5000 }, (_, i) => i + 1);
  for (const mode of ["ordered", "weighted", "permutation", "weighted_order"] as const) {
    const stream = new DrawStream({ mode, rows: 5000, seed: 42, weights });
    const drawn = await all(cache.window(stream, 4990n, 20n));
    assert.deepEqual(drawn.map((sample: DrawnSample) => sample.position), Array.from({ length: 20 }, (_, i) => 4990n + BigInt(i)));
    for (const sample of drawn) {
      assert.equal(BigInt(sample.index), stream.row(sample.position));
      assert.equal(sample.metadata["i"], BigInt(sample.index));
    }
  }
  await assert.rejects(all(cache.window(new DrawStream({ mode: "ordered", rows: 3 }), 0n, 1n)), RangeError);
  await cache.close();
});

test("text keeps U+FEFF and U+0000, and a field may have any name", async () => {
  const names = await openDirectory(validFolder("field-names"));
  const row = await names.row(0);
  assert.deepEqual(new Set(Object.keys(row)), new Set(names.fields.map((field) => field.name)));
  await names.close();
  const types = await openDirectory(validFolder("all-types"));
  const texts = (await all(types.iterate())).flatMap(({ metadata }) => Object.values(metadata).filter((value) => typeof value === "string"));
  assert.ok(texts.some((text) => text.includes("\0")));
  assert.ok(texts.some((text) => text.startsWith("\uFEFF")));
  await types.close();
});

test("metadata as an Arrow table has the values of the rows", async () => {
  for (const id of ["nullable", "all-types", "many-batches", "liberal-metadata", "pyarrow-metadata", "minimal"]) {
    const cache = await openDirectory(validFolder(id));
    const table = await toArrowTable(cache);
    assert.equal(table.numRows, cache.samples);
    for (let i = 0; i < cache.samples; i++) {
      const row = await cache.row(i);
      for (const { name } of cache.fields) {
        const value = row[name];
        // Arrow's own decoder of texts drops a leading U+FEFF; it is there in the column's bytes.
        const shown = typeof value === "string" ? value.replace(/^\uFEFF/, "") : value;
        assert.deepEqual(table.getChild(name)?.get(i), shown, `${id}, row ${i}, ${name}`);
      }
    }
    if (cache.samples > 2) assert.equal((await toArrowTable(cache, 1, cache.samples - 1)).numRows, cache.samples - 2);
    await cache.close();
  }
});

test("opening and one sample read little of a cache", async () => {
  const files = loadValid("many-samples");
  const source = new MemorySource(files);
  const cache = await Cache.open(source);
  await cache.payload(4321);
  const total = [...files.values()].reduce((sum, file) => sum + file.length, 0);
  // A block of entries and the blocks with the ends of the metadata, which are most of so small a cache; no shard as a whole.
  assert.ok(source.bytesRead < total - 40_000, `${source.bytesRead} of ${total} bytes`);
});

test("an error names code, check, file and place, and damage elsewhere doesn't matter to a use", async () => {
  const files = loadValid("many-shards");
  const name = [...files.keys()].filter((file) => file.startsWith("shards/")).sort().at(-1) as string;
  const shard = files.get(name) as Uint8Array;
  shard[64] = (shard[64] as number) ^ 1;
  const cache = await Cache.open(new MemorySource(files));
  assert.equal((await cache.sample(0)).index, 0);
  const failed: CacheError[] = [];
  for (let i = 0; i < cache.samples; i++) await cache.payload(i).catch((error: unknown) => failed.push(error as CacheError));
  assert.equal(failed.length, 1);
  const [error] = failed as [CacheError];
  assert.ok(error instanceof CacheError);
  assert.deepEqual([error.code, error.check, error.file], ["record_damaged", "S14", name]);
  assert.match(error.where ?? "", /^sample \d+$/);
  await assert.rejects(cache.verify(), (found: CacheError) => found.code === "record_damaged");
});

test("unknown features are named, and a manifest that would need rounding is refused", async () => {
  const files = loadValid("minimal");
  resignManifest(files, (manifest) => manifest.required.push("codec.zstd"));
  await assert.rejects(Cache.open(new MemorySource(files)), (error: CacheError) => error.code === "feature_unsupported" && error.message.includes("codec.zstd"));
  for (const [from, to] of [['"payload_bytes":5', '"payload_bytes":5.0000000000000000001'], ['"samples":1', '"samples":9007199254740993']] as const) {
    const text = new TextDecoder().decode(loadValid("minimal").get("manifest.json")).replace(from, to);
    files.set("manifest.json", signed(text.slice(0, -78)));
    await assert.rejects(Cache.open(new MemorySource(files)), (error: CacheError) => error.code === "manifest_invalid" && error.check === "M10");
  }
});

test("a manifest nested too deep, with a member twice or too large is refused without harm", async () => {
  const files = loadValid("minimal");
  const front = new TextDecoder().decode(files.get("manifest.json")).slice(0, -78);
  for (const more of [`,"x":${"[".repeat(1_000_000)}`, `,"x":${"[".repeat(300)}${"]".repeat(300)}`, ',"samples":1']) {
    files.set("manifest.json", signed(front + more));
    await assert.rejects(Cache.open(new MemorySource(files)), (error: CacheError) => error.code === "manifest_invalid" && error.check === "M7");
  }
  const source = new MemorySource(files);
  source.size = async () => 2 ** 40;
  await assert.rejects(Cache.open(source), LimitError);
});

test("links out of the folder, folders and absent files are no files of a cache", async () => {
  const { folder, remove } = temporary();
  try {
    cpSync(validFolder("minimal"), join(folder, "cache"), { recursive: true });
    const metadata = join(folder, "cache", "metadata.arrow");
    cpSync(metadata, join(folder, "elsewhere.arrow"));
    rmSync(metadata);
    const missing = (error: CacheError): boolean => error.code === "file_missing" && error.file === "metadata.arrow";
    await assert.rejects(openDirectory(join(folder, "cache")), missing);
    symlinkSync(join(folder, "elsewhere.arrow"), metadata);
    await assert.rejects(openDirectory(join(folder, "cache")), missing);
    const followed = await openDirectory(join(folder, "cache"), { followLinks: true });
    await followed.close();
    rmSync(metadata);
    await mkdir(metadata);
    await assert.rejects(openDirectory(join(folder, "cache")), missing);
    writeFileSync(join(folder, "file"), "");
    await assert.rejects(openDirectory(join(folder, "file")), (error: CacheError) => error.code === "file_missing");
  } finally {
    remove();
  }
});

test("more shards than files kept open are read all the same", async () => {
  const cache = await openDirectory(validFolder("many-shards"), { openFiles: 1 });
  const twice = await Promise.all([all(cache.iterate()), all(cache.iterate({ ahead: 1 }))]);
  assert.deepEqual(twice[0], twice[1]);
  await cache.verify();
  await cache.close();
});
