import { crcToHex } from "./bytes.js";
import { crc32c } from "./checksums/crc32c.js";
import { CacheError } from "./errors.js";
import { decodeLz4Block } from "./lz4.js";
import type { RecordInfo } from "./shard.js";

/** The payload of a record whose lengths satisfy E4 (S14).
 *
 * @param stored - The record's bytes; they are the payload themselves where both lengths are equal.
 * @throws CacheError
 */
export function decodeRecord(stored: Uint8Array, info: RecordInfo, file: string, sample: number): Uint8Array {
  const fail = (message: string): never => {
    throw new CacheError("record_damaged", "S14", { file, where: `sample ${sample}` }, message);
  };
  const payload =
    info.storedLength === info.rawLength
      ? stored
      : (decodeLz4Block(stored, info.rawLength) ?? fail(`it doesn't decode to ${info.rawLength} bytes`));
  const crc = crc32c(payload);
  if (crc !== info.crc) fail(`the payload's CRC is ${crcToHex(crc)}, the entry says ${crcToHex(info.crc)}`);
  return payload;
}
