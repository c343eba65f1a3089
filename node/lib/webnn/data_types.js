// Elements of tensors: their sizes, the typed arrays that hold them, and numbers as their bytes.
import { HalfFloatArray, memoryOf } from '../memory.js';
import { withArticle } from '../text.js';
import { greatestRank } from './operators.js';

/** `also`: Uint16Array holds the bits of float16 everywhere, so that one program does for all. */
const types = {
  float32: { size: 4, array: Float32Array },
  float16: { size: 2, array: HalfFloatArray, also: 'Uint16Array' },
  int32: { size: 4, array: Int32Array },
  uint32: { size: 4, array: Uint32Array },
  int64: { size: 8, array: BigInt64Array },
  uint64: { size: 8, array: BigUint64Array },
  int8: { size: 1, array: Int8Array },
  uint8: { size: 1, array: Uint8Array },
  int4: { size: 0.5, array: Uint8Array }, // two to a byte, the low nibble first
  uint4: { size: 0.5, array: Uint8Array },
};

export function byteLength({ dataType, shape }) {
  return Math.ceil(shape.reduce((product, extent) => product * extent, types[dataType].size));
}

/** Ahead of the specification: {name, maxSize} stands for an extent that a dispatch decides. */
export const isOpen = (extent) => typeof extent === 'object';

/** "float32[2, 3]" */
export function describe({ dataType, shape }) {
  return `${dataType}[${shape.map((extent) => (isOpen(extent) ? extent.name : extent)).join(', ')}]`;
}

/** `why`: how it came about, for messages. */
export function checkDimensions(descriptor, what, mostBytes, why = '') {
  const shape = descriptor.shape.filter((extent) => !isOpen(extent));
  const bad = shape.find((extent) => extent < 1 || extent > 0x7fffffff);
  if (bad !== undefined)
    throw new TypeError(
      `${what}: the shape [${shape.join(', ')}] has the extent ${bad}; it must lie between 1 and 2147483647${why}`,
    );
  const rank = descriptor.shape.length;
  if (rank > greatestRank)
    throw new TypeError(
      `${what}: ${describe(descriptor)} has ${rank} dimensions; ${greatestRank} are allowed${why}`,
    );
  const bytes = byteLength({ ...descriptor, shape });
  if (bytes > mostBytes)
    throw new TypeError(
      `${what}: ${describe(descriptor)} takes ${bytes} bytes; ${mostBytes} are allowed${why}`,
    );
}

/** AllowSharedBufferSource. */
export function toBufferSource(value, what) {
  const memory = memoryOf(value);
  if (!memory)
    throw new TypeError(`${what} is neither an ArrayBuffer nor a SharedArrayBuffer nor a view of one`);
  if (memory.resizes) throw new TypeError(`${what} can be resized; pass a buffer of fixed length`);
  return value;
}

/** "Validate buffer with descriptor". */
export function checkBuffer(source, descriptor, what) {
  const wanted = byteLength(descriptor);
  const { kind, byteLength: given } = memoryOf(source);
  if (given !== wanted)
    throw new TypeError(
      `${what} has ${given} bytes${given === 0 ? ' (it may be detached)' : ''}; ` +
        `${describe(descriptor)} has ${wanted}`,
    );
  const { array, also } = types[descriptor.dataType];
  if (kind && ![array.name, also, 'Uint8Array'].includes(kind))
    throw new TypeError(
      `${what} is ${withArticle(kind)}; ${descriptor.dataType} needs ${withArticle(array.name)}, a Uint8Array or a buffer`,
    );
}

/** Whether the view or buffer lost its memory since it was checked. */
export function lostMemory(source, descriptor) {
  return memoryOf(source).byteLength !== byteLength(descriptor);
}

/** A double rounded to the nearest half, ties to even, as its bits. */
export function halfBits(value) {
  const sign = value < 0 || Object.is(value, -0) ? 0x8000 : 0;
  const size = Math.abs(value);
  if (Number.isNaN(size)) return 0x7e00;
  if (size >= 65520) return sign | 0x7c00;
  const exponent = Math.max(-14, size === 0 ? -14 : Math.floor(Math.log2(size)));
  let scaled = size * 2 ** (10 - exponent); // exact: a power of two
  if (scaled >= 2048) return halfBitsOf(sign, exponent + 1, scaled / 2);
  if (scaled < 1024 && exponent > -14) return halfBitsOf(sign, exponent - 1, scaled * 2);
  return halfBitsOf(sign, exponent, scaled);
}

function halfBitsOf(sign, exponent, scaled) {
  let whole = Math.floor(scaled);
  const rest = scaled - whole;
  if (rest > 0.5 || (rest === 0.5 && whole % 2 === 1)) whole += 1;
  return sign | ((exponent + 14) * 1024 + whole); // a carry out of the mantissa raises the exponent
}

function toBigInteger(value) {
  if (typeof value === 'bigint') return value;
  return Number.isFinite(value) ? BigInt(Math.trunc(value)) : 0n;
}

const halfValue = (bits) => {
  const [exponent, mantissa] = [(bits >> 10) & 0x1f, bits & 0x3ff];
  const size =
    exponent === 31
      ? mantissa
        ? NaN
        : Infinity
      : exponent
        ? (1024 + mantissa) * 2 ** (exponent - 25)
        : mantissa * 2 ** -24;
  return bits & 0x8000 ? -size : size;
};

/** The specification's cast of an MLNumber, which wraps integers around; those of 64 bits are BigInts. */
export function castNumber(dataType, value) {
  if (dataType === 'float32') return Math.fround(Number(value));
  if (dataType === 'float16') return halfValue(halfBits(Number(value)));
  const bits = 8 * types[dataType].size;
  const wrap = dataType.startsWith('u') ? BigInt.asUintN : BigInt.asIntN;
  const integer = wrap(bits, toBigInteger(value));
  return bits === 64 ? integer : Number(integer);
}

/** An MLNumber as one element's bytes. */
export function scalarBytes(dataType, value) {
  const bytes = new DataView(new ArrayBuffer(byteLength({ dataType, shape: [] })));
  if (dataType === 'float32') bytes.setFloat32(0, Number(value), true);
  else if (dataType === 'float16') bytes.setUint16(0, halfBits(Number(value)), true);
  else if (bytes.byteLength === 8) bytes.setBigInt64(0, BigInt.asIntN(64, toBigInteger(value)), true);
  else {
    const bits = 8 * types[dataType].size;
    const number = Number(BigInt.asUintN(bits, toBigInteger(value)));
    if (bits <= 8) bytes.setUint8(0, number);
    else bytes.setUint32(0, number, true);
  }
  return new Uint8Array(bytes.buffer);
}
