import { utf8 } from "./bytes.js";
import { CacheError } from "./errors.js";
import { JsonError, JsonNumber, parseJson, type JsonObject, type JsonValue } from "./json.js";
import { footerLength } from "./shard.js";
import { decodeUtf8 } from "./utf8.js";

/** How records are stored. */
export type Codec = "none" | "lz4";

/** Type of a metadata column. */
export type FieldType = "bool" | "int64" | "float64" | "utf8";

/** A metadata column. */
export interface Field {
  readonly name: string;
  readonly type: FieldType;
  readonly nullable: boolean;
  readonly description?: string;
}

/** A file the manifest names. */
export interface FileEntry {
  /** Name below the cache's folder, e.g. `shards/000000.bin`. */
  readonly file: string;
  /** Bytes. */
  readonly size: number;
  /** CRC-32C of the whole file, eight digits. */
  readonly crc32c: string;
  /** SHA-256 of the whole file, 64 digits, where the writer noted it. */
  readonly sha256?: string;
}

/** A shard file. */
export interface ShardEntry extends FileEntry {
  /** NAME of section 3. */
  readonly name: string;
  readonly samples: number;
  /** 32 digits. */
  readonly id: string;
}

/** What `manifest.json` says (section 8.2). All integers are exact. */
export interface Manifest {
  readonly version: 1;
  readonly required: readonly string[];
  readonly optional: readonly string[];
  /** 64 digits. */
  readonly identity: string;
  readonly source: { readonly name: string; readonly fingerprint: string | null };
  /** RFC 3339, UTC. */
  readonly created: string;
  readonly writer: string;
  readonly samples: number;
  /** Sum of the lengths of all payloads. */
  readonly payloadBytes: number;
  /** Sum of the lengths of all records. */
  readonly storedBytes: number;
  readonly fields: readonly Field[];
  readonly codec: Codec;
  /** A power of two, 1 .. 4096. */
  readonly alignment: number;
  readonly user?: Readonly<Record<string, string>>;
  readonly mediaType?: string;
  readonly metadata: FileEntry;
  readonly index: FileEntry;
  readonly shards: readonly ShardEntry[];
}

const SHARD_NAME = /^[0-9][0-9a-z-]{5,99}$/;
const CREATED = /^[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])T([01][0-9]|2[0-3]):[0-5][0-9]:([0-5][0-9]|60)(\.[0-9]+)?Z$/;
const RESERVED = new Set(["weight", "cache_id", "sample_id"]);

/** Whether `name` may be the name of a shard (section 3). */
export function isShardName(name: string): boolean {
  return SHARD_NAME.test(name);
}

/** Whether `name` may be the name of a metadata field, apart from the others' names (section 8.3). */
export function isFieldName(name: string): boolean {
  return !name.includes("\0") && !RESERVED.has(name) && name.isWellFormed() && utf8(name).length <= 1024;
}

function fail(check: string, where: string, message: string): never {
  throw new CacheError("manifest_invalid", check, { file: "manifest.json", where }, message);
}

/** M7 to M15: the content of a manifest whose frame was checked. */
export function parseMembers(bytes: Uint8Array): Manifest {
  const text = decodeUtf8(bytes);
  if (text === undefined) fail("M7", "the file", "it is not UTF-8");
  let root: JsonValue;
  try {
    root = parseJson(text);
  } catch (error) {
    if (error instanceof JsonError) fail("M7", "the file", `it is not JSON this reader accepts: ${error.message}`);
    throw error;
  }
  const top = new Members(root, "", "M7");
  const required = texts(top, "required");
  const optional = texts(top, "optional");
  if (required.length > 0) {
    throw new CacheError("feature_unsupported", "M9", { file: "manifest.json", where: "required" }, `this reader knows none of the features ${JSON.stringify(required)}`);
  }

  const identity = top.digits("identity", 64);
  const sourceMembers = top.object("source");
  const source = { name: sourceMembers.text("name"), fingerprint: sourceMembers.textOrNull("fingerprint") };
  const created = top.text("created");
  if (!CREATED.test(created)) fail("M10", "created", `${JSON.stringify(created)} is no date and time in UTC of the form YYYY-MM-DDThh:mm:ssZ`);
  const writer = top.text("writer");
  const samples = top.integer("samples", 1);
  const payloadBytes = top.integer("payload_bytes");
  const storedBytes = top.integer("stored_bytes");
  const fields = top.list("fields").map((value, i) => field(new Members(value, `fields[${i}]`)));
  const codec = top.object("codec").oneOf("name", ["none", "lz4"] as const);
  const alignment = top.integer("alignment", 1, 4096);
  if ((alignment & (alignment - 1)) !== 0) fail("M10", "alignment", `${alignment} is no power of two`);
  const user = top.has("user") ? top.object("user").allTexts() : undefined;
  const mediaType = top.has("media_type") ? top.text("media_type") : undefined;
  const metadata = namedFile(top.object("metadata"), "metadata.arrow");
  const index = namedFile(top.object("index"), "index.bin");
  const shards = top.list("shards").map((value, i) => shard(new Members(value, `shards[${i}]`), codec));
  top.digits("sha256", 64);

  if (fields.length > 4096) fail("M11", "fields", `${fields.length} fields; at most 4096 are allowed`);
  if (shards.length < 1 || shards.length > 2 ** 24) fail("M11", "shards", `${shards.length} shards; 1 .. 2^24 are allowed`);
  checkNames("fields", fields, isFieldName, "M12");
  checkNames("shards", shards, isShardName, "M13");
  checkDiffer("fields", fields);
  checkDiffer("shards", shards);
  const sum = shards.reduce((total, one) => total + BigInt(one.samples), 0n);
  if (sum !== BigInt(samples)) fail("M15", "samples", `it is ${samples}, the shards have ${sum}`);

  return {
    version: 1, required, optional, identity, source, created, writer, samples, payloadBytes, storedBytes, fields, codec, alignment,
    ...(user === undefined ? {} : { user }),
    ...(mediaType === undefined ? {} : { mediaType }),
    metadata, index, shards,
  };
}

function texts(top: Members, name: string): string[] {
  const list = top.value(name);
  if (!Array.isArray(list) || !list.every((item) => typeof item === "string")) fail("M8", name, "it is no list of texts");
  return list as string[];
}

function field(members: Members): Field {
  const name = members.text("name");
  const type = members.oneOf("type", ["bool", "int64", "float64", "utf8"] as const);
  const nullable = members.value("nullable");
  if (typeof nullable !== "boolean") fail("M10", members.path("nullable"), "it is neither true nor false");
  return { name, type, nullable, ...(members.has("description") ? { description: members.text("description") } : {}) };
}

function file(members: Members, path: string): FileEntry {
  const size = members.integer("size");
  const crc32c = members.digits("crc32c", 8);
  return { file: path, size, crc32c, ...(members.has("sha256") ? { sha256: members.digits("sha256", 64) } : {}) };
}

function namedFile(members: Members, name: string): FileEntry {
  if (members.text("name") !== name) fail("M10", members.path("name"), `it is not ${JSON.stringify(name)}`);
  return file(members, name);
}

function shard(members: Members, codec: Codec): ShardEntry {
  const name = members.text("name");
  const entry = file(members, `shards/${name}.bin`);
  const samples = members.integer("samples", 1);
  const id = members.digits("id", 32);
  // No rounding matters: where a product passes 2^53 the sum is far above 2^40.
  const least = 128 + footerLength(samples, codec);
  if (entry.size < least || entry.size >= 2 ** 40) {
    fail("M10", members.path("size"), `${entry.size} bytes; with ${samples} samples a shard has at least ${least} and less than 2^40`);
  }
  return { ...entry, name, samples, id };
}

function checkNames(list: string, items: readonly { readonly name: string }[], allowed: (name: string) => boolean, check: string): void {
  items.forEach(({ name }, i) => {
    if (!allowed(name)) {
      const shown = JSON.stringify(name.length > 120 ? `${name.slice(0, 120)}...` : name);
      throw new CacheError("name_invalid", check, { file: "manifest.json", where: `${list}[${i}].name` }, `${shown} is not allowed`);
    }
  });
}

function checkDiffer(list: string, items: readonly { readonly name: string }[]): void {
  const seen = new Set<string>();
  items.forEach(({ name }, i) => {
    if (seen.has(name)) fail("M14", `${list}[${i}].name`, `${JSON.stringify(name)} comes twice`);
    seen.add(name);
  });
}

/** The members of one object, with the type each must have. */
class Members {
  readonly #object: JsonObject;
  readonly #path: string;

  constructor(value: JsonValue, path: string, check = "M10") {
    if (typeof value !== "object" || value === null || Array.isArray(value) || value instanceof JsonNumber) {
      fail(check, path === "" ? "the file" : path, "it is no object");
    }
    this.#object = value;
    this.#path = path;
  }

  path(name: string): string {
    return this.#path === "" ? name : `${this.#path}.${name}`;
  }

  has(name: string): boolean {
    return Object.hasOwn(this.#object, name);
  }

  value(name: string): JsonValue | undefined {
    return this.#object[name];
  }

  text(name: string): string {
    const value = this.#object[name];
    if (typeof value !== "string") fail("M10", this.path(name), value === undefined ? "it is missing" : "it is no text");
    return value;
  }

  textOrNull(name: string): string | null {
    return this.#object[name] === null ? null : this.text(name);
  }

  digits(name: string, count: number): string {
    const value = this.text(name);
    if (value.length !== count || !/^[0-9a-f]*$/.test(value)) fail("M10", this.path(name), `it is not ${count} lower-case hexadecimal digits`);
    return value;
  }

  integer(name: string, least = 0, most = Number.MAX_SAFE_INTEGER): number {
    const value = this.#object[name];
    if (typeof value !== "number" || value < least || value > most) {
      const range = most === Number.MAX_SAFE_INTEGER ? `${least} .. 2^53 - 1` : `${least} .. ${most}`;
      fail("M10", this.path(name), value === undefined ? "it is missing" : `it is no integer of ${range}`);
    }
    return value;
  }

  oneOf<T extends string>(name: string, allowed: readonly T[]): T {
    const value = this.text(name);
    const found = allowed.find((one) => one === value);
    if (found === undefined) fail("M10", this.path(name), `${JSON.stringify(value.slice(0, 100))} is none of ${allowed.join(", ")}`);
    return found;
  }

  list(name: string): JsonValue[] {
    const value = this.#object[name];
    if (!Array.isArray(value)) fail("M10", this.path(name), value === undefined ? "it is missing" : "it is no list");
    return value;
  }

  object(name: string): Members {
    const value = this.#object[name];
    if (value === undefined) fail("M10", this.path(name), "it is missing");
    return new Members(value, this.path(name));
  }

  allTexts(): Record<string, string> {
    for (const [name, value] of Object.entries(this.#object)) if (typeof value !== "string") fail("M10", this.path(name), "it is no text");
    return this.#object as Record<string, string>;
  }
}
