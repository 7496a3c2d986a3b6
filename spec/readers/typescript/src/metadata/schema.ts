import { equalBytes, utf8 } from "../bytes.js";
import type { Field } from "../manifest-members.js";
import { FlatError, FlatTable, type FlatBuffer, type FlatVector } from "./flatbuffer.js";

const EXTENSION = utf8("ARROW:extension:");

/** Why the schema of a footer isn't the manifest's (A4), or `undefined` where it is.
 *
 * @throws FlatError where the footer isn't sound (A3).
 */
export function schemaProblem(buffer: FlatBuffer, footer: FlatTable, fields: readonly Field[]): string | undefined {
  const schema = footer.table(1);
  if (schema === undefined) throw new FlatError("the footer has no schema");
  if (schema.i16(0) !== 0) return "the endianness is not little";
  if (footer.vector(2, 24).count !== 0) return "there are dictionary blocks";
  const found = schema.vector(1, 4);
  if (found.count !== fields.length) return `${found.count} fields, the manifest has ${fields.length}`;
  const extensions = new Extensions(buffer);
  for (const [i, field] of fields.entries()) {
    const problem = fieldProblem(new FlatTable(buffer, buffer.follow(found.at + 4 * i)), field, extensions);
    if (problem !== undefined) return `field ${i}: ${problem}`;
  }
  return undefined;
}

function fieldProblem(table: FlatTable, field: Field, extensions: Extensions): string | undefined {
  if (!equalBytes(table.text(0), utf8(field.name))) return `its name isn't ${JSON.stringify(field.name)}`;
  if ((table.u8(1) !== 0) !== field.nullable) return `nullable isn't ${field.nullable}`;
  const code = table.u8(2);
  const type = table.table(3);
  // Type tables without members are written by every library all the same; their absence leaves a union without a value.
  if (type === undefined) return "it has no type";
  const fits = {
    bool: () => code === 6,
    int64: () => code === 2 && type.i32(0) === 64 && type.u8(1) !== 0,
    float64: () => code === 3 && type.i16(0) === 2,
    utf8: () => code === 5,
  }[field.type]();
  if (!fits) return `its type isn't ${field.type}`;
  if (table.has(4)) return "it has a dictionary";
  if (table.vector(5, 4).count !== 0) return "it has children";
  if (extensions.in(table.vector(6, 4))) return "it is of an extension type";
  return undefined;
}

/** Looks for keys of extension types, in time bounded by the buffer even where fields share lists. */
class Extensions {
  readonly #buffer: FlatBuffer;
  readonly #known = new Map<number, boolean>();
  #visited = 0;

  constructor(buffer: FlatBuffer) {
    this.#buffer = buffer;
  }

  in(list: FlatVector): boolean {
    if (list.count === 0) return false;
    let found = this.#known.get(list.at);
    if (found === undefined) {
      this.#visited += list.count;
      if (this.#visited > this.#buffer.bytes.length / 4) throw new FlatError("lists of custom metadata overlap");
      found = false;
      for (let i = 0; i < list.count; i++) {
        const pair = new FlatTable(this.#buffer, this.#buffer.follow(list.at + 4 * i));
        if (equalBytes(pair.text(0).subarray(0, EXTENSION.length), EXTENSION)) found = true;
      }
      this.#known.set(list.at, found);
    }
    return found;
  }
}
