import type { Field } from "../manifest-members.js";

/** A byte range of `metadata.arrow`. */
export interface BufferPlace {
  /** From the beginning of the file. */
  readonly offset: number;
  readonly length: number;
}

/** A column of a batch, after A9 and A10. */
export interface ColumnPlace {
  readonly nullCount: number;
  readonly validity: BufferPlace;
  /** Values, or the offsets of a text column. */
  readonly values: BufferPlace;
  /** The bytes of a text column. */
  readonly text: BufferPlace | undefined;
}

/** A record batch. */
export interface Batch {
  /** Row of the table that is row 0 of the batch. */
  readonly start: number;
  readonly rows: number;
  readonly columns: readonly ColumnPlace[];
}

/** How many buffers a column of a field has. */
export function buffersOf(field: Field): number {
  return field.type === "utf8" ? 3 : 2;
}

/** How many bytes the values (or offsets) of a column need. Exact: at most a product by 8 of a number below 2^53. */
export function valueBytes(field: Field, rows: number): number {
  switch (field.type) {
    case "bool":
      return Math.ceil(rows / 8);
    case "utf8":
      return 4 * (rows + 1);
    default:
      return 8 * rows;
  }
}
