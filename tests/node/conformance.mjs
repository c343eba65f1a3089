// Conformance cases: their values as bytes, how a case is run through navigator.ml, and how results compare.
const halfValue = (bits) => {
  const exponent = (bits >> 10) & 31;
  const fraction = bits & 1023;
  if (exponent === 31) return fraction ? NaN : Infinity;
  return exponent ? 2 ** (exponent - 15) * (1 + fraction / 1024) : fraction * 2 ** -24;
};
const halfFloats = Array.from({ length: 0x7c00 }, (_, bits) => halfValue(bits));

/** The bits of the half that is nearest, found among all of them; ties go to even bits. */
export function halfOf(value) {
  if (Number.isNaN(value)) return 0x7e00;
  const sign = value < 0 || Object.is(value, -0) ? 0x8000 : 0;
  const size = Math.abs(value);
  if (size >= 65520) return sign | 0x7c00;
  let low = 0;
  let high = halfFloats.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (halfFloats[middle] <= size) low = middle;
    else high = middle - 1;
  }
  const below = size - halfFloats[low];
  const above = (halfFloats[low + 1] ?? 65536) - size;
  return sign | (above < below || (above === below && low % 2 === 1) ? low + 1 : low);
}

/** The cases in a file's text. Integers of more than 53 bits stay exact: they are BigInts. */
export function parseCases(json) {
  const text = json.replace(/([[:,]\s*)(-?\d{16,})(?=\s*[,\]}])/g, '$1"integer $2"');
  const revive = (_, value) =>
    typeof value === 'string' && value.startsWith('integer ') ? BigInt(value.slice(8)) : value;
  return JSON.parse(text, revive);
}

const special = { NaN: NaN, Infinity: Infinity, '-Infinity': -Infinity };
const numberOf = (value) => (typeof value === 'string' ? special[value] : value);

const arrays = {
  float32: Float32Array,
  float16: Uint16Array,
  int32: Int32Array,
  uint32: Uint32Array,
  int64: BigInt64Array,
  uint64: BigUint64Array,
  int8: Int8Array,
  uint8: Uint8Array,
};

const countOf = (shape) => shape.reduce((product, extent) => product * extent, 1);

function elements(data, dtype) {
  const values = data.map(numberOf);
  if (dtype === 'float16') return values.map(halfOf);
  if (dtype === 'int64' || dtype === 'uint64') return values.map(BigInt);
  return values.map(Number);
}

/** The typed array that a case's operand is; 4-bit elements are packed, the low nibble first. */
export function arrayOf({ data, shape, dtype }) {
  const array = arrays[dtype];
  // Some have millions of elements, all of one value.
  if (array && !Array.isArray(data)) return new array(countOf(shape)).fill(elements([data.fill], dtype)[0]);
  const values = elements(Array.isArray(data) ? data : new Array(countOf(shape)).fill(data.fill), dtype);
  if (array) return array.from(values);
  const bytes = new Uint8Array(Math.ceil(values.length / 2));
  values.forEach((value, i) => (bytes[i >> 1] |= (value & 15) << (4 * (i % 2))));
  return bytes;
}

/** Bits of floats in the order of their values. */
function ordered(array, dtype) {
  if (dtype !== 'float32' && dtype !== 'float16') return Array.from(array, BigInt);
  const bits =
    dtype === 'float32'
      ? new Int32Array(array.buffer, array.byteOffset, array.length)
      : new Int16Array(array.buffer, array.byteOffset, array.length);
  const mask = dtype === 'float32' ? 0x7fffffff : 0x7fff;
  return Array.from(bits, (b) => BigInt(b < 0 ? -(b & mask) : b));
}

const asNumber = (value, dtype) =>
  dtype === 'float16' ? (value & 0x8000 ? -1 : 1) * halfValue(value & 0x7fff) : Number(value);

function unpacked(array, { dtype, shape }) {
  if (dtype !== 'int4' && dtype !== 'uint4') return array;
  const count = shape.reduce((product, extent) => product * extent, 1);
  return Array.from({ length: count }, (_, i) => {
    const nibble = (array[i >> 1] >> (4 * (i % 2))) & 15;
    return dtype === 'int4' && nibble > 7 ? nibble - 16 : nibble;
  });
}

/** Nothing, or how the values differ by more than the tolerance. */
export function mismatch(actual, expected, spec, { type, value }) {
  const [a, e] = [unpacked(actual, spec), unpacked(expected, spec)];
  if (a.length !== e.length) return `${a.length} elements, expected ${e.length}`;
  if (a.every((item, i) => item === e[i])) return undefined;
  const distances = type === 'ULP' ? ulps(a, e, spec.dtype) : differences(a, e, spec.dtype);
  const worst = distances.findIndex((distance) => !(distance <= value));
  if (worst < 0) return undefined;
  const show = (array) => asNumber(array[worst], spec.dtype);
  return `[${worst}] is ${show(a)}, expected ${show(e)}: ${type} ${distances[worst]} > ${value}`;
}

function ulps(a, e, dtype) {
  const [left, right] = [ordered(a, dtype), ordered(e, dtype)];
  return left.map((bits, i) => {
    const areNaN = [asNumber(a[i], dtype), asNumber(e[i], dtype)].filter(Number.isNaN).length;
    if (areNaN) return areNaN === 2 ? 0 : Infinity;
    const distance = bits - right[i];
    return Number(distance < 0n ? -distance : distance);
  });
}

function differences(a, e, dtype) {
  return Array.from(a, (value, i) => {
    const [x, y] = [asNumber(value, dtype), asNumber(e[i], dtype)];
    return x === y ? 0 : Math.abs(x - y);
  });
}

/** Adds a case's operators; every operand and result by name. */
function addOperators(builder, known, operators) {
  const resolve = (value) => {
    if (Array.isArray(value)) return value.map(resolve);
    if (typeof value !== 'string') return value;
    return known.get(value) ?? special[value] ?? value;
  };
  for (const { op, args, options, outputs } of operators) {
    const resolved = Object.fromEntries(
      Object.entries(options).map(([name, value]) => [name, resolve(value)]),
    );
    const made = builder[op](...Object.values(args).map(resolve), resolved);
    const results = Array.isArray(made) ? made : [made];
    outputs.forEach((name, i) => known.set(name, results[i]));
  }
}

/** Runs a case; nothing, or why it fails. */
export async function failureOf(context, { inputs, operators, expected, tolerance }) {
  const builder = new MLGraphBuilder(context);
  const known = new Map();
  for (const [name, spec] of Object.entries(inputs)) {
    const descriptor = { dataType: spec.dtype, shape: spec.shape };
    known.set(
      name,
      spec.constant ? builder.constant(descriptor, bytesOf(arrayOf(spec))) : builder.input(name, descriptor),
    );
  }
  addOperators(builder, known, operators);
  const outputs = Object.fromEntries(Object.keys(expected).map((name) => [name, known.get(name)]));
  const graph = await builder.build(outputs);
  const read = {};
  for (const [name, spec] of Object.entries(inputs).filter(([, { constant }]) => !constant)) {
    read[name] = await context.createTensor({ dataType: spec.dtype, shape: spec.shape, writable: true });
    context.writeTensor(read[name], bytesOf(arrayOf(spec)));
  }
  const written = {};
  for (const [name, { dataType, shape }] of Object.entries(outputs))
    written[name] = await context.createTensor({ dataType, shape, readable: true });
  context.dispatch(graph, read, written);
  for (const [name, spec] of Object.entries(expected)) {
    const { dataType, shape } = outputs[name];
    if (dataType !== spec.dtype || shape.join() !== spec.shape.join())
      return `${name} is ${dataType}[${shape}], expected ${spec.dtype}[${spec.shape}]`;
    const buffer = await context.readTensor(written[name]);
    const type = arrays[spec.dtype] ?? Uint8Array;
    const reason = mismatch(new type(buffer), arrayOf(spec), spec, tolerance);
    if (reason) return `${name}${reason}`;
  }
  graph.destroy();
  for (const tensor of [...Object.values(read), ...Object.values(written)]) tensor.destroy();
  return undefined;
}

const bytesOf = (array) => new Uint8Array(array.buffer);
