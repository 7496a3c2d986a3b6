/** Whether `bytes[from..to]`, taken alone, are UTF-8 (RFC 3629): no overlong forms, no surrogates, nothing above U+10FFFF. */
export function isUtf8(bytes: Uint8Array, from = 0, to = bytes.length): boolean {
  let i = from;
  while (i < to) {
    const lead = bytes[i] as number;
    if (lead < 0x80) {
      i++;
      continue;
    }
    let more: number;
    let low = 0x80;
    let high = 0xbf;
    if (lead >= 0xc2 && lead <= 0xdf) more = 1;
    else if (lead >= 0xe0 && lead <= 0xef) {
      more = 2;
      if (lead === 0xe0) low = 0xa0;
      if (lead === 0xed) high = 0x9f;
    } else if (lead >= 0xf0 && lead <= 0xf4) {
      more = 3;
      if (lead === 0xf0) low = 0x90;
      if (lead === 0xf4) high = 0x8f;
    } else return false;
    if (i + more >= to) return false;
    const second = bytes[i + 1] as number;
    if (second < low || second > high) return false;
    for (let k = 2; k <= more; k++) if (((bytes[i + k] as number) & 0xc0) !== 0x80) return false;
    i += more + 1;
  }
  return true;
}

// Without `ignoreBOM` a decoder drops a leading U+FEFF, which is part of the text here.
const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** The text of UTF-8 bytes, a leading U+FEFF included; `undefined` where they aren't UTF-8. */
export function decodeUtf8(bytes: Uint8Array): string | undefined {
  try {
    return decoder.decode(bytes);
  } catch {
    return undefined;
  }
}
