/** Where the bytes of a cache come from. Names are those of section 3: `manifest.json`, `shards/000000.bin`. */
export interface ByteSource {
  /** Folder or URL, for messages. */
  readonly location: string;

  /** The size of a file in bytes; `undefined` where it isn't there or isn't a regular file.
   *
   * @throws SourceError where that can't be told.
   */
  size(name: string): Promise<number | undefined>;

  /** Exactly the bytes `offset .. offset + length` of a file. The caller has compared both with the file's size.
   *
   * @throws SourceError where they can't be had, all of them.
   */
  read(name: string, offset: number, length: number): Promise<Uint8Array>;

  /** Frees what the source holds. It isn't used afterwards. */
  close(): Promise<void>;
}
