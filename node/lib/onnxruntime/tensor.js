// onnxruntime-common's Tensor, as far as data lie with the CPU.
import { isRecord, kindOf } from '../models/check.js';
import { HalfFloatArray, bytesOf, memoryOf, viewKind } from '../memory.js';

/** By type: the arrays that hold it, the first of which is made of other lists. */
const arrays = {
  float32: [Float32Array],
  float16: [HalfFloatArray, Uint16Array],
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
  if (type === 'int4' || type === 'uint4' || (type === 'float16' && HalfFloatArray === Uint16Array))
    throw new TypeError(
      `Tensor: a list of numbers makes no ${type}: pass its bits in a ${arrays[type][0].name}`,
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
  if (type === 'uint8' && kind === 'Uint8ClampedArray') return bytesOf(given).slice();
  const wanted = arrays[type].map(({ name }) => name);
  if (!wanted.includes(kind))
    throw new TypeError(`Tensor: the data are ${kindOf(given)}; ${type} takes a ${wanted.join(' or ')}`);
  if (type !== 'float16' || kind === HalfFloatArray.name) return given;
  const { buffer, byteOffset, byteLength } = memoryOf(given);
  return new HalfFloatArray(buffer, byteOffset, byteLength / 2);
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

/** What ONNX Runtime has for pages and GPUs. */
function elsewhere(what) {
  return new Error(`Tensor: ${what}: tensors lie with the CPU here; pass their data in a typed array`);
}

/** [type, data, dims, location] of the constructor's forms. */
function parts(first, second, third) {
  if (typeof first === 'string') return [first, toData(first, second), third];
  if (isRecord(first) && 'location' in first) {
    if (first.location !== 'cpu-pinned' && first.location !== 'cpu')
      throw new TypeError(`Tensor: data at "${first.location}" cannot be used; pass it in a typed array`);
    if (viewKind(first.data) === undefined && first.type !== 'string')
      throw new TypeError(`Tensor: the data are ${kindOf(first.data)}; a typed array is needed`);
    return [first.type, toData(first.type, first.data), first.dims, first.location];
  }
  const type = typeOf(first);
  return [type, toData(type, first), second];
}

export class Tensor {
  #location;

  constructor(first, second, third) {
    const [type, data, dims = [data.length], location = 'cpu'] = parts(first, second, third);
    const size = sizeOf(dims);
    const wanted = type === 'int4' || type === 'uint4' ? Math.ceil(size / 2) : size;
    // Elements of 4 bits are counted by their bytes, too.
    if (data.length !== wanted && data.length !== size)
      throw new Error(
        `Tensor: dims [${dims.join(', ')}] make ${wanted} elements; the data have ${data.length}`,
      );
    this.type = type;
    this.dims = dims;
    this.size = size;
    this.cpuData = data;
    this.#location = location;
  }

  /** A tensor in memory that a GPU's driver keeps in place; it is read as the CPU's. */
  static fromPinnedBuffer(type, data, dims = [data.length]) {
    return new Tensor({ location: 'cpu-pinned', type, data, dims });
  }

  static async fromImage() {
    throw elsewhere('fromImage() reads no images');
  }
  static fromTexture() {
    throw elsewhere('fromTexture()');
  }
  static fromGpuBuffer() {
    throw elsewhere('fromGpuBuffer()');
  }
  static fromMLTensor() {
    throw elsewhere('fromMLTensor()');
  }

  get location() {
    return this.#location;
  }

  get data() {
    if (this.#location === 'none') throw new Error('Tensor: the tensor is disposed of');
    return this.cpuData;
  }
  get texture() {
    throw elsewhere('there is no texture');
  }
  get gpuBuffer() {
    throw elsewhere('there is no gpuBuffer');
  }
  get mlTensor() {
    throw elsewhere('there is no mlTensor');
  }

  /** As for ONNX Runtime, what lies with the CPU stays: `releaseData` is about other memory. */
  async getData() {
    return this.data;
  }

  dispose() {
    this.#location = 'none';
    this.cpuData = undefined;
  }

  toDataURL() {
    throw elsewhere('toDataURL() makes no images');
  }
  toImageData() {
    throw elsewhere('toImageData() makes no images');
  }

  reshape(dims) {
    const { data } = this;
    if (sizeOf(dims) !== this.size)
      throw new Error(`Tensor: [${dims.join(', ')}] has another size than [${this.dims.join(', ')}]`);
    return new Tensor({ location: this.#location, type: this.type, data, dims });
  }
}

export const isTensor = (value) =>
  isRecord(value) && typeof value.type === 'string' && Array.isArray(value.dims);

/** Anything with a tensor's members: packages have copies of onnxruntime-common. */
export function checkTensor(value, what) {
  if (!isTensor(value)) throw new TypeError(`${what} is ${kindOf(value)}; a Tensor is needed`);
  return value;
}
