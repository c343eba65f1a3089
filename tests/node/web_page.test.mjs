// What of headrace/web is JavaScript, on Node's addon in WebAssembly's place.
import assert from 'node:assert/strict';
import { existsSync, readFileSync, readdirSync, unlinkSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { after, test } from 'node:test';

import { engineOn } from '../web/engine.mjs';
import { failureOf, parseCases } from './conformance.mjs';
import { doubled, product } from './onnx_models.mjs';

const folder = new URL('../../../shared/wpt/', import.meta.url);
const files = existsSync(folder) ? readdirSync(folder).filter((name) => name.endsWith('.json')) : [];
const addon = createRequire(import.meta.url)('../../node/native/headrace.node');
const released = [];
const napi = {
  release: (object) => released.push(object),
  Bytes: class extends Uint8Array {
    copy() {
      return Uint8Array.from(this);
    }
    free() {}
  },
};
const started = { addon, napi, files: { writeFile: writeFileSync, unlink: unlinkSync } };
const { ml, load, connect, close } = engineOn(started, started);
after(close);
const newContext = () => ml.createContext({ accelerated: false });
const vector = (length) => ({ dataType: 'float32', shape: [length] });

for (const file of files)
  test(`the cases of ${file} pass by way of a worker`, async () => {
    const context = await newContext();
    const { cases } = parseCases(readFileSync(new URL(file, folder), 'utf8'));
    const failures = [];
    for (const one of cases) {
      const reason = await failureOf(context, one).catch((error) => `${error.name}: ${error.message}`);
      if (reason) failures.push(`${one.name}: ${reason}`);
    }
    assert.ok(cases.length > 0);
    assert.deepEqual(failures, []);
    context.destroy();
  });

test('a refused operator is told at the call, with its label and shapes', async () => {
  const builder = new MLGraphBuilder(await newContext());
  const a = builder.input('a', { dataType: 'float32', shape: [2, 3] });
  assert.throws(() => builder.matmul(a, a, { label: 'scores' }), {
    name: 'TypeError',
    message: /^matmul \(scores\): .*a is float32\[2, 3\], b is float32\[2, 3\]/,
  });
});

test('a constant is what it was at the call', async () => {
  const context = await newContext();
  const builder = new MLGraphBuilder(context);
  const values = Float32Array.of(1, 2);
  const y = builder.add(builder.input('x', vector(2)), builder.constant(vector(2), values));
  values.fill(9);
  const graph = await builder.build({ y });
  const x = await context.createTensor({ ...vector(2), writable: true });
  const out = await context.createTensor({ ...vector(2), readable: true });
  const given = Float32Array.of(10, 20);
  context.writeTensor(x, given);
  given.fill(0);
  context.dispatch(graph, { x }, { y: out });
  assert.deepEqual([...new Float32Array(await context.readTensor(out))], [11, 22]);
});

test('constant tensors are weights', async () => {
  const context = await newContext();
  const weight = await context.createConstantTensor(vector(3), Float32Array.of(1, 2, 3));
  const builder = new MLGraphBuilder(context);
  const graph = await builder.build({
    y: builder.mul(builder.input('x', vector(3)), builder.constant(weight)),
  });
  const x = await context.createTensor({ ...vector(3), writable: true });
  const out = await context.createTensor({ ...vector(3), readable: true });
  context.writeTensor(x, Float32Array.of(2, 2, 2));
  context.dispatch(graph, { x }, { y: out });
  assert.deepEqual([...new Float32Array(await context.readTensor(out))], [2, 4, 6]);
});

test('what is destroyed is released in the worker at once', async () => {
  const context = await newContext();
  const builder = new MLGraphBuilder(context);
  const graph = await builder.build({ y: builder.abs(builder.input('x', vector(2))) });
  const tensor = await context.createTensor({ ...vector(2), readable: true });
  released.length = 0;
  graph.destroy();
  tensor.destroy();
  context.destroy();
  await (await newContext()).createTensor(vector(2)); // the calls before it have been answered
  assert.equal(released.length, 3);
});

test('an ONNX model runs by arrays, and its bytes stay with the caller', async () => {
  const bytes = Uint8Array.from(product);
  const model = await load(bytes);
  assert.equal(bytes.length, product.length);
  const { y } = await model.run({ x: { data: Float32Array.of(1, 0, 0, 1), dims: [2, 2] } });
  assert.deepEqual([...y.data], [1, 2, 3, 4]);
  model.dispose();
  await assert.rejects(model.run({}), { name: 'HeadraceError', code: 'invalid_state' });
  await assert.rejects(load(product.slice(0, -5)), { name: 'HeadraceError' });
  await assert.rejects(load(5), TypeError);
});

test('a page has no files to save a model in, and a run that is aborted is heard no more', async () => {
  const model = await load(product);
  await assert.rejects(model.save('model.hrg'), {
    name: 'HeadraceError',
    code: 'unsupported',
    message: /a page has no files/,
  });
  const inputs = { x: { data: Float32Array.of(1, 0, 0, 1), dims: [2, 2] } };
  const leaving = new AbortController();
  const run = model.run(inputs, { signal: leaving.signal });
  leaving.abort(new Error('left'));
  await assert.rejects(run, /left/);
  assert.deepEqual([...(await model.run(inputs)).y.data], [1, 2, 3, 4]);
});

test('a model of a URL tells its progress, and a missing one its status', async (t) => {
  const model = doubled('float32', [2]);
  t.mock.method(globalThis, 'fetch', async (url) =>
    url.endsWith('/there.onnx')
      ? new Response(model, { headers: { 'Content-Length': `${model.length}` } })
      : new Response('', { status: 404, statusText: 'Not Found' }),
  );
  const states = [];
  const loaded = await load('http://localhost/there.onnx', { progress: (state) => states.push(state) });
  assert.deepEqual(states.at(-1), { loaded: model.length, total: model.length });
  const { y } = await loaded.run({ x: Float32Array.of(1, 2) });
  assert.deepEqual([...y.data], [2, 4]);
  await assert.rejects(load('http://localhost/missing.onnx'), /missing\.onnx gives 404 Not Found/);
});

test('a worker that ends loses its contexts with the reason, and the next context has another one', async () => {
  const context = await newContext();
  const tensor = await context.createTensor({ ...vector(2), readable: true });
  const remote = connect();
  const read = context.readTensor(tensor);
  remote.send('no such call', []);
  assert.match((await context.lost).message, /^the worker ended: .*not a function/);
  await read.catch(() => {}); // either came first
  await assert.rejects(context.createTensor(vector(2)), { name: 'InvalidStateError' });
  assert.throws(() => context.writeTensor(tensor, new Float32Array(2)), TypeError);
  const next = await newContext();
  const other = await next.createTensor({ ...vector(2), readable: true });
  assert.equal((await next.readTensor(other)).byteLength, 8);
});
