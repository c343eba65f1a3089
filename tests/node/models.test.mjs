// load(): ONNX models and graph files as functions of typed arrays.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { Worker } from 'node:worker_threads';

import * as headrace from '../../node/headrace.mjs';
import { cast, doubled, onnxModel, product, several } from './onnx_models.mjs';

const { HeadraceError, devices, load } = headrace;
const folder = mkdtempSync(join(tmpdir(), 'headrace-models-'));
after(() => rmSync(folder, { recursive: true }));
const cpu = { device: 'cpu' };
const file = (name, bytes) => {
  const path = join(folder, name);
  writeFileSync(path, bytes);
  return path;
};
const path = file('product.onnx', product);
const identity = { data: Float32Array.of(1, 0, 0, 1), dims: [2, 2] };
const values = ({ data }) => Array.from(data);

test('import and require give the same', () => {
  const required = createRequire(import.meta.url)('../../node/dist/headrace.cjs');
  assert.deepEqual({ ...headrace }, { ...required });
});

test('a model says its inputs and outputs, with the names of open dimensions', async () => {
  const model = await load(path, cpu);
  assert.deepEqual(model.inputs, [{ name: 'x', type: 'float32', shape: ['rows', 2] }]);
  assert.deepEqual(model.outputs, [{ name: 'y', type: 'float32', shape: ['rows', 2] }]);
  assert.throws(() => model.inputs.push({}), TypeError);
  assert.deepEqual([model.inputNames, model.outputNames], [['x'], ['y']]);
  assert.throws(() => model.inputNames.push('z'), TypeError);
});

test('a model says the device that it was compiled for', async () => {
  assert.equal((await load(path, cpu)).device, 'cpu');
  const best = (await devices()).find(({ type }) => type === 'gpu' || type === 'igpu');
  assert.equal((await load(path)).device, best?.name ?? 'cpu');
});

test('quantised products round their other operand unless that is left out', async () => {
  const size = 512; // of 64 KiB and more: smaller matrices stay as given
  const w = Float32Array.from({ length: size * 64 }, (_, i) => Math.sin(i));
  const model = onnxModel({
    nodes: [{ op: 'MatMul', inputs: ['x', 'w'], outputs: ['y'] }],
    inputs: [['x', 'float32', [1, size]]],
    outputs: [['y', 'float32', [1, 64]]],
    initializers: [['w', 'float32', [size, 64], w]],
  });
  const x = Float32Array.from({ length: size }, (_, i) => Math.cos(i));
  const of = async (options) => values((await (await load(model, { ...cpu, ...options })).run({ x })).y);
  const lowPower = await of({ powerPreference: 'low-power' });
  assert.deepEqual(await of({ weights: 'q8_0', roundActivations: false }), lowPower);
  assert.notDeepEqual(await of({ weights: 'q8_0' }), lowPower);
});

test('products may be rounded where that is faster', async () => {
  const size = 512;
  const w = Float32Array.from({ length: size * 64 }, (_, i) => Math.sin(i));
  const model = onnxModel({
    nodes: [{ op: 'MatMul', inputs: ['x', 'w'], outputs: ['y'] }],
    inputs: [['x', 'float32', [1, size]]],
    outputs: [['y', 'float32', [1, 64]]],
    initializers: [['w', 'float32', [size, 64], w]],
  });
  const x = Float32Array.from({ length: size }, (_, i) => Math.cos(i));
  const of = async (precision) => values((await (await load(model, { ...cpu, precision })).run({ x })).y);
  const [exact, fast] = [await of('exact'), await of('fast')];
  exact.forEach((y, i) => assert.ok(Math.abs(y - fast[i]) < 1, `${y} and ${fast[i]}`));
  const hasBf16 = /avx512_bf16/.test(
    existsSync('/proc/cpuinfo') ? readFileSync('/proc/cpuinfo', 'utf8') : '',
  );
  if (hasBf16) assert.notDeepEqual(fast, exact);
});

test('the options of memory, tuning and plans change no result', async () => {
  const model = await load(path, {
    ...cpu,
    memory: 'low',
    tuning: 'off',
    cacheBytes: 0,
    hostTimeout: 500,
  });
  for (const rows of [1, 3, 1])
    assert.deepEqual(
      values(
        (
          await model.run({
            x: { data: new Float32Array(2 * rows).fill(1), dims: [rows, 2] },
          })
        ).y,
      ),
      new Array(rows).fill([4, 6]).flat(),
    );
});

test('paths, URLs, bytes and buffers give the same model', async () => {
  const buffer = product.buffer.slice(product.byteOffset, product.byteOffset + product.length);
  for (const source of [path, pathToFileURL(path), product, new Uint8Array(buffer), buffer]) {
    const { y } = await (await load(source, cpu)).run({ x: identity });
    assert.deepEqual([y.type, y.dims, values(y)], ['float32', [2, 2], [1, 2, 3, 4]]);
  }
});

test('the bytes of a small model may change once it is being loaded', async () => {
  const bytes = new Uint8Array(product);
  const loading = load(bytes, cpu);
  bytes.fill(0);
  assert.deepEqual(values((await (await loading).run({ x: identity })).y), [1, 2, 3, 4]);
});

/** y = x W of 10 MB, whose weights are their places. */
const large = onnxModel({
  nodes: [{ op: 'MatMul', inputs: ['x', 'w'], outputs: ['y'] }],
  inputs: [['x', 'float32', [1, 50]]],
  outputs: [['y', 'float32', [1, 50000]]],
  initializers: [['w', 'float32', [50, 50000], Float32Array.from({ length: 2.5e6 }, (_, i) => i)]],
});

test('the bytes of a large model are copied in pieces, between which other work goes on', async () => {
  const turns = [];
  const ticking = setInterval(() => turns.push('turn'), 0);
  const model = await load(large, cpu);
  clearInterval(ticking);
  assert.ok(turns.length > 0);
  const x = new Float32Array(50).fill(0);
  x[49] = 1;
  const { y } = await model.run({ x });
  assert.deepEqual([y.data[0], y.data[49999]], [49 * 50000, 49 * 50000 + 49999]);
});

const changes = {
  detached: (buffer) => structuredClone(buffer, { transfer: [buffer] }),
  resized: (buffer) => buffer.resize(8),
};
for (const [how, change] of Object.entries(changes))
  test(`a buffer that is ${how} while its bytes are copied rejects the load`, async (t) => {
    const buffer = new ArrayBuffer(large.length, {
      maxByteLength: large.length,
    });
    if (how === 'resized' && !buffer.resizable) return t.skip('this JavaScript has no resizable buffers');
    new Uint8Array(buffer).set(large);
    const loading = load(buffer, cpu);
    change(buffer);
    await assert.rejects(loading, {
      name: 'TypeError',
      message: /detached or resized while its bytes were copied/,
    });
    return undefined;
  });

test('the bytes of a .hrg file are a model, too', async () => {
  const saved = join(folder, 'bytes.hrg');
  await (await load(path, cpu)).save(saved);
  const bytes = readFileSync(saved);
  const shifted = new Uint8Array(bytes.length + 1).subarray(1);
  shifted.set(bytes);
  for (const source of [bytes, shifted, shifted.slice().buffer]) {
    const model = await load(source, cpu);
    assert.deepEqual(model.inputs, [{ name: 'x', type: 'float32', shape: ['rows', 2] }]);
    assert.deepEqual(values((await model.run({ x: identity })).y), [1, 2, 3, 4]);
  }
  await assert.rejects(load(bytes, { dimensions: { rows: 1 } }), {
    name: 'TypeError',
    message: 'load: the bytes: dimensions are for ONNX models; a graph file keeps those it was saved with',
  });
  for (let length = 8; length < bytes.length; length += 1)
    await assert.rejects(load(bytes.subarray(0, length), cpu), {
      code: 'invalid_argument',
    });
  for (const text of ['{"inputs": {}}', 'webnn_graph "x" v1 {}'])
    await assert.rejects(load(Buffer.from(text), cpu), {
      name: 'HeadraceError',
      message: /ONNX/,
    });
});

for (const extension of ['hrg', 'webnn', 'json'])
  test(`what is saved as .${extension} computes the same`, async () => {
    const saved = join(folder, `saved.${extension}`);
    await (await load(path, { ...cpu, dimensions: { rows: 2 } })).save(saved);
    const model = await load(saved, cpu);
    assert.deepEqual(model.inputs[0].shape, [2, 2]);
    assert.deepEqual(values((await model.run({ x: identity.data })).y), [1, 2, 3, 4]);
  });

test('dimensions close a model, and a flat array is enough for it then', async () => {
  for (const dimensions of [{ rows: 3 }, { x: [3, 2] }]) {
    const model = await load(path, { ...cpu, dimensions });
    assert.deepEqual(model.outputs[0].shape, [3, 2]);
    const { y } = await model.run({ x: Float32Array.of(1, 0, 0, 1, 1, 1) });
    assert.deepEqual(values(y), [1, 2, 3, 4, 4, 6]);
  }
});

const arrays = {
  float32: Float32Array.of(1.5, -2),
  float64: Float64Array.of(1.5, -2),
  int32: Int32Array.of(7, -8),
  int64: BigInt64Array.of(2n ** 52n + 1n, -8n),
};
for (const [type, x] of Object.entries(arrays))
  test(`${type} lies in a ${x.constructor.name}`, async () => {
    const { y } = await (await load(doubled(type, [2]), cpu)).run({ x });
    assert.deepEqual([y.type, y.data], [type, x.map((value) => value + value)]);
  });

test('float16 lies in a Float16Array where there is one, and in bits of a Uint16Array', async () => {
  const HalfFloatArray = globalThis.Float16Array ?? Uint16Array;
  const { y } = await (await load(cast('float32', 'float16', [2]), cpu)).run({ x: Float32Array.of(1, -2) });
  assert.equal(y.data.constructor, HalfFloatArray);
  assert.deepEqual([...new Uint16Array(y.data.buffer)], [0x3c00, 0xc000]);
  const back = await load(cast('float16', 'float32', [2]), cpu);
  for (const x of [Uint16Array.of(0x3c00, 0xc000), y.data])
    assert.deepEqual(values((await back.run({ x })).y), [1, -2]);
});

test('a bool is any byte but 0, and several outputs have their own types', async () => {
  const model = await load(several, cpu);
  const { sum, no } = await model.run({
    x: BigInt64Array.of(1n, 2n, 3n),
    b: Uint8Array.of(0, 1, 255),
  });
  assert.deepEqual([sum.data, no.data], [BigInt64Array.of(1n, 3n, 4n), Uint8Array.of(1, 0, 0)]);
});

test('inputs may change, be transferred or shared once a run has begun', async () => {
  const model = await load(path, cpu);
  const changed = Float32Array.of(1, 0, 0, 1);
  const transferred = Float32Array.of(1, 0, 0, 1);
  const runs = [changed, transferred].map((data) => model.run({ x: { data, dims: [2, 2] } }));
  changed.fill(9);
  structuredClone(transferred, { transfer: [transferred.buffer] });
  const shared = new Float32Array(new SharedArrayBuffer(16));
  shared.set([1, 0, 0, 1]);
  runs.push(model.run({ x: { data: shared, dims: [2, 2] } }));
  for (const { y } of await Promise.all(runs)) assert.deepEqual(values(y), [1, 2, 3, 4]);
});

test('runs at once have results of their own, large ones too', async () => {
  const model = await load(path, cpu);
  const rows = 20000; // 160 KB a result
  const results = await Promise.all(
    Array.from({ length: 12 }, (_, i) =>
      model.run({
        x: { data: new Float32Array(2 * rows).fill(i), dims: [rows, 2] },
      }),
    ),
  );
  results.forEach(({ y }, i) => {
    assert.deepEqual(y.dims, [rows, 2]);
    assert.ok(y.data.every((value, at) => value === (at % 2 ? 6 : 4) * i));
  });
});

test('the event loop goes on while a model runs', async () => {
  const size = 700;
  const shape = [size, size];
  const nodes = Array.from({ length: 8 }, (_, i) => ({
    op: 'MatMul',
    inputs: [i === 0 ? 'x' : `t${i}`, 'x'],
    outputs: [i === 7 ? 'y' : `t${i + 1}`],
  }));
  const model = await load(
    onnxModel({
      nodes,
      inputs: [['x', 'float32', shape]],
      outputs: [['y', 'float32', shape]],
    }),
    { ...cpu, threads: 1 },
  );
  let turns = 0;
  const timer = setInterval(() => (turns += 1), 1);
  await model.run({ x: new Float32Array(size * size) });
  clearInterval(timer);
  assert.ok(turns > 3, `${turns} turns`);
});

const wrongRuns = [
  [undefined, /the inputs are undefined/],
  [{}, /input "x" is missing; there are "x"/],
  [{ x: identity, z: identity }, /no input "z"; there are "x"/],
  [{ x: identity.data }, /float32\[rows, 2\] is open in rows: pass \{data, dims\}/],
  [{ x: [1, 2] }, /input "x" is an array; a typed array or \{data, dims\}/],
  [{ x: { data: [1, 2], dims: [1, 2] } }, /data is an array; float32 takes a Float32Array/],
  [{ x: { data: Float64Array.of(1, 2), dims: [1, 2] } }, /is a Float64Array; float32 takes a Float32Array/],
  [{ x: { data: Float32Array.of(1, 2) } }, /dims is undefined/],
  [{ x: { data: Float32Array.of(1, 2), dims: [1, 3] } }, /dims \[1, 3\]; the model takes float32\[rows, 2\]/],
  [{ x: { data: Float32Array.of(1, 2), dims: [2, 2] } }, /has 2 elements; float32\[2, 2\] has 4/],
  [{ x: { data: Float32Array.of(1, 2), dims: [-1, 2] } }, /dims\[0\] is -1/],
  [{ x: { ...identity, type: 'int32' } }, /is a tensor of int32/],
  [{ x: identity }, /the options have no "timeout"; there are signal/, { timeout: 5 }],
  [{ x: identity }, /signal is null; an AbortSignal is needed/, { signal: null }],
  [{ x: identity }, /inputs and options are all that it takes; an array was given, too/, undefined, ['y']],
];
test('a wrong call is rejected with what is wrong and what is right', async () => {
  const model = await load(path, cpu);
  for (const [inputs, message, ...others] of wrongRuns)
    await assert.rejects(
      model.run(inputs, ...others),
      (error) => error instanceof TypeError && message.test(error.message),
    );
});

test('detached and resizable buffers are refused', async () => {
  const model = await load(path, cpu);
  const detached = Float32Array.of(1, 0, 0, 1);
  structuredClone(detached, { transfer: [detached.buffer] });
  await assert.rejects(model.run({ x: { data: detached, dims: [2, 2] } }), {
    name: 'TypeError',
    message: /detached/,
  });
  const resizable = new Float32Array(new ArrayBuffer(16, { maxByteLength: 32 }));
  if (!resizable.buffer.resizable) return; // Node 18
  await assert.rejects(model.run({ x: { data: resizable, dims: [2, 2] } }), {
    name: 'TypeError',
    message: /resized/,
  });
});

test('an array is as long as it is, whatever properties of its own say', async () => {
  const model = await load(path, cpu);
  const short = Float32Array.of(1, 2);
  for (const [name, value] of Object.entries({
    length: 4000,
    byteLength: 16000,
    byteOffset: 4,
  }))
    Object.defineProperty(short, name, { value });
  await assert.rejects(model.run({ x: { data: short, dims: [2000, 2] } }), {
    name: 'TypeError',
    message: 'input "x" has 2 elements; float32[2000, 2] has 4000',
  });
  assert.deepEqual((await model.run({ x: { data: short, dims: [1, 2] } })).y.dims, [1, 2]);
});

test('what a run finds wrong has a code, and the model goes on', async () => {
  const gather = await load(
    onnxModel({
      nodes: [{ op: 'Gather', inputs: ['w', 'x'], outputs: ['y'] }],
      inputs: [['x', 'int64', [1]]],
      outputs: [['y', 'float32', [1]]],
      initializers: [['w', 'float32', [3], Float32Array.of(5, 6, 7)]],
    }),
    cpu,
  );
  await assert.rejects(gather.run({ x: BigInt64Array.of(9n) }), (error) => {
    assert.ok(error instanceof HeadraceError);
    assert.deepEqual([error.name, error.code], ['HeadraceError', 'invalid_argument']);
    return /index 9 is outside the extent 3/.test(error.message);
  });
  assert.deepEqual(values((await gather.run({ x: BigInt64Array.of(2n) })).y), [7]);
});

const wrongLoads = [
  [[5], /the model is a number; a path, a file: URL, or the bytes/],
  [[''], /names no file/],
  [[new Uint8Array(0)], /no bytes/],
  [[path, 'cpu'], /the options are a string; an object is needed/],
  [[path, { thread: 1 }], /the options have no "thread"; there are dimensions, device/],
  [[path, { threads: 'two' }], /threads is a string; a number/],
  [[path, { threads: 1.5 }], /threads is 1.5; it must be a whole number/],
  [[path, { precision: 'f16' }], /precision 'f16' is none of exact, fast/],
  [[path, { memory: 'high' }], /memory 'high' is none of normal, low/],
  [[path, { roundActivations: 1 }], /roundActivations is a number; true or false/],
  [[path, { cacheBytes: -1 }], /cacheBytes is -1; it must be a whole number/],
  [[path, { dimensions: { row: 1 } }], /no input has a dimension 'row'; run-time dimensions: rows/],
  [[path, { dimensions: { x: [1, 3] } }], /It was read with the dimensions given for x; others may fit/],
  [[path, { dimensions: { rows: 'x' } }], /dimensions.rows is a string/],
  [['x.hrg', { dimensions: { rows: 1 } }], /dimensions are for ONNX models/],
];
test('wrong loads are rejected', async () => {
  for (const [call, message] of wrongLoads) await assert.rejects(load(...call), { message });
});

test('a load that fails says the file and has a code', async () => {
  await assert.rejects(load(join(folder, 'none.onnx')), {
    code: 'io',
    message: /none\.onnx/,
  });
  await assert.rejects(load(file('bad.onnx', 'text')), {
    code: 'invalid_argument',
    message: /bad\.onnx/,
  });
  await assert.rejects(load(file('bad.hrg', 'text')), {
    code: 'invalid_argument',
    message: /bad\.hrg/,
  });
  await assert.rejects(load(path, { weights: 'q9' }), {
    message: /as-given, q8_0, q4_0/,
  });
  await assert.rejects(load(path, { device: 'TPU7' }), { message: /TPU7/ });
});

test('a model that is disposed of ends its runs and takes no more', async () => {
  const model = await load(path, cpu);
  const run = model.run({ x: identity });
  model.dispose();
  model.dispose();
  assert.deepEqual(values((await run).y), [1, 2, 3, 4]);
  await assert.rejects(model.run({ x: identity }), {
    code: 'invalid_state',
    message: /load it again/,
  });
});

test('a signal ends a run between two nodes with its reason, and the model goes on', async () => {
  const size = 512;
  const names = Array.from({ length: 301 }, (_, i) => (i === 0 ? 'x' : i === 300 ? 'y' : `h${i}`));
  const model = await load(
    onnxModel({
      nodes: names.slice(1).map((name, i) => ({
        op: 'MatMul',
        inputs: [names[i], 'w'],
        outputs: [name],
      })),
      inputs: [['x', 'float32', [size, size]]],
      outputs: [['y', 'float32', [size, size]]],
      initializers: [['w', 'float32', [size, size], new Float32Array(size * size).fill(1 / size)]],
    }),
    { ...cpu, threads: 1 },
  );
  const x = new Float32Array(size * size).fill(1);
  const begin = performance.now();
  await model.run({ x });
  const whole = performance.now() - begin;
  const signal = AbortSignal.timeout(Math.round(whole / 10));
  await assert.rejects(model.run({ x }, { signal }), { name: 'TimeoutError' });
  const before = process.cpuUsage();
  await new Promise((resolve) => setTimeout(resolve, whole));
  const milliseconds = process.cpuUsage(before).user / 1000;
  assert.ok(milliseconds < whole / 2, `${milliseconds} ms were computed after the end, of ${whole}`);
  await assert.rejects(model.run({ x }, { signal: AbortSignal.abort(new Error('left')) }), /left/);
  const unused = new AbortController().signal;
  const { y } = await model.run({ x }, { signal: unused });
  assert.ok(Math.abs(y.data[0] - 1) < 0.01);
});

test('a worker has models of its own, and may end while they run', async () => {
  const program = `
    const { load } = require(${JSON.stringify(new URL('../../node/dist/headrace.cjs', import.meta.url).pathname)});
    load(${JSON.stringify(path)}, { device: 'cpu' }).then(async (model) => {
      const x = { data: new Float32Array(200000), dims: [100000, 2] };
      for (let i = 0; ; i += 1) {
        await Promise.all([model.run({ x }), model.run({ x })]);
        if (i === 2) require('node:worker_threads').parentPort.postMessage('runs');
      }
    });`;
  const worker = new Worker(program, { eval: true });
  worker.on('error', (error) => assert.fail(error));
  await new Promise((resolve) => worker.once('message', resolve));
  await worker.terminate();
  assert.deepEqual(values((await (await load(path, cpu)).run({ x: identity })).y), [1, 2, 3, 4]);
});

test('devices() has the CPU', async () => {
  const found = (await devices()).find(({ type }) => type === 'cpu');
  assert.ok(found && found.memoryTotal > 0 && found.memoryFree <= found.memoryTotal);
});

/** Python alone builds graphs with states: y is the sum of all x so far. */
const sums = `
import sys, webnn
builder = webnn.ML().create_context(accelerated=False).create_graph_builder()
state = builder.state("total", [1], "float32")
total = builder.assign(state, builder.add(state, builder.input("x", [1], "float32")))
builder.build({"y": total}).save(sys.argv[1])
`;
const python = fileURLToPath(new URL('../../.venv/bin/python', import.meta.url));
const core = fileURLToPath(new URL('../../python/headrace/', import.meta.url));
const isBuilt =
  existsSync(python) && readdirSync(core).some((name) => name.startsWith('_core') && name.endsWith('.so'));
const noPython = !isBuilt && 'the Python package is not built: make build does that';
test('runs of a model with states take turns in the order of their calls', { skip: noPython }, async () => {
  const saved = join(folder, 'sums.hrg');
  const made = spawnSync(python, ['-c', sums, saved], { encoding: 'utf8' });
  assert.equal(made.status, 0, made.stderr);
  const model = await load(saved, cpu);
  const x = new Float32Array(1);
  const runs = [];
  for (let i = 0; i < 20; i += 1) {
    x[0] = i;
    runs.push(model.run({ x }));
  }
  const results = await Promise.all(runs);
  assert.deepEqual(
    results.map(({ y }) => y.data[0]),
    results.map((_, i) => (i * (i + 1)) / 2),
  );
});
