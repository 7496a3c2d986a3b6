import { fromHex, toHex } from "../bytes.js";

/** Tagged JSON of the vectors: each scalar names its type and is a text, so that no JSON library can round it. */
export type Tagged = null | boolean | number | string | Tagged[] | { [name: string]: Tagged };

/** A case of a unit vector. */
export type Members = Record<string, unknown>;

/** Makes tagged scalars and lists. */
export const tagged = {
  bool: (value: boolean): Tagged => ({ type: "bool", value: String(value) }),
  uint64: (value: number | bigint): Tagged => ({ type: "uint64", value: String(value) }),
  uint64s: (values: Iterable<number | bigint>): Tagged => ({ type: "uint64", values: Array.from(values, String) }),
  uint128: (value: bigint): Tagged => ({ type: "uint128", value: String(value) }),
  int64: (value: bigint): Tagged => ({ type: "int64", value: String(value) }),
  float64: (bits: bigint): Tagged => ({ type: "float64", value: bits.toString(16).padStart(16, "0") }),
  utf8: (value: string): Tagged => ({ type: "utf8", value }),
  bytes: (value: Uint8Array): Tagged => ({ type: "bytes", value: toHex(value) }),
  hex: (value: string): Tagged => ({ type: "bytes", value }),
  null: (): Tagged => ({ type: "null", value: "" }),
};

function scalar(of: Members, name: string): string {
  const member = of[name] as { value?: unknown } | undefined;
  if (typeof member?.value !== "string") throw new TypeError(`${name} is no tagged scalar`);
  return member.value;
}

function list(of: Members, name: string): string[] {
  const member = of[name] as { values?: unknown } | undefined;
  if (!Array.isArray(member?.values)) throw new TypeError(`${name} is no tagged list`);
  return member.values as string[];
}

function float(bits: string): number {
  return new DataView(fromHex(bits).buffer).getFloat64(0);
}

/** Reads members of a case's input. */
export const read = {
  text: scalar,
  bytes: (of: Members, name: string): Uint8Array => fromHex(scalar(of, name)),
  big: (of: Members, name: string): bigint => BigInt(scalar(of, name)),
  number: (of: Members, name: string): number => exact(scalar(of, name)),
  bool: (of: Members, name: string): boolean => scalar(of, name) === "true",
  float: (of: Members, name: string): number => float(scalar(of, name)),
  texts: list,
  bigs: (of: Members, name: string): bigint[] => list(of, name).map(BigInt),
  numbers: (of: Members, name: string): number[] => list(of, name).map(exact),
  floats: (of: Members, name: string): Float64Array => Float64Array.from(list(of, name), float),
};

function exact(text: string): number {
  const number = Number(text);
  if (!Number.isSafeInteger(number)) throw new RangeError(`${text} is no exact number`);
  return number;
}
