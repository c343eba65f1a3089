// onnxruntime-common's Tensor, as far as data lie with the CPU.
import { isRecord, kindOf } from '../models/check.js';
import { bytesOf, viewKind } from '../memory.js';
import { halves } from '../models/tensors.js';

/** By type: the arrays that hold it, the first of which is made of other lists. */
const arrays = {
  float32: [Float32Array],
  float16: [halves, Uint16Array],
  float64: [Float64Array],
  int8: [Int8Array],
  uint8: [Uint8Array],
  int16: [Int16Array],
  uint16: [Uint16Array],
  int32: [Int32Array],
  uint32: [Uint32Array],
  int64: [BigInt64Array],
  uint64: [BigUint64Array],
  bool: [Uint8Array],
  int4: [Int8Array, Uint8Array],
  uint4: [Uint8Array],
};
const typeOfArray = {
  Float32Array: 'float32',
  Float16Array: 'float16',
  Float64Array: 'float64',
  Int8Array: 'int8',
  Uint8Array: 'uint8',
  Uint8ClampedArray: 'uint8',
  Int16Array: 'int16',
  Uint16Array: 'uint16',
  Int32Array: 'int32',
  Uint32Array: 'uint32',
  BigInt64Array: 'int64',
  BigUint64Array: 'uint64',
};

function sizeOf(dims) {
  if (!Array.isArray(dims)) throw new TypeError(`Tensor: dims is ${kindOf(dims)}; an array is needed`);
  return dims.reduce((product, extent, i) => {
    if (typeof extent !== 'number' || !Number.isSafeInteger(extent))
      throw new TypeError(`Tensor: dims[${i}] is ${String(extent)}; a whole number is needed`);
    if (extent < 0) throw new RangeError(`Tensor: dims[${i}] is ${extent}; it must not be negative`);
    return product * extent;
  }, 1);
}

function ofList(type, list) {
  if (type === 'float16' && halves === Uint16Array)
    throw new TypeError(
      'Tensor: float16 of a list of numbers needs Float16Array, which is not here: pass a Uint16Array',
    );
  if (type === 'int64' || type === 'uint64') return arrays[type][0].from(list, (item) => BigInt(item));
  return arrays[type][0].from(list);
}

function toData(type, given) {
  if (type === 'string') {
    if (!Array.isArray(given) || given.some((item) => typeof item !== 'string'))
      throw new TypeError('Tensor: the data of strings must be an array of strings');
    return given;
  }
  if (!Object.hasOwn(arrays, type)) throw new TypeError(`Tensor: there is no type "${String(type)}"`);
  if (Array.isArray(given)) return ofList(type, given);
  const kind = viewKind(given);
  if (type === 'uint8' && kind === 'Uint8ClampedArray')
    return bytesOf(given);
  const wanted = arrays[type].map(({ name }) => name);
  if (!wanted.includes(kind))
    throw new TypeError(`Tensor: the data are ${kindOf(given)}; ${type} takes a ${wanted.join(' or ')}`);
  return given;
}

function typeOf(data) {
  if (!Array.isArray(data)) {
    const type = typeOfArray[viewKind(data)];
    if (type) return type;
    throw new TypeError(`Tensor: the data are ${kindOf(data)}; a typed array or a list is needed`);
  }
  const kind = typeof data[0];
  if (kind === 'string') return 'string';
  if (kind === 'boolean') return 'bool';
  throw new TypeError('Tensor: a list has no type of its own; pass one before it');
}

/** [type, data, dims] of the constructor's forms. */
function parts(first, second, third) {
  if (typeof first === 'string') return [first, toData(first, second), third];
  if (isRecord(first) && 'location' in first) {
    if (first.location !== 'cpu-pinned' && first.location !== 'cpu')
      throw new TypeError(`Tensor: data at "${first.location}" cannot be used; pass it in a typed array`);
    return [first.type, toData(first.type, first.data), first.dims];
  }
  const type = typeOf(first);
  return [type, toData(type, first), second];
}

export class Tensor {
  #isDisposed = false;

  constructor(first, second, third) {
    const [type, data, dims = [data.length]] = parts(first, second, third);
    const size = sizeOf(dims);
    const wanted = type === 'int4' || type === 'uint4' ? Math.ceil(size / 2) : size;
    // A list of elements of 4 bits without dims is as long as its bytes.
    if (data.length !== wanted && !(third === undefined && size === data.length))
      throw new Error(
        `Tensor: dims [${dims.join(', ')}] make ${wanted} elements; the data have ${data.length}`,
      );
    this.type = type;
    this.dims = dims;
    this.size = size;
    this.cpuData = data;
  }

  /** Of memory that a GPU's driver keeps in place, which is the CPU's to us. */
  static fromPinnedBuffer(type, data, dims = [data.length]) {
    return new Tensor({ location: 'cpu-pinned', type, data, dims });
  }

  get location() {
    return this.#isDisposed ? 'none' : 'cpu';
  }

  get data() {
    if (this.#isDisposed) throw new Error('Tensor: the tensor is disposed of');
    return this.cpuData;
  }

  async getData(releaseData = false) {
    const { data } = this;
    if (releaseData) this.dispose();
    return data;
  }

  dispose() {
    this.#isDisposed = true;
    this.cpuData = undefined;
  }

  reshape(dims) {
    const { data } = this;
    if (sizeOf(dims) !== this.size)
      throw new Error(`Tensor: [${dims.join(', ')}] has another size than [${this.dims.join(', ')}]`);
    return new Tensor(this.type, data, dims);
  }
}

/** Anything with a tensor's members: packages have copies of onnxruntime-common. */
export function checkTensor(value, what) {
  if (!isRecord(value) || typeof value.type !== 'string' || !Array.isArray(value.dims))
    throw new TypeError(`${what} is ${kindOf(value)}; a Tensor is needed`);
  return value;
}
