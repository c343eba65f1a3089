// Tensors as callers have them: typed arrays with dims, by the names of the addon's data types.
import { HalfFloatArray, memoryOf, viewKind } from '../memory.js';
import { withArticle } from '../text.js';
import { isRecord, kindOf } from './check.js';

/** By the addon's names. `also`: other arrays that hold the same. */
const types = {
  f32: { name: 'float32', array: Float32Array },
  f16: { name: 'float16', array: HalfFloatArray, also: ['Uint16Array'] },
  bf16: { name: 'bfloat16', array: Uint16Array },
  f64: { name: 'float64', array: Float64Array },
  i8: { name: 'int8', array: Int8Array },
  u8: { name: 'uint8', array: Uint8Array, also: ['Uint8ClampedArray'] },
  i16: { name: 'int16', array: Int16Array },
  u16: { name: 'uint16', array: Uint16Array },
  i32: { name: 'int32', array: Int32Array },
  u32: { name: 'uint32', array: Uint32Array },
  i64: { name: 'int64', array: BigInt64Array },
  u64: { name: 'uint64', array: BigUint64Array },
  i4: { name: 'int4', array: Uint8Array, also: ['Int8Array'], packed: true }, // the low nibble first
  u4: { name: 'uint4', array: Uint8Array, packed: true },
  bool: { name: 'bool', array: Uint8Array },
};

export const typeName = (type) => types[type].name;

/** "float32[batch, 3]" */
export const describe = ({ type, shape }) => `${typeName(type)}[${shape.join(', ')}]`;

/** The array's memory. `what` gives its name, for a failure. */
function checkArray(data, type, what) {
  const { name, array, also = [], packed } = types[type];
  const memory = memoryOf(data);
  const kind = memory?.kind;
  if (kind !== array.name && !also.includes(kind)) {
    const wanted = [array.name, ...also].join(' or ');
    const given = kind === undefined ? kindOf(data) : withArticle(kind);
    const packing = packed && kind !== undefined ? ', two elements a byte' : '';
    throw new TypeError(`${what()} is ${given}; ${name} takes a ${wanted}${packing}`);
  }
  if (memory.resizes)
    throw new TypeError(`${what()} lies in a buffer that can be resized; pass a copy, array.slice()`);
  return memory;
}

function checkDims(dims, { type, shape }, what) {
  if (!Array.isArray(dims) && viewKind(dims) === undefined)
    throw new TypeError(`${what()}: dims is ${kindOf(dims)}; an array of numbers is needed`);
  const extents = [];
  let fits = dims.length === shape.length;
  for (let i = 0; i < dims.length; i += 1) {
    const extent = dims[i];
    if (typeof extent !== 'number' || !Number.isSafeInteger(extent) || extent < 0)
      throw new TypeError(`${what()}: dims[${i}] is ${String(extent)}; it must be a whole number from 0 on`);
    fits &&= typeof shape[i] === 'string' || shape[i] === extent;
    extents.push(extent);
  }
  if (!fits)
    throw new TypeError(
      `${what()} has the dims [${extents.join(', ')}]; the model takes ${describe({ type, shape })}`,
    );
  return extents;
}

function fixedDims(declared, what) {
  const open = declared.shape.filter((extent) => typeof extent === 'string');
  if (open.length > 0)
    throw new TypeError(
      `${what()} is an array without dims; ${describe(declared)} is open in ${open.join(', ')}: pass {data, dims}`,
    );
  return declared.shape;
}

/** [dims, bytes] of what a caller passes for an input, {name, type, shape}. */
export function toInput(value, declared) {
  const { name, type } = declared;
  const what = () => `input "${name}"`;
  const isArray = viewKind(value) !== undefined;
  if (!isArray && !isRecord(value))
    throw new TypeError(`${what()} is ${kindOf(value)}; a typed array or {data, dims} is needed`);
  if (!isArray && value.type !== undefined && value.type !== typeName(type))
    throw new TypeError(`${what()} is a tensor of ${value.type}; the model takes ${describe(declared)}`);
  const memory = isArray
    ? checkArray(value, type, what)
    : checkArray(value.data, type, () => `${what()}: data`);
  const dims = isArray ? fixedDims(declared, what) : checkDims(value.dims, declared, what);
  let count = 1;
  for (const extent of dims) count *= extent;
  const wanted = types[type].packed ? Math.ceil(count / 2) : count;
  const given = memory.byteLength / types[type].array.BYTES_PER_ELEMENT;
  if (given !== wanted) {
    const why = given === 0 ? ' (its buffer may be detached)' : '';
    throw new TypeError(
      `${what()} has ${given} elements${why}; ${typeName(type)}[${dims.join(', ')}] has ${wanted}`,
    );
  }
  return [dims, new Uint8Array(memory.buffer, memory.byteOffset, memory.byteLength)];
}

/** A result of the addon's, {dims, buffer}, of a declared type. */
export function toTensor(type, { dims, buffer }) {
  const { name, array } = types[type];
  return { type: name, dims, data: new array(buffer) };
}
