// WebCrypto has no incremental digest and none at all outside of secure contexts; files here are hashed as they stream by.
const K = roundConstants();

/** First 32 bits of the fractional parts of the cube roots of the first 64 primes (FIPS 180-4, 4.2.2). */
function roundConstants(): Int32Array {
  const k = new Int32Array(64);
  let found = 0;
  for (let n = 2; found < 64; n++) {
    let prime = true;
    for (let d = 2; d * d <= n; d++) if (n % d === 0) prime = false;
    if (!prime) continue;
    // floor(cbrt(n) * 2^32) by bisection on exact integers: Math.cbrt is not exact to 32 bits of fraction everywhere.
    const cube = BigInt(n) << 96n;
    let low = 0n;
    let high = 1n << 36n;
    while (high - low > 1n) {
      const middle = (low + high) >> 1n;
      if (middle * middle * middle <= cube) low = middle;
      else high = middle;
    }
    k[found++] = Number(BigInt.asIntN(32, low));
  }
  return k;
}

/** An incremental SHA-256 (FIPS 180-4). */
export class Sha256 {
  readonly #state = Int32Array.of(
    0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19,
  );
  readonly #words = new Int32Array(64);
  readonly #pending = new Uint8Array(64);
  #used = 0;
  #length = 0;

  /** Adds bytes; returns itself. */
  update(bytes: Uint8Array): this {
    this.#length += bytes.length;
    let at = 0;
    if (this.#used > 0) {
      at = Math.min(64 - this.#used, bytes.length);
      this.#pending.set(bytes.subarray(0, at), this.#used);
      this.#used += at;
      if (this.#used < 64) return this;
      this.#block(this.#pending, 0);
      this.#used = 0;
    }
    for (; at + 64 <= bytes.length; at += 64) this.#block(bytes, at);
    this.#pending.set(bytes.subarray(at), 0);
    this.#used = bytes.length - at;
    return this;
  }

  /** The 32 bytes of the digest. The object can't be used any more. */
  digest(): Uint8Array<ArrayBuffer> {
    const length = this.#length;
    const tail = new Uint8Array((this.#used < 56 ? 64 : 128) - this.#used);
    tail[0] = 0x80;
    const view = new DataView(tail.buffer);
    view.setUint32(tail.length - 8, Math.floor(length / 0x20000000));
    view.setUint32(tail.length - 4, (length << 3) >>> 0);
    this.update(tail);
    const digest = new Uint8Array(32);
    const out = new DataView(digest.buffer);
    this.#state.forEach((word, i) => out.setInt32(4 * i, word));
    return digest;
  }

  #block(bytes: Uint8Array, at: number): void {
    const w = this.#words;
    for (let i = 0; i < 16; i++, at += 4) {
      w[i] =
        ((bytes[at] as number) << 24) | ((bytes[at + 1] as number) << 16) | ((bytes[at + 2] as number) << 8) | (bytes[at + 3] as number);
    }
    for (let i = 16; i < 64; i++) {
      const x = w[i - 15] as number;
      const y = w[i - 2] as number;
      const s0 = ((x >>> 7) | (x << 25)) ^ ((x >>> 18) | (x << 14)) ^ (x >>> 3);
      const s1 = ((y >>> 17) | (y << 15)) ^ ((y >>> 19) | (y << 13)) ^ (y >>> 10);
      w[i] = ((w[i - 16] as number) + s0 + (w[i - 7] as number) + s1) | 0;
    }
    const state = this.#state;
    let [a, b, c, d, e, f, g, h] = state as unknown as [number, number, number, number, number, number, number, number];
    for (let i = 0; i < 64; i++) {
      const s1 = ((e >>> 6) | (e << 26)) ^ ((e >>> 11) | (e << 21)) ^ ((e >>> 25) | (e << 7));
      const t1 = (h + s1 + ((e & f) ^ (~e & g)) + (K[i] as number) + (w[i] as number)) | 0;
      const s0 = ((a >>> 2) | (a << 30)) ^ ((a >>> 13) | (a << 19)) ^ ((a >>> 22) | (a << 10));
      const t2 = (s0 + ((a & b) ^ (a & c) ^ (b & c))) | 0;
      h = g;
      g = f;
      f = e;
      e = (d + t1) | 0;
      d = c;
      c = b;
      b = a;
      a = (t1 + t2) | 0;
    }
    state[0] = (state[0] as number) + a;
    state[1] = (state[1] as number) + b;
    state[2] = (state[2] as number) + c;
    state[3] = (state[3] as number) + d;
    state[4] = (state[4] as number) + e;
    state[5] = (state[5] as number) + f;
    state[6] = (state[6] as number) + g;
    state[7] = (state[7] as number) + h;
  }
}

/** SHA-256 of one or more byte strings, one after another. */
export function sha256(...parts: Uint8Array[]): Uint8Array<ArrayBuffer> {
  const hash = new Sha256();
  for (const part of parts) hash.update(part);
  return hash.digest();
}
