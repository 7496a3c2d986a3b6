import { POSITIONS } from "./stream.js";

/** What becomes of positions that can't be shared evenly by all ranks (section 10). */
export type Policy = "pad" | "drop" | "error";

/** A window `[start, start + length)` of positions. */
export interface Window {
  readonly start: bigint;
  readonly length: bigint;
}

/** A position a rank delivers. */
export interface RankPosition {
  readonly position: bigint;
  /** Whether it only fills up the last step. */
  readonly padding: boolean;
}

/** Keeps where the next window begins (section 9). */
export class Windows {
  /** Where the next window begins. */
  next: bigint;
  readonly #length: bigint;

  /**
   * @param rows - Rows of the table; the length of windows where none is set.
   * @param epochLength - The length the user set, at least 1.
   */
  constructor(rows: bigint, epochLength?: bigint, next = 0n) {
    this.#length = epochLength ?? rows;
    this.next = next;
    if (this.#length < 1n) throw new RangeError("a window has at least one position");
  }

  /** Takes the next window.
   *
   * @throws RangeError where it would reach past 2^63.
   */
  take(): Window {
    const window = { start: this.next, length: this.#length };
    if (window.start + window.length > POSITIONS) throw new RangeError(`the window ${window.start} + ${window.length} reaches past 2^63`);
    this.next += this.#length;
    return window;
  }
}

/** The number of steps of every rank.
 *
 * @param done - Positions of the window that all ranks together have delivered before.
 * @throws RangeError where the policy refuses.
 */
export function rankSteps(policy: Policy, length: bigint, done: bigint, ranks: bigint): bigint {
  if (ranks < 1n) throw new RangeError(`${ranks} ranks`);
  if (done < 0n || done > length) throw new RangeError(`${done} of ${length} positions can't have been delivered`);
  if (length < ranks) throw new RangeError(`a window of ${length} positions is too short for ${ranks} ranks`);
  const left = length - done;
  if (policy === "pad") return (left + ranks - 1n) / ranks;
  if (policy === "error" && left % ranks !== 0n) throw new RangeError(`${left} positions can't be shared evenly by ${ranks} ranks`);
  return left / ranks;
}

/** What a rank delivers of a window, in order.
 *
 * @throws RangeError where the policy refuses, at once.
 */
export function rankPositions(policy: Policy, window: Window, done: bigint, ranks: bigint, rank: bigint): Generator<RankPosition, void> {
  const steps = rankSteps(policy, window.length, done, ranks);
  if (rank < 0n || rank >= ranks) throw new RangeError(`rank ${rank} of ${ranks}`);
  return positions(window, done, ranks, rank, steps);
}

function* positions({ start, length }: Window, done: bigint, ranks: bigint, rank: bigint, steps: bigint): Generator<RankPosition, void> {
  const left = length - done;
  for (let step = 0n; step < steps; step++) {
    const offset = step * ranks + rank;
    const padding = offset >= left;
    yield { position: start + (padding ? (done + offset) % length : done + offset), padding };
  }
}

/** The steps of its rank that a loader worker takes (section 10).
 *
 * @param batch - The batch size for a loader that makes batches inside its workers, else 1.
 */
export function* workerSteps(steps: number, workers: number, worker: number, batch: number): Generator<number, void> {
  if (workers < 1 || worker < 0 || worker >= workers || batch < 1) throw new RangeError(`worker ${worker} of ${workers} with batches of ${batch}`);
  for (let step = 0; step < steps; step++) if (Math.floor(step / batch) % workers === worker) yield step;
}
