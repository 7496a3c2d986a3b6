import { crc32c } from "./checksums/crc32c.js";
import { crcToHex, toHex } from "./bytes.js";
import { Sha256 } from "./checksums/sha256.js";
import { CacheError } from "./errors.js";
import type { FileEntry } from "./manifest-members.js";
import type { ByteSource } from "./source/source.js";

/** Bytes read by one request where a file is read front to back. */
export const CHUNK = 1 << 20;

/** Reads a file front to back, and digests it on the way. */
export class FileStream {
  /** Offset of the next byte. */
  position = 0;
  readonly #source: ByteSource;
  readonly #entry: FileEntry;
  readonly #sha: Sha256 | undefined;
  #crc = 0;
  #chunk: Uint8Array = new Uint8Array(0);
  #used = 0;

  constructor(source: ByteSource, entry: FileEntry) {
    this.#source = source;
    this.#entry = entry;
    this.#sha = entry.sha256 === undefined ? undefined : new Sha256();
  }

  /** Hands the next `length` bytes to `use`, in pieces. They lie in the file. */
  async pass(length: number, use: (bytes: Uint8Array, offset: number) => void): Promise<void> {
    while (length > 0) {
      if (this.#used === this.#chunk.length) await this.#fill();
      const piece = this.#chunk.subarray(this.#used, this.#used + length);
      use(piece, this.position);
      this.#used += piece.length;
      this.position += piece.length;
      length -= piece.length;
    }
  }

  /** Passes the rest, then compares CRC and SHA-256 with the manifest's (I15, A14, S15).
   *
   * @throws CacheError
   */
  async finish(check: string): Promise<void> {
    await this.pass(this.#entry.size - this.position, () => undefined);
    const crc = crcToHex(this.#crc);
    if (crc !== this.#entry.crc32c) throw new CacheError("checksum_mismatch", check, { file: this.#entry.file }, `the file's CRC is ${crc}, the manifest says ${this.#entry.crc32c}`);
    if (this.#sha === undefined) return;
    const sha = toHex(this.#sha.digest());
    if (sha !== this.#entry.sha256) throw new CacheError("checksum_mismatch", check, { file: this.#entry.file }, `the file's SHA-256 is ${sha}, the manifest says ${this.#entry.sha256}`);
  }

  async #fill(): Promise<void> {
    this.#chunk = await this.#source.read(this.#entry.file, this.position, Math.min(CHUNK, this.#entry.size - this.position));
    this.#used = 0;
    this.#crc = crc32c(this.#chunk, this.#crc);
    this.#sha?.update(this.#chunk);
  }
}
