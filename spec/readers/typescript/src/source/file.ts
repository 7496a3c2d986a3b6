import { open, realpath, stat, type FileHandle } from "node:fs/promises";
import { join, sep } from "node:path";

import { allocate } from "../bytes.js";
import { SourceError } from "../errors.js";
import type { ByteSource } from "./source.js";

/** Options of {@link FileSource}. */
export interface FileOptions {
  /** Whether symbolic links may lead out of the cache's folder; false where absent. */
  readonly followLinks?: boolean;
  /** How many files are kept open, at least 1; 32 where absent. */
  readonly openFiles?: number;
}

/** Reads a cache from a folder of the file system. */
export class FileSource implements ByteSource {
  readonly location: string;
  readonly #followLinks: boolean;
  readonly #openFiles: number;
  // In order of last use.
  readonly #handles = new Map<string, Promise<FileHandle>>();
  readonly #inUse = new Map<string, number>();

  constructor(folder: string, options: FileOptions = {}) {
    this.location = folder;
    this.#followLinks = options.followLinks ?? false;
    this.#openFiles = Math.max(1, options.openFiles ?? 32);
  }

  async size(name: string): Promise<number | undefined> {
    const path = join(this.location, name);
    try {
      const found = await stat(path);
      if (!found.isFile()) return undefined;
      if (!this.#followLinks) {
        const root = await realpath(this.location);
        const target = await realpath(path);
        if (!target.startsWith(root.endsWith(sep) ? root : root + sep)) return undefined;
      }
      return found.size;
    } catch (cause) {
      const code = (cause as NodeJS.ErrnoException).code;
      if (code === "ENOENT" || code === "ENOTDIR" || code === "ELOOP") return undefined;
      throw new SourceError("io", path, String(cause), { cause });
    }
  }

  async read(name: string, offset: number, length: number): Promise<Uint8Array> {
    const path = join(this.location, name);
    const bytes = allocate(length);
    this.#inUse.set(name, (this.#inUse.get(name) ?? 0) + 1);
    try {
      const handle = await this.#handle(name, path);
      let done = 0;
      while (done < length) {
        // One call reads less than 2 GiB on several systems.
        const { bytesRead } = await handle.read(bytes, done, Math.min(length - done, 0x40000000), offset + done);
        if (bytesRead === 0) throw new SourceError("wrong_length", path, `the file ends at ${offset + done}, ${length - done} bytes early`);
        done += bytesRead;
      }
      return bytes;
    } catch (cause) {
      if (cause instanceof SourceError) throw cause;
      throw new SourceError("io", path, String(cause), { cause });
    } finally {
      const users = (this.#inUse.get(name) ?? 1) - 1;
      if (users > 0) this.#inUse.set(name, users);
      else this.#inUse.delete(name);
      await this.#trim();
    }
  }

  async close(): Promise<void> {
    const handles = [...this.#handles.values()];
    this.#handles.clear();
    for (const handle of handles) await handle.then((file) => file.close()).catch(() => undefined);
  }

  #handle(name: string, path: string): Promise<FileHandle> {
    let handle = this.#handles.get(name);
    if (handle === undefined) {
      handle = open(path, "r");
      handle.catch(() => this.#handles.delete(name));
    } else {
      this.#handles.delete(name);
    }
    this.#handles.set(name, handle);
    return handle;
  }

  async #trim(): Promise<void> {
    for (const [name, handle] of this.#handles) {
      if (this.#handles.size <= this.#openFiles) return;
      if (this.#inUse.has(name)) continue;
      this.#handles.delete(name);
      await handle.then((file) => file.close()).catch(() => undefined);
    }
  }
}
