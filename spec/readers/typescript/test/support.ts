import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

import { crc32c, sha256, type ByteSource } from "../dist/index.js";

/** The package's folder. */
export const PACKAGE = join(dirname(fileURLToPath(import.meta.url)), "..");

/** The vectors: beside the readers' folder, or where the environment says. */
export const VECTORS = process.env["VECTORS"] ?? join(PACKAGE, "..", "..", "vectors");
if (!existsSync(join(VECTORS, "index.json"))) throw new Error(`no vectors in ${VECTORS}; set VECTORS`);

export function validFolder(id: string): string {
  return join(VECTORS, "v1", "valid", id, "cache");
}

/** Files of a cache by name. */
export type Files = Map<string, Uint8Array<ArrayBuffer>>;

const loaded = new Map<string, Files>();

/** The files of a valid vector, as a copy that may be changed. */
export function loadValid(id: string): Files {
  const known = loaded.get(id);
  if (known !== undefined) return new Map([...known].map(([name, bytes]) => [name, bytes.slice()]));
  const root = validFolder(id);
  const files: Files = new Map();
  for (const name of readdirSync(root, { recursive: true }) as string[]) {
    const path = join(root, name);
    if (statSync(path).isFile()) files.set(name.replaceAll("\\", "/"), new Uint8Array(readFileSync(path)));
  }
  loaded.set(id, files);
  return loadValid(id);
}

/** A cache in memory, that counts what is read of it. */
export class MemorySource implements ByteSource {
  readonly location = "memory";
  bytesRead = 0;
  readonly #files: Files;

  constructor(files: Files) {
    this.#files = files;
  }

  async size(name: string): Promise<number | undefined> {
    return this.#files.get(name)?.length;
  }

  async read(name: string, offset: number, length: number): Promise<Uint8Array> {
    const file = this.#files.get(name);
    if (file === undefined || offset < 0 || length < 0 || offset + length > file.length) throw new Error(`read outside of ${name}: ${offset} + ${length}`);
    this.bytesRead += length;
    return file.subarray(offset, offset + length);
  }

  async close(): Promise<void> {}
}

export function viewOf(bytes: Uint8Array): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

/** Makes the head of index.bin, its sums and the manifest fit what was changed in the other files. Sizes must not have changed. */
export function resign(files: Files): void {
  const index = files.get("index.bin") as Uint8Array<ArrayBuffer>;
  const metadata = files.get("metadata.arrow") as Uint8Array<ArrayBuffer>;
  const view = viewOf(index);
  const sections = view.getUint32(40, true);
  const rows = Array.from({ length: sections }, (_, i) => 128 + 32 * i);
  const sectionOf = (kind: number): Uint8Array<ArrayBuffer> | undefined => {
    const at = rows.find((row) => view.getUint32(row, true) === kind);
    if (at === undefined) return undefined;
    const offset = Number(view.getBigUint64(at + 8, true));
    return index.subarray(offset, offset + Number(view.getBigUint64(at + 16, true)));
  };
  for (const [kind, content] of [[17, sectionOf(1)], [18, sectionOf(2)], [32, metadata]] as const) {
    const sums = sectionOf(kind);
    if (sums === undefined || content === undefined) continue;
    for (let i = 0; 4 * i < sums.length; i++) viewOf(sums).setUint32(4 * i, crc32c(content.subarray(65536 * i, 65536 * (i + 1))), true);
    const at = rows.find((row) => view.getUint32(row, true) === kind) as number;
    view.setUint32(at + 24, crc32c(sums), true);
  }
  resignIndexHead(index);
  resignManifest(files);
}

export function resignIndexHead(index: Uint8Array): void {
  const view = viewOf(index);
  const sections = view.getUint32(40, true);
  view.setUint32(124, crc32c(index.subarray(128, 128 + 32 * sections), crc32c(index.subarray(0, 124))), true);
}

/** Writes CRCs of all files and the tail into the manifest, after `edit` was applied to its members. */
export function resignManifest(files: Files, edit: (manifest: any) => void = () => undefined): void {
  const text = new TextDecoder().decode(files.get("manifest.json"));
  const manifest = JSON.parse(text);
  const hex = (name: string): string => crc32c(files.get(name) as Uint8Array).toString(16).padStart(8, "0");
  manifest.metadata.crc32c = hex("metadata.arrow");
  manifest.index.crc32c = hex("index.bin");
  for (const shard of manifest.shards) shard.crc32c = hex(`shards/${shard.name}.bin`);
  edit(manifest);
  delete manifest.sha256;
  files.set("manifest.json", signed(JSON.stringify(manifest).slice(0, -1)));
}

/** The bytes of a manifest whose text in front of the tail is given. */
export function signed(front: string): Uint8Array<ArrayBuffer> {
  const bytes = new TextEncoder().encode(front);
  const tail = new TextEncoder().encode(`,"sha256":"${Buffer.from(sha256(bytes)).toString("hex")}"}\n`);
  const all = new Uint8Array(bytes.length + tail.length);
  all.set(bytes);
  all.set(tail, bytes.length);
  return all;
}

/** Small numbers that look random and are the same in every run. */
export function* noise(seed: number): Generator<number, never> {
  let state = seed >>> 0;
  for (;;) {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    yield state >>> 8;
  }
}
