const view = new DataView(new ArrayBuffer(8));

/** The 64 bits of a binary64. */
export function bitsOf(value: number): bigint {
  view.setFloat64(0, value);
  return view.getBigUint64(0);
}

/** A positive finite number as `significand * 2^exponent`, exactly (section 6.3). */
export function decompose(value: number): { significand: bigint; exponent: number } {
  const bits = bitsOf(value);
  const exponent = Number(bits >> 52n);
  const fraction = bits & 0xfffffffffffffn;
  return exponent === 0 ? { significand: fraction, exponent: -1074 } : { significand: fraction | 0x10000000000000n, exponent: exponent - 1075 };
}

/** A positive finite number as `mantissa * 2^exponent` with a mantissa in [0.5, 1), subnormal ones included (section 8.2). */
export function frexp(value: number): { mantissa: number; exponent: number } {
  view.setFloat64(0, value);
  let extra = 0;
  if (value < 2 ** -1022) {
    // Exact: a product by a power of two that makes the number normal.
    view.setFloat64(0, value * 2 ** 64);
    extra = 64;
  }
  const high = view.getUint32(0);
  const exponent = (high >>> 20) - 1022 - extra;
  view.setUint32(0, ((high & 0xfffff) | (1022 << 20)) >>> 0);
  return { mantissa: view.getFloat64(0), exponent };
}

/** Weights as binary64. 64-bit integers are converted to nearest, ties to even.
 *
 * @throws RangeError for a weight that is zero, negative, infinite or NaN (section 6.1).
 */
export function checkWeights(weights: ArrayLike<number | bigint>): Float64Array {
  const checked = new Float64Array(weights.length);
  for (let i = 0; i < checked.length; i++) {
    const weight = Number(weights[i]);
    if (!(weight > 0 && weight < Infinity)) throw new RangeError(`the weight of row ${i} is ${weight}; it must be finite and above zero`);
    checked[i] = weight;
  }
  return checked;
}

/** Whether all weights are the same 64 bits. They are positive numbers, so that equal ones have equal bits. */
export function allEqual(weights: Float64Array): boolean {
  return weights.every((weight) => weight === weights[0]);
}
