/** A number of JSON text that is no integer in the range of exact ones, or not written as digits alone. */
export class JsonNumber {
  /** The number as written. */
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

/** An object of JSON text; has no prototype, so `__proto__` is a member like any other. */
export interface JsonObject {
  [name: string]: JsonValue;
}

/** A value of JSON text. A `number` was written as an integer and is exact. */
export type JsonValue = null | boolean | number | JsonNumber | string | JsonValue[] | JsonObject;

/** JSON text that breaks the grammar or a limit of {@link parseJson}. */
export class JsonError extends Error {
  override readonly name = "JsonError";
}

const DEPTH = 256;
const SPACE = /[ \t\n\r]*/y;
const NUMBER = /-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?/y;
// Up to the next quote, backslash or character that must be escaped.
const PLAIN = /[^"\\\u0000-\u001f]*/y;
const ESCAPES: Record<string, string> = { '"': '"', "\\": "\\", "/": "/", b: "\b", f: "\f", n: "\n", r: "\r", t: "\t" };

/** Parses JSON (RFC 8259) without rounding a number.
 *
 * `JSON.parse` turns `1.0000000000000000001` into 1 and lets unpaired surrogates pass; here the first is no integer and the
 * second is an error.
 *
 * @throws JsonError for anything that isn't JSON, two members of one name in an object, an unpaired surrogate in a text, and
 *   nesting beyond 256 levels.
 */
export function parseJson(text: string): JsonValue {
  const parser = new Parser(text);
  const value = parser.value(0);
  parser.end();
  return value;
}

class Parser {
  readonly #text: string;
  #at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  value(depth: number): JsonValue {
    if (depth > DEPTH) this.#fail(`more than ${DEPTH} levels`);
    this.#match(SPACE);
    switch (this.#text[this.#at]) {
      case "{":
        return this.#object(depth);
      case "[":
        return this.#list(depth);
      case '"':
        return this.#string();
      case "t":
        return this.#word("true", true);
      case "f":
        return this.#word("false", false);
      case "n":
        return this.#word("null", null);
      default:
        return this.#number();
    }
  }

  end(): void {
    this.#match(SPACE);
    if (this.#at !== this.#text.length) this.#fail("something follows the value");
  }

  #object(depth: number): JsonObject {
    const object = Object.create(null) as JsonObject;
    this.#at++;
    if (this.#take("}")) return object;
    do {
      this.#match(SPACE);
      if (this.#text[this.#at] !== '"') this.#fail("the name of a member is missing");
      const name = this.#string();
      if (Object.hasOwn(object, name)) this.#fail(`two members have the name ${JSON.stringify(name)}`);
      if (!this.#take(":")) this.#fail("':' is missing");
      object[name] = this.value(depth + 1);
    } while (this.#take(","));
    if (!this.#take("}")) this.#fail("'}' or ',' is missing");
    return object;
  }

  #list(depth: number): JsonValue[] {
    const list: JsonValue[] = [];
    this.#at++;
    if (this.#take("]")) return list;
    do list.push(this.value(depth + 1));
    while (this.#take(","));
    if (!this.#take("]")) this.#fail("']' or ',' is missing");
    return list;
  }

  #string(): string {
    this.#at++;
    let text = this.#match(PLAIN);
    for (;;) {
      const mark = this.#text[this.#at++];
      if (mark === '"') break;
      if (mark !== "\\") this.#fail("a text doesn't end, or holds a control character");
      const escape = this.#text[this.#at++] ?? "";
      if (escape === "u") {
        const digits = this.#text.slice(this.#at, this.#at + 4);
        if (!/^[0-9a-fA-F]{4}$/.test(digits)) this.#fail("\\u needs four hexadecimal digits");
        text += String.fromCharCode(Number.parseInt(digits, 16));
        this.#at += 4;
      } else {
        const character = Object.hasOwn(ESCAPES, escape) ? ESCAPES[escape] : undefined;
        if (character === undefined) this.#fail("an unknown escape");
        text += character;
      }
      text += this.#match(PLAIN);
    }
    if (!text.isWellFormed()) this.#fail("a text has an unpaired surrogate");
    return text;
  }

  #number(): number | JsonNumber {
    const text = this.#match(NUMBER);
    if (text === "") this.#fail("no value");
    const number = Number(text);
    return /^-?[0-9]+$/.test(text) && Number.isSafeInteger(number) && text !== "-0" ? number : new JsonNumber(text);
  }

  #word<T>(word: string, value: T): T {
    if (!this.#text.startsWith(word, this.#at)) this.#fail("no value");
    this.#at += word.length;
    return value;
  }

  #take(mark: string): boolean {
    this.#match(SPACE);
    if (this.#text[this.#at] !== mark) return false;
    this.#at++;
    return true;
  }

  #match(pattern: RegExp): string {
    pattern.lastIndex = this.#at;
    const found = pattern.exec(this.#text)?.[0] ?? "";
    this.#at += found.length;
    return found;
  }

  #fail(what: string): never {
    throw new JsonError(`${what} (character ${this.#at})`);
  }
}
