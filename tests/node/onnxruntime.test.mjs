// headrace/onnxruntime-node: that package's API on Headrace.
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';

import * as ort from '../../node/onnxruntime-node.mjs';
import { cast, identityOf, onnxModel, product, sequence, several } from './onnx_models.mjs';

const { InferenceSession, Tensor, env, listSupportedBackends } = ort;
const folder = mkdtempSync(join(tmpdir(), 'headrace-ort-'));
after(() => rmSync(folder, { recursive: true }));
const path = join(folder, 'product.onnx');
writeFileSync(path, product);
const identity = new Tensor('float32', [1, 0, 0, 1], [2, 2]);

test('import, default import and require give the same', () => {
  const required = createRequire(import.meta.url)('../../node/dist/onnxruntime-node.cjs');
  assert.deepEqual({ ...ort, default: undefined }, { ...required, default: undefined });
  assert.equal(ort.default, required);
});

test('sessions are created of paths, bytes, buffers and parts of buffers', async () => {
  const larger = new ArrayBuffer(product.length + 8);
  new Uint8Array(larger).set(product, 4);
  const exact = larger.slice(4, 4 + product.length);
  for (const call of [
    [path],
    [path, { executionProviders: ['cpu'], intraOpNumThreads: 1, graphOptimizationLevel: 'all' }],
    [new Uint8Array(exact)],
    [exact],
    [exact, {}],
    [larger, 4, product.length],
    [larger, 4, product.length, { logSeverityLevel: 3 }],
  ]) {
    const session = await InferenceSession.create(...call);
    assert.deepEqual([session.inputNames, session.outputNames], [['x'], ['y']]);
    const { y } = await session.run({ x: identity });
    assert.ok(y instanceof Tensor);
    assert.deepEqual([y.type, y.dims, y.size, [...y.data]], ['float32', [2, 2], 4, [1, 2, 3, 4]]);
  }
});

test('metadata has types and the names of open dimensions', async () => {
  const session = await InferenceSession.create(path);
  const value = { isTensor: true, type: 'float32', shape: ['rows', 2] };
  assert.deepEqual(session.inputMetadata, [{ name: 'x', ...value }]);
  assert.deepEqual(session.outputMetadata, [{ name: 'y', ...value }]);
  const closed = await InferenceSession.create(path, { freeDimensionOverrides: { rows: 5 } });
  assert.deepEqual(closed.inputMetadata[0].shape, [5, 2]);
});

test('fetches choose outputs and fill tensors', async () => {
  const session = await InferenceSession.create(new Uint8Array(several));
  const feeds = {
    x: new Tensor('int64', [1, 2, 3], [3]),
    b: new Tensor('bool', [true, false, true], [3]),
  };
  assert.deepEqual(Object.keys(await session.run(feeds)), ['sum', 'no']);
  assert.deepEqual(Object.keys(await session.run(feeds, {})), ['sum', 'no']);
  assert.deepEqual(Object.keys(await session.run(feeds, { tag: 'options' })), ['sum', 'no']);
  const { no, sum } = await session.run(feeds, ['no']);
  assert.deepEqual([no.type, [...no.data], sum], ['bool', [0, 1, 0], undefined]);
  const target = new Tensor('int64', new BigInt64Array(3), [3]);
  const fetched = await session.run(feeds, { sum: target, no: null }, {});
  assert.equal(fetched.sum, target);
  assert.deepEqual([...target.data], [2n, 2n, 4n]);
  assert.deepEqual(Object.keys(await session.run(feeds, { no: null, other: 5 })), ['no']);
  const wrong = new Tensor('int64', new BigInt64Array(2), [2]);
  await assert.rejects(session.run(feeds, { sum: wrong }), /"sum" is int64\[2\]; the result is int64\[3\]/);
  await assert.rejects(session.run(feeds, ['none']), {
    name: 'RangeError',
    message: /no output "none"; there are sum, no/,
  });
  for (const wrong of [[], [5], null, 5, feeds.x, { sum: 5 }])
    await assert.rejects(session.run(feeds, wrong), TypeError);
  for (const wrong of [null, 5, feeds.x]) await assert.rejects(session.run(feeds, ['no'], wrong), TypeError);
});

test('feeds are checked, and more than the inputs are left alone', async () => {
  const session = await InferenceSession.create(path);
  await session.run({ x: identity, other: identity });
  for (const feeds of [null, 5, identity]) await assert.rejects(session.run(feeds), TypeError);
  await assert.rejects(session.run({}), /input 'x' is missing in 'feeds'/);
  await assert.rejects(session.run({ x: identity.data }), /feeds: "x" is a Float32Array; a Tensor/);
  await assert.rejects(
    session.run({ x: new Tensor(Int32Array.of(1, 2), [1, 2]) }),
    /tensor of int32; the model takes float32/,
  );
  await assert.rejects(session.run({ x: new Tensor(Float32Array.of(1, 2, 3), [1, 3]) }), /dims \[1, 3\]/);
  const pinned = { type: 'float32', dims: [1, 2], data: Float32Array.of(1, 1), location: 'cpu' };
  assert.deepEqual([...(await session.run({ x: pinned })).y.data], [4, 6]); // another package's Tensor
});

test('a session that is released runs no more', async () => {
  const session = await InferenceSession.create(path);
  await session.release();
  await session.release();
  await assert.rejects(session.run({ x: identity }), { code: 'invalid_state', message: /create another/ });
});

test('execution providers are this build’s, in their order', async () => {
  assert.deepEqual(listSupportedBackends()[0], { name: 'cpu', bundled: true });
  await InferenceSession.create(path, { executionProviders: ['tensorrt', { name: 'cpu' }] });
  await InferenceSession.create(path, {
    executionProviders: [{ name: 'headrace', device: 'cpu', threads: 1 }],
  });
  await assert.rejects(
    InferenceSession.create(path, { executionProviders: ['coreml'] }),
    /coreml is here; there are 'cpu' and \{ name: 'headrace', device \}, where device is one of .*CPU/,
  );
  await assert.rejects(InferenceSession.create(path, { executionProviders: 'cpu' }), TypeError);
  await assert.rejects(
    InferenceSession.create(path, { externalData: [{ path: 'w', data: product }] }),
    /path/,
  );
  for (const wrong of [[3, 9], [-1], [4], [1.5], [0, 0]])
    await assert.rejects(InferenceSession.create(larger(4), ...wrong), RangeError);
  for (const wrong of [[0, {}], [0, 4, null], [null], [0, 'x']])
    await assert.rejects(InferenceSession.create(larger(4), ...wrong), TypeError);
});
const larger = (size) => new ArrayBuffer(size);

const tensors = [
  [[Float32Array.of(1, 2)], 'float32', [2]],
  [[Uint8ClampedArray.of(1, 2), [2, 1]], 'uint8', [2, 1]],
  [[['a', 'b']], 'string', [2]],
  [[[true, false]], 'bool', [2]],
  [['int64', [1, 2n], [1, 2]], 'int64', [1, 2]],
  [['uint64', [1, 2]], 'uint64', [2]],
  [['float64', [0.5], []], 'float64', []],
  [['bool', [true, false], [2]], 'bool', [2]],
  [['float16', Uint16Array.of(1), [1]], 'float16', [1]],
  [['float32', new Float32Array(0), [0, 3]], 'float32', [0, 3]],
  [['uint4', Uint8Array.of(0x21, 3), [3]], 'uint4', [3]],
  [[{ location: 'cpu-pinned', type: 'int8', data: Int8Array.of(1), dims: [1] }], 'int8', [1], 'cpu-pinned'],
];
test('tensors are made as onnxruntime-common makes them', async () => {
  for (const [call, type, dims, location = 'cpu'] of tensors) {
    const tensor = new Tensor(...call);
    assert.deepEqual([tensor.type, tensor.dims, tensor.location], [type, dims, location]);
    assert.equal(
      tensor.size,
      dims.reduce((product_, extent) => product_ * extent, 1),
    );
    assert.equal(await tensor.getData(), tensor.data);
  }
  assert.deepEqual([...new Tensor('int64', [1, 2n], [2]).data], [1n, 2n]);
  assert.deepEqual([...new Tensor([true, false]).data], [1, 0]);
  const clamped = Uint8ClampedArray.of(1, 2);
  const copied = new Tensor(clamped);
  clamped[0] = 9;
  assert.deepEqual(copied.data, Uint8Array.of(1, 2));
  const pinned = Tensor.fromPinnedBuffer('int8', Int8Array.of(1, 2));
  assert.deepEqual([pinned.location, pinned.reshape([2, 1]).location], ['cpu-pinned', 'cpu-pinned']);
  const halfFloats = new Tensor('float16', Uint16Array.of(0x3c00), [1]).data;
  assert.equal(halfFloats.constructor, globalThis.Float16Array ?? Uint16Array);
});

const wrongTensors = [
  [['float32', [1, 2], [3]], Error],
  [['float32', Int32Array.of(1)], TypeError],
  [['float33', [1]], TypeError],
  [['string', [1]], TypeError],
  [[[1, 2]], TypeError],
  [[5], TypeError],
  [[Float32Array.of(1), [-1]], RangeError],
  [[Float32Array.of(1), [0.5]], TypeError],
  [[Float32Array.of(1), 1], TypeError],
  [[{ location: 'gpu-buffer', type: 'float32', dims: [1] }], TypeError],
  [[{ location: 'cpu-pinned', type: 'float32', data: [1], dims: [1] }], TypeError],
  [['int4', [1, 2]], TypeError],
  [['uint4', [1, 2]], TypeError],
];
test('tensors that cannot be are refused', () => {
  for (const [call, error] of wrongTensors)
    assert.throws(() => new Tensor(...call), error, JSON.stringify(call));
});

test('a tensor is given another shape, and disposed of', async () => {
  const tensor = new Tensor(Float32Array.of(1, 2, 3, 4, 5, 6), [2, 3]);
  const other = tensor.reshape([3, 2]);
  assert.deepEqual([other.dims, other.data], [[3, 2], tensor.data]);
  assert.throws(() => tensor.reshape([4]), /another size/);
  assert.deepEqual([...(await tensor.getData(true))], [1, 2, 3, 4, 5, 6]);
  assert.equal(tensor.location, 'cpu'); // it is no GPU's to be released
  tensor.dispose();
  assert.equal(tensor.location, 'none');
  assert.throws(() => tensor.data, /disposed/);
  await assert.rejects(tensor.getData(), /disposed/);
  assert.throws(() => tensor.reshape([6]), /disposed/);
});

test('what is for pages and GPUs says where tensors lie', async () => {
  const tensor = new Tensor('float32', [1]);
  const message = /tensors lie with the CPU here/;
  for (const member of ['texture', 'gpuBuffer', 'mlTensor']) assert.throws(() => tensor[member], { message });
  for (const member of ['toDataURL', 'toImageData']) assert.throws(() => tensor[member](), { message });
  for (const member of ['fromTexture', 'fromGpuBuffer', 'fromMLTensor'])
    assert.throws(() => Tensor[member]({}, {}), { message });
  await assert.rejects(Tensor.fromImage('https://example.org/cat.png'), { message });
});

test('profiling can be asked for and writes nothing', async () => {
  const session = await InferenceSession.create(path, { enableProfiling: true });
  assert.equal(session.startProfiling(), undefined);
  await session.run({ x: identity });
  assert.equal(session.endProfiling(), undefined);
});

test('a provider that is not here is warned of where another one is', async (t) => {
  const warn = t.mock.method(console, 'warn', () => {});
  await InferenceSession.create(path, { executionProviders: ['coreml', { name: 'qnn' }, 'cpu'] });
  assert.deepEqual(
    warn.mock.calls.map(({ arguments: [text] }) => text),
    ['coreml', 'qnn'].map((name) => `the execution provider "${name}" is not here; "cpu" is taken`),
  );
  for (const wrong of [5, null, {}])
    await assert.rejects(InferenceSession.create(path, { executionProviders: [wrong] }), TypeError);
});

test('a registered backend makes the sessions of its name', async () => {
  const told = [];
  const handler = {
    inputNames: ['x'],
    outputNames: ['y'],
    inputMetadata: [{ name: 'x', isTensor: false }],
    outputMetadata: [],
    run: async (...given) => {
      told.push(given);
      return { y: 5 };
    },
    startProfiling: () => told.push('start'),
    endProfiling: () => told.push('end'),
    dispose: async () => told.push('disposed'),
  };
  const backend = {
    init: async (name) => told.push(name),
    createInferenceSessionHandler: async (model, options) => {
      told.push([model, options]);
      return handler;
    },
  };
  ort.registerBackend('mine', backend, 10);
  ort.registerBackend('mine', { ...backend, init: () => assert.fail('it has less priority') }, 5);
  assert.throws(() => ort.registerBackend('mine', { ...backend }, 10), /another backend of the priority 10/);
  for (const wrong of [null, {}, { init: backend.init }])
    assert.throws(() => ort.registerBackend('other', wrong, 1), TypeError);
  const options = { executionProviders: ['mine'] };
  const session = await InferenceSession.create(path, options);
  assert.deepEqual([session.inputNames, session.inputMetadata], [['x'], handler.inputMetadata]);
  session.startProfiling();
  assert.deepEqual(await session.run({ x: identity }, ['y'], { tag: 't' }), { y: 5 });
  session.endProfiling();
  await session.release();
  await InferenceSession.create(path, options);
  assert.deepEqual(told, [
    'mine',
    [path, options],
    'start',
    [{ x: identity }, { y: null }, { tag: 't' }],
    'end',
    'disposed',
    [path, options],
  ]);
});

test('marks for tools that measure are made where env.trace asks for them', (t) => {
  const marks = [];
  for (const name of ['timeStamp', 'time', 'timeEnd'])
    t.mock.method(console, name, (label) => marks.push([name, label]));
  const mark = () => {
    ort.TRACE('GPU', 'label');
    ort.TRACE_EVENT_BEGIN('run');
    ort.TRACE_EVENT_END('run');
    ort.TRACE_FUNC_BEGIN('more');
    ort.TRACE_FUNC_END();
  };
  mark();
  assert.deepEqual(marks, []);
  for (const flags of [env, env.wasm]) {
    flags.trace = true;
    mark();
    delete flags.trace;
    assert.deepEqual(marks.splice(0), [
      ['timeStamp', 'GPU::ORT::label'],
      ['time', 'ORT::run'],
      ['timeEnd', 'ORT::run'],
      ['timeStamp', 'CPU::ORT::FUNC_BEGIN::mark::more'],
      ['timeStamp', 'CPU::ORT::FUNC_END::mark'],
    ]);
  }
});

/** By type: the array that holds it, and elements that it must keep. */
const kept = {
  float64: Float64Array.of(1.5, -(2 ** 60)),
  int8: Int8Array.of(-128, 127),
  uint8: Uint8Array.of(0, 255),
  int16: Int16Array.of(-32768, 32767),
  uint16: Uint16Array.of(0, 65535),
  int32: Int32Array.of(-(2 ** 31), 7),
  uint32: Uint32Array.of(0, 4294967295),
  int64: BigInt64Array.of(-(2n ** 63n), 2n ** 62n + 1n),
  uint64: BigUint64Array.of(0n, 2n ** 64n - 1n),
  bool: Uint8Array.of(0, 1),
  float16: (globalThis.Float16Array ?? Uint16Array).of(1, 2),
};
for (const [type, data] of Object.entries(kept))
  test(`${type} goes in and out as it is, also into a tensor of the caller's`, async () => {
    const session = await InferenceSession.create(new Uint8Array(identityOf(type, [2])));
    assert.deepEqual([session.inputMetadata[0].type, session.outputMetadata[0].type], [type, type]);
    const feeds = { x: new Tensor(type, data, [2]) };
    const { y } = await session.run(feeds);
    assert.deepEqual([y.type, y.dims, y.data], [type, [2], data]);
    const target = new Tensor(type, new data.constructor(2), [2]);
    await session.run(feeds, { y: target });
    assert.deepEqual(target.data, data);
  });

for (const [type, given, bytes] of [
  ['int4', Int8Array.of(0x21, 0x0f), [0x21, 0x0f]],
  ['uint4', Uint8Array.of(0xf1, 0x02), [0xf1, 0x02]],
])
  test(`${type} has two elements a byte`, async () => {
    const session = await InferenceSession.create(new Uint8Array(identityOf(type, [3])));
    const { y } = await session.run({ x: new Tensor(type, given, [3]) });
    assert.deepEqual([y.type, y.dims, [...y.data]], [type, [3], bytes]);
  });

test('bfloat16 goes in and out as float32', async () => {
  const session = await InferenceSession.create(new Uint8Array(identityOf('bfloat16', [2])));
  assert.equal(session.inputMetadata[0].type, 'float32');
  const { y } = await session.run({ x: new Tensor(Float32Array.of(1.5, 1 + 2 ** -9)) });
  assert.deepEqual([y.type, [...y.data]], ['float32', [1.5, 1]]);
});

test('strings and sequences are refused when a session is created, with the name', async () => {
  const create = (model) => InferenceSession.create(new Uint8Array(model));
  await assert.rejects(create(identityOf('string', [2])), { code: 'unsupported', message: /'x'.*STRING/ });
  await assert.rejects(create(sequence), { code: 'unsupported', message: /output 's' is no tensor/ });
});

test('hints of ONNX Runtime change nothing, and wrong ones are refused', async () => {
  const bytes = new Uint8Array(product);
  await InferenceSession.create(bytes, { executionMode: 'parallel', graphOptimizationLevel: 'basic' });
  for (const wrong of [{ executionMode: 'fast' }, { graphOptimizationLevel: 3 }])
    await assert.rejects(InferenceSession.create(bytes, wrong), TypeError);
});

test('a dimension of 0 is taken where the model appends to it, or the options say it', async () => {
  const shape = ['rows', 2];
  const bytes = onnxModel({
    nodes: [{ op: 'Concat', inputs: ['past', 'x'], outputs: ['y'], attributes: { axis: 0 } }],
    inputs: [
      ['past', 'float32', ['past', 2]],
      ['x', 'float32', shape],
    ],
    outputs: [['y', 'float32', ['all', 2]]],
  });
  const none = new Tensor('float32', [], [0, 2]);
  const { y } = await (await InferenceSession.create(bytes)).run({ past: none, x: identity });
  assert.deepEqual([y.dims, [...y.data]], [[2, 2], [1, 0, 0, 1]]);
  await assert.rejects((await InferenceSession.create(path)).run({ x: none }), /rows .* is 0; at least 1/);
  const closed = await InferenceSession.create(path, { freeDimensionOverrides: { rows: 0 } });
  assert.deepEqual((await closed.run({ x: none })).y.dims, [0, 2]);
});

test('external data are an array of paths', async () => {
  await InferenceSession.create(path, { externalData: ['product.onnx_data'] });
  for (const [wrong, message] of [
    ['product.onnx_data', /externalData are a string; an array of paths is needed/],
    [null, /externalData are null; an array of paths/],
    [[{ path: 'x', data: new Uint8Array(1) }], /external data in memory are not read; pass the path/],
  ])
    await assert.rejects(InferenceSession.create(path, { externalData: wrong }), message);
});

test('float16 goes in and out as bits', async () => {
  const session = await InferenceSession.create(new Uint8Array(cast('float16', 'float32', [2])));
  const { y } = await session.run({ x: new Tensor('float16', Uint16Array.of(0x3c00, 0xc000), [2]) });
  assert.deepEqual([...y.data], [1, -2]);
});

test('env has the settings that callers make', () => {
  env.logLevel = 'error';
  assert.equal(env.logLevel, 'error');
  assert.throws(() => (env.logLevel = 'loud'), /verbose, info/);
  assert.equal(typeof env.versions.node, 'string');
});
