// Small ONNX models as bytes: onnx.proto's messages, as far as tests need them.

const types = {
  float32: 1,
  uint8: 2,
  int8: 3,
  uint16: 4,
  int16: 5,
  int32: 6,
  int64: 7,
  string: 8,
  bool: 9,
  float16: 10,
  float64: 11,
  uint32: 12,
  uint64: 13,
  bfloat16: 16,
  uint4: 21,
  int4: 22,
};

function varint(value) {
  const bytes = [];
  let rest = BigInt(value);
  do {
    const low = Number(rest & 0x7fn);
    rest >>= 7n;
    bytes.push(rest ? low | 0x80 : low);
  } while (rest);
  return Buffer.from(bytes);
}
const number = (field, value) => Buffer.concat([varint(field * 8), varint(value)]);
const bytes = (field, value) => {
  const content = Buffer.from(value);
  return Buffer.concat([varint(field * 8 + 2), varint(content.length), content]);
};
const message = (...fields) => Buffer.concat(fields.flat());

const dimension = (extent) => bytes(1, typeof extent === 'string' ? bytes(2, extent) : number(1, extent));
const valueInfo = ([name, type, shape, isSequence]) => {
  const tensor = bytes(1, message(number(1, types[type]), bytes(2, message(shape.map(dimension)))));
  return message(bytes(1, name), bytes(2, isSequence ? bytes(4, bytes(1, tensor)) : tensor));
};
const attribute = ([name, value]) => message(bytes(1, name), number(3, value), number(20, 2));
const node = ({ op, inputs, outputs, attributes = {} }) =>
  message(
    inputs.map((name) => bytes(1, name)),
    outputs.map((name) => bytes(2, name)),
    bytes(4, op),
    Object.entries(attributes).map((entry) => bytes(5, attribute(entry))),
  );
const initializer = ([name, type, shape, data]) =>
  message(
    shape.map((extent) => number(1, extent)),
    number(2, types[type]),
    bytes(8, name),
    bytes(9, new Uint8Array(data.buffer)),
  );

/** inputs, outputs: [name, type, shape, whether it is a sequence of such]; initializers: [name, type, shape, typed array]. */
export function onnxModel({ nodes, inputs, outputs, initializers = [] }) {
  const graph = message(
    nodes.map((one) => bytes(1, node(one))),
    bytes(2, 'test'),
    initializers.map((one) => bytes(5, initializer(one))),
    inputs.map((one) => bytes(11, valueInfo(one))),
    outputs.map((one) => bytes(12, valueInfo(one))),
  );
  return message(number(1, 10), bytes(7, graph), bytes(8, number(2, 21)));
}

/** y = x W of an open number of rows. */
export const product = onnxModel({
  nodes: [{ op: 'MatMul', inputs: ['x', 'w'], outputs: ['y'] }],
  inputs: [['x', 'float32', ['rows', 2]]],
  outputs: [['y', 'float32', ['rows', 2]]],
  initializers: [['w', 'float32', [2, 2], Float32Array.of(1, 2, 3, 4)]],
});

/** y = x + x of a type. */
export const doubled = (type, shape) =>
  onnxModel({
    nodes: [{ op: 'Add', inputs: ['x', 'x'], outputs: ['y'] }],
    inputs: [['x', type, shape]],
    outputs: [['y', type, shape]],
  });

/** y = x */
export const identityOf = (type, shape) =>
  onnxModel({
    nodes: [{ op: 'Identity', inputs: ['x'], outputs: ['y'] }],
    inputs: [['x', type, shape]],
    outputs: [['y', type, shape]],
  });

/** A cast to another type. */
export const cast = (from, to, shape) =>
  onnxModel({
    nodes: [{ op: 'Cast', inputs: ['x'], outputs: ['y'], attributes: { to: types[to] } }],
    inputs: [['x', from, shape]],
    outputs: [['y', to, shape]],
  });

/** product and truth of x and b, in one model with two outputs. */
export const several = onnxModel({
  nodes: [
    { op: 'Not', inputs: ['b'], outputs: ['no'] },
    { op: 'Cast', inputs: ['b'], outputs: ['c'], attributes: { to: types.int64 } },
    { op: 'Add', inputs: ['x', 'c'], outputs: ['sum'] },
  ],
  inputs: [
    ['x', 'int64', [3]],
    ['b', 'bool', [3]],
  ],
  outputs: [
    ['sum', 'int64', [3]],
    ['no', 'bool', [3]],
  ],
});

/** A sequence of x and x. */
export const sequence = onnxModel({
  nodes: [{ op: 'SequenceConstruct', inputs: ['x', 'x'], outputs: ['s'] }],
  inputs: [['x', 'float32', [2]]],
  outputs: [['s', 'float32', [2], true]],
});
