import { fromHex, toHex, u64le, utf8 } from "../bytes.js";
import { Sha256 } from "../checksums/sha256.js";
import { bitsOf } from "./weights.js";

/** Consecutive rows of one cache with consecutive samples (section 11.2). */
export interface Run {
  readonly cache: bigint;
  readonly first: bigint;
  readonly count: bigint;
  /** The bits of the weight, in the weights digest alone. */
  readonly weight?: bigint;
}

/** The digest of loaded caches, 64 digits (section 11.1).
 *
 * @param identities - 64 digits each, in the order of loading.
 */
export function cachesDigest(identities: readonly string[]): string {
  const hash = new Sha256();
  for (const identity of identities) hash.update(fromHex(identity));
  return toHex(hash.digest());
}

/** The runs of a table.
 *
 * @param rows - Position of the cache among the loaded ones, and number of the sample.
 * @param weights - One a row, where runs are for the weights digest.
 */
export function runsOf(rows: Iterable<readonly [cache: bigint, sample: bigint]>, weights?: Float64Array): Run[] {
  const runs: Run[] = [];
  let i = 0;
  for (const [cache, sample] of rows) {
    const weight = weights === undefined ? undefined : bitsOf(weights[i] as number);
    const last = runs.at(-1);
    if (last !== undefined && last.cache === cache && last.first + last.count === sample && last.weight === weight) {
      runs[runs.length - 1] = { ...last, count: last.count + 1n };
    } else {
      runs.push({ cache, first: sample, count: 1n, ...(weight === undefined ? {} : { weight }) });
    }
    i++;
  }
  return runs;
}

/** The rows digest, or the weights digest where runs have weights; 64 digits. */
export function tableDigest(runs: readonly Run[]): string {
  const hash = new Sha256().update(utf8("dataset_rt table 1\0"));
  for (const { cache, first, count, weight } of runs) {
    hash.update(u64le(cache)).update(u64le(first)).update(u64le(count));
    if (weight !== undefined) hash.update(u64le(weight));
  }
  return toHex(hash.digest());
}
