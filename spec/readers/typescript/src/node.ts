import { Cache, type CacheOptions } from "./cache.js";
import { FileSource, type FileOptions } from "./source/file.js";

export { FileSource, type FileOptions } from "./source/file.js";

/** Opens a cache in a folder of the file system.
 *
 * @throws CacheError where a condition of opening is broken.
 */
export async function openDirectory(folder: string, options: CacheOptions & FileOptions = {}): Promise<Cache> {
  const source = new FileSource(folder, options);
  try {
    return await Cache.open(source, options);
  } catch (error) {
    await source.close();
    throw error;
  }
}
