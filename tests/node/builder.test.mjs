// Inputs, constants and built graphs.
import assert from 'node:assert/strict';
import { test } from 'node:test';

import '../../node/webnn.mjs';

const context = await navigator.ml.createContext({ accelerated: false });
const other = await navigator.ml.createContext({ accelerated: false });
const arrays = {
  float32: Float32Array,
  int32: Int32Array,
  uint32: Uint32Array,
  int64: BigInt64Array,
  uint64: BigUint64Array,
  int8: Int8Array,
  uint8: Uint8Array,
  float16: Uint16Array,
};

/** What a graph without inputs gives. */
async function valueOf(build) {
  const builder = new MLGraphBuilder(context);
  const y = build(builder);
  const { dataType, shape } = y;
  const graph = await builder.build({ y });
  const tensor = await context.createTensor({ dataType, shape, readable: true });
  context.dispatch(graph, {}, { y: tensor });
  return [...new (arrays[dataType] ?? Uint8Array)(await context.readTensor(tensor))];
}

test('constants come from buffers, whose bytes are copied', async () => {
  const data = Float32Array.of(1, 2);
  const values = await valueOf((builder) => {
    const constant = builder.constant({ dataType: 'float32', shape: [2] }, data);
    data.fill(9);
    return builder.identity(constant);
  });
  assert.deepEqual(values, [1, 2]);
});

test('constants come from constant tensors, which may be destroyed once the graph is built', async () => {
  const tensor = await context.createConstantTensor(
    { dataType: 'float32', shape: [2] },
    Float32Array.of(5, 6),
  );
  assert.deepEqual([tensor.constant, tensor.readable, tensor.writable], [true, false, false]);
  const builder = new MLGraphBuilder(context);
  const graph = await builder.build({ y: builder.neg(builder.constant(tensor)) });
  tensor.destroy();
  const y = await context.createTensor({ dataType: 'float32', shape: [2], readable: true });
  context.dispatch(graph, {}, { y });
  assert.deepEqual([...new Float32Array(await context.readTensor(y))], [-5, -6]);
});

test('only live constant tensors of the same context become constants', async () => {
  const plain = await context.createTensor({ dataType: 'float32', shape: [2] });
  const foreign = await other.createConstantTensor({ dataType: 'float32', shape: [2] }, new Float32Array(2));
  const dead = await context.createConstantTensor({ dataType: 'float32', shape: [2] }, new Float32Array(2));
  dead.destroy();
  const builder = new MLGraphBuilder(context);
  for (const value of [plain, foreign, dead, {}, null, 'float32'])
    assert.throws(() => builder.constant(value), TypeError);
  assert.throws(() => builder.constant(), TypeError);
});

const scalars = [
  ['float32', 1.1, Math.fround(1.1)],
  ['float32', 3n, 3],
  ['float32', NaN, NaN],
  ['float16', 1.5, 0x3e00],
  ['float16', 65519.99, 0x7bff],
  ['float16', 65520, 0x7c00],
  ['float16', -(2 ** -25), 0x8000],
  ['float16', 2 ** -25 * 1.5, 1],
  ['float16', 1 + 2 ** -11, 0x3c00],
  ['float16', 1 + 3 * 2 ** -11, 0x3c02],
  ['int8', 200, -56],
  ['uint8', -1, 255],
  ['uint8', 3.9, 3],
  ['int32', 2 ** 31, -(2 ** 31)],
  ['uint32', -1, 4294967295],
  ['int64', 2n ** 62n + 1n, 2n ** 62n + 1n],
  ['uint64', 2n ** 64n - 1n, 2n ** 64n - 1n],
  ['int32', Infinity, 0],
  ['int64', '12', 12n],
  ['int8', true, 1],
];
for (const [dataType, given, expected] of scalars)
  test(`the ${dataType} constant of ${String(given)} is ${expected}`, async () => {
    assert.deepEqual(await valueOf((builder) => builder.identity(builder.constant(dataType, given))), [
      expected,
    ]);
  });

test('the overloads of constant are told apart by their first argument', () => {
  const builder = new MLGraphBuilder(context);
  assert.throws(() => builder.constant('float64', 1), TypeError);
  assert.throws(() => builder.constant(undefined, new Float32Array(1)), TypeError);
  assert.throws(() => builder.constant('float32', Symbol('x')), TypeError);
  assert.throws(() => builder.constant({ dataType: 'float32', shape: [2] }, 5), TypeError);
  assert.deepEqual(builder.constant('float32', undefined).shape, []);
});

test('inputs have names of their own', () => {
  const builder = new MLGraphBuilder(context);
  const descriptor = { dataType: 'float32', shape: [] };
  builder.input('x', descriptor);
  assert.throws(() => builder.input('x', descriptor), { name: 'TypeError', message: /"x"/ });
  assert.throws(() => builder.input('', descriptor), TypeError);
  assert.throws(() => builder.input('y'), TypeError);
  assert.throws(() => new MLGraphBuilder({}), TypeError);
  assert.throws(() => MLGraphBuilder(context), TypeError);
});

test('build refuses outputs that are none, and the builder goes on', async () => {
  const builder = new MLGraphBuilder(context);
  const x = builder.input('x', { dataType: 'float32', shape: [2] });
  const stranger = new MLGraphBuilder(context);
  const z = stranger.abs(stranger.input('x', { dataType: 'float32', shape: [2] }));
  const y = builder.abs(x);
  for (const outputs of [
    undefined,
    null,
    5,
    {},
    { x },
    { '': y },
    { z },
    { y: {} },
    { c: builder.constant('float32', 1) },
  ]) {
    const promise = builder.build(outputs);
    await assert.rejects(promise, { name: 'TypeError' });
  }
  assert.ok((await builder.build({ y })) instanceof MLGraph);
  await assert.rejects(builder.build({ y }), { name: 'InvalidStateError' });
  assert.throws(() => builder.input('w', { dataType: 'float32', shape: [] }), { name: 'InvalidStateError' });
  assert.throws(() => builder.constant('float32', 1), { name: 'InvalidStateError' });
});

test('a builder has built from the call on, not from the promise on', async () => {
  const builder = new MLGraphBuilder(context);
  const y = builder.abs(builder.input('x', { dataType: 'float32', shape: [2] }));
  const promise = builder.build({ y });
  assert.throws(() => builder.abs(y), { name: 'InvalidStateError' });
  assert.ok((await promise) instanceof MLGraph);
});

test('a graph has the inputs that its outputs need, and one operand may be two outputs', async () => {
  const builder = new MLGraphBuilder(context);
  const x = builder.input('x', { dataType: 'float32', shape: [2] });
  builder.input('unused', { dataType: 'float32', shape: [2] });
  const y = builder.mul(x, x);
  const graph = await builder.build({ b: y, a: y });
  const make = (options) => context.createTensor({ dataType: 'float32', shape: [2], ...options });
  const [given, a, b, more] = await Promise.all([
    make({ writable: true }),
    make({ readable: true }),
    make({ readable: true }),
    make({}),
  ]);
  context.writeTensor(given, Float32Array.of(2, 3));
  assert.throws(() => context.dispatch(graph, { x: given, unused: more }, { a, b }), TypeError);
  context.dispatch(graph, { x: given }, { a, b });
  for (const tensor of [a, b])
    assert.deepEqual([...new Float32Array(await context.readTensor(tensor))], [4, 9]);
});

test('clamp and pad take 64-bit numbers exactly', async () => {
  const big = 2n ** 53n + 1n;
  const of = (values) => ({ dataType: 'int64', shape: [values.length] });
  const values = [0n, big + 5n];
  assert.deepEqual(
    await valueOf((b) =>
      b.clamp(b.constant(of(values), BigInt64Array.from(values)), { minValue: 1, maxValue: big }),
    ),
    [1n, big],
  );
  assert.deepEqual(
    await valueOf((b) => b.pad(b.constant(of([1n]), BigInt64Array.of(1n)), [1], [0], { value: big })),
    [big, 1n],
  );
});

test('resample2d resizes dimensions that are no neighbours, and prelu broadcasts both operands', async () => {
  const image = { dataType: 'float32', shape: [2, 1, 1, 3] };
  const resized = (axes, sizes) =>
    valueOf((b) => b.resample2d(b.constant(image, Float32Array.of(1, 2, 3, 4, 5, 6)), { axes, sizes }));
  const doubled = [1, 1, 2, 2, 3, 3];
  assert.deepEqual(await resized([0, 3], [1, 6]), doubled);
  assert.deepEqual(await resized([3, 0], [6, 1]), doubled);
  assert.deepEqual(await resized([1, 3], [2, 1]), [2, 2, 5, 5]);
  assert.deepEqual(
    await valueOf((b) => {
      const constant = (shape, ...values) =>
        b.constant({ dataType: 'float32', shape }, Float32Array.from(values));
      return b.prelu(constant([2, 1], -1, 2), constant([2], 3, 4));
    }),
    [-3, -4, 2, 2],
  );
});
