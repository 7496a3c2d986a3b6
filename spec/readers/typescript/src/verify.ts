import { CacheError } from "./errors.js";
import { identityOf } from "./identity.js";
import { IndexFile } from "./index-file.js";
import { readManifest, type Manifest } from "./manifest.js";
import { Metadata, metadataReader } from "./metadata/metadata.js";
import { checkFile } from "./shard.js";
import type { ByteSource } from "./source/source.js";
import { FileStream } from "./stream.js";
import { verifyChains, verifyShard, type ChainLink } from "./verify-shard.js";

/** What whole verification has read, ready for use. */
export interface Verified {
  readonly manifest: Manifest;
  readonly index: IndexFile;
  readonly metadata: Metadata;
}

// Entries compared at once.
const SAMPLES = 65536;

/** Makes every check of the format in the order of section 10.5; every byte of every named file is read.
 *
 * @param blocks - How many blocks of 64 KiB are kept of each checked range.
 * @throws CacheError - The first condition that is broken.
 */
export async function verifyCache(source: ByteSource, blocks: number): Promise<Verified> {
  const manifest = await readManifest(source);
  for (const file of [manifest.metadata, manifest.index, ...manifest.shards]) await checkFile(source, file);

  const index = await IndexFile.open(source, manifest, { blocks });
  await index.verifyBlocks();
  await new FileStream(source, manifest.index).finish("I15");
  await index.verifyPadding();
  await verifyEntries(index, manifest);

  const reader = metadataReader(source, manifest, index.metadataSums, blocks);
  await reader.verify();
  const metadata = await Metadata.open(reader, manifest);
  await metadata.verify();
  await new FileStream(source, manifest.metadata).finish("A14");

  const chain: ChainLink[] = [];
  let start = 0;
  for (const [number, shard] of manifest.shards.entries()) {
    chain.push(await verifyShard(source, manifest, index, number, start));
    start += shard.samples;
  }
  verifyChains(chain);

  const identity = await identityOf({
    samples: manifest.samples,
    fields: manifest.fields,
    payloads: (from, count) => index.entries(from, count),
    pieces: (field, from, to) => metadata.pieces(field, from, to),
  });
  if (identity !== manifest.identity) {
    throw new CacheError("identity_mismatch", "D1", { file: "manifest.json", where: "identity" }, `the content's is ${identity}, the manifest says ${manifest.identity}`);
  }
  return { manifest, index, metadata };
}

/** E1 to E4 for all samples, then T1. */
async function verifyEntries(index: IndexFile, manifest: Manifest): Promise<void> {
  let payload = 0n;
  let stored = 0n;
  for (let from = 0; from < manifest.samples; from += SAMPLES) {
    const entries = await index.entries(from, Math.min(SAMPLES, manifest.samples - from));
    let payloadHere = 0;
    let storedHere = 0;
    for (const [i, entry] of entries.entries()) {
      index.checkEntry(entry, from + i);
      // 65,536 numbers below 2^32: exact.
      payloadHere += entry.rawLength;
      storedHere += entry.storedLength;
    }
    payload += BigInt(payloadHere);
    stored += BigInt(storedHere);
  }
  const compare = (name: string, found: bigint, said: number): void => {
    if (found !== BigInt(said)) throw new CacheError("manifest_invalid", "T1", { file: "manifest.json", where: name }, `it is ${said}, the entries give ${found}`);
  };
  compare("payload_bytes", payload, manifest.payloadBytes);
  compare("stored_bytes", stored, manifest.storedBytes);
}
