import { allocate } from "../bytes.js";
import { SourceError } from "../errors.js";
import type { ByteSource } from "./source.js";

/** Options of {@link HttpSource}. */
export interface HttpOptions {
  /** Used in place of the global `fetch`. */
  readonly fetch?: typeof globalThis.fetch;
  /** Sent with every request, e.g. an authorisation. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Milliseconds after which a request is given up; 60,000 where absent. */
  readonly timeout?: number;
}

/** Reads a cache from a web server by range requests (RFC 9110, section 14).
 *
 * A server must answer `Range` with 206. One that ignores it and sends the whole file is refused as soon as its status is
 * known, unless the whole file was asked for: a cache is not downloaded by accident.
 */
export class HttpSource implements ByteSource {
  readonly location: string;
  readonly #base: URL;
  readonly #fetch: typeof globalThis.fetch;
  readonly #headers: Readonly<Record<string, string>>;
  readonly #timeout: number;

  /**
   * @param base - URL of the cache's folder, with or without a slash at its end. A query, as of a signed URL, is sent with
   *   each request.
   */
  constructor(base: string | URL, options: HttpOptions = {}) {
    this.#base = new URL(base);
    if (!this.#base.pathname.endsWith("/")) this.#base.pathname += "/";
    this.location = `${this.#base.origin}${this.#base.pathname}`;
    this.#fetch = options.fetch ?? globalThis.fetch.bind(globalThis);
    this.#headers = options.headers ?? {};
    this.#timeout = options.timeout ?? 60_000;
  }

  async size(name: string): Promise<number | undefined> {
    // The length of a compressed answer would not be the file's.
    const head = await this.#request(name, "HEAD", { "Accept-Encoding": "identity" });
    await discard(head);
    if (head.status === 404 || head.status === 410) return undefined;
    if (head.ok && head.headers.get("content-encoding") === null) {
      const size = decimal(head.headers.get("content-length"));
      if (size !== undefined) return size;
    } else if (head.status !== 405 && head.status !== 501 && !head.ok) {
      throw new SourceError("status", this.#place(name), `the server answers HEAD with status ${head.status}`);
    }
    const probe = await this.#request(name, "GET", { Range: "bytes=0-0" });
    await discard(probe);
    if (probe.status === 404 || probe.status === 410) return undefined;
    const total = /^bytes (?:\d+-\d+|\*)\/(\d+)$/.exec(probe.headers.get("content-range") ?? "")?.[1];
    const size = (probe.status === 206 || probe.status === 416) && total !== undefined ? decimal(total) : undefined;
    if (size === undefined) throw new SourceError("status", this.#place(name), `the server doesn't tell the file's size (status ${probe.status})`);
    return size;
  }

  async read(name: string, offset: number, length: number): Promise<Uint8Array> {
    if (length === 0) return new Uint8Array(0);
    const place = this.#place(name);
    const range = `bytes=${offset}-${offset + length - 1}`;
    const response = await this.#request(name, "GET", { Range: range });
    const announced = response.headers.get("content-encoding") === null ? decimal(response.headers.get("content-length")) : undefined;
    if (response.status === 200 && (offset !== 0 || announced !== length)) {
      await discard(response);
      throw new SourceError("range_ignored", place, `the server ignores Range (${range}) and would send the whole file`);
    }
    if (response.status !== 206 && response.status !== 200) {
      await discard(response);
      throw new SourceError("status", place, `the server answers ${range} with status ${response.status}`);
    }
    const contentRange = response.headers.get("content-range");
    const sent = contentRange === null ? undefined : /^bytes (\d+-\d+)\/(?:\d+|\*)$/.exec(contentRange)?.[1];
    // The header isn't visible to scripts of other origins unless the server exposes it.
    if (response.status === 206 && contentRange !== null && sent !== range.slice(6)) {
      await discard(response);
      throw new SourceError("wrong_length", place, `${range} was asked for, "${contentRange}" was sent`);
    }
    if (announced !== undefined && announced !== length) {
      await discard(response);
      throw new SourceError("wrong_length", place, `${range} is ${length} bytes, the server announces ${announced}`);
    }
    return this.#body(response, place, length);
  }

  async close(): Promise<void> {}

  /** The body, which must be `length` bytes; memory grows with what arrives, not with what was announced. */
  async #body(response: Response, place: string, length: number): Promise<Uint8Array> {
    const chunks: Uint8Array[] = [];
    let received = 0;
    const reader = response.body?.getReader();
    try {
      while (reader !== undefined) {
        const { done, value } = await reader.read();
        if (done) break;
        received += value.length;
        if (received > length) break;
        chunks.push(value);
      }
    } catch (cause) {
      throw new SourceError("network", place, `the connection broke after ${received} of ${length} bytes`, { cause });
    }
    if (received !== length) {
      await reader?.cancel().catch(() => undefined);
      throw new SourceError("wrong_length", place, `${length} bytes were asked for, ${received > length ? "more" : received} came`);
    }
    if (chunks.length === 1) return chunks[0] as Uint8Array;
    const bytes = allocate(length);
    let at = 0;
    for (const chunk of chunks) {
      bytes.set(chunk, at);
      at += chunk.length;
    }
    return bytes;
  }

  async #request(name: string, method: string, headers: Record<string, string>): Promise<Response> {
    const url = new URL(this.#base);
    url.pathname += name;
    try {
      return await this.#fetch(url, {
        method,
        headers: { ...this.#headers, ...headers },
        signal: AbortSignal.timeout(this.#timeout),
      });
    } catch (cause) {
      throw new SourceError("network", this.#place(name), `the request failed: ${cause instanceof Error ? cause.message : String(cause)}`, { cause });
    }
  }

  /** Without the query, which may hold a secret. */
  #place(name: string): string {
    return this.location + name;
  }
}

async function discard(response: Response): Promise<void> {
  await response.body?.cancel().catch(() => undefined);
}

function decimal(text: string | null): number | undefined {
  if (text === null || !/^[0-9]{1,16}$/.test(text)) return undefined;
  const number = Number(text);
  return Number.isSafeInteger(number) ? number : undefined;
}
