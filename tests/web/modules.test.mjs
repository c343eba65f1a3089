// The WebAssembly modules and the page's half of headrace/web, in Node.
import assert from 'node:assert/strict';
import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { test } from 'node:test';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { brotliCompressSync } from 'node:zlib';

import { failureOf, parseCases } from '../node/conformance.mjs';
import { product } from '../node/onnx_models.mjs';
import { bytesOf, engineInNode, names, skipOf, skipUnbuilt } from './in_node.mjs';

const folder = new URL('../../../shared/wpt/', import.meta.url);
const files = existsSync(folder) ? readdirSync(folder).filter((name) => name.endsWith('.json')) : [];
setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc');
const vector = (length) => ({ dataType: 'float32', shape: [length] });

for (const name of names)
  test(`${name} has at most 1.5 MB by brotli`, { skip: skipUnbuilt(name) }, () => {
    const { length } = brotliCompressSync(bytesOf(name));
    assert.ok(length <= 1.5e6, `${length} bytes`);
  });

for (const name of names)
  test(name, { skip: skipOf(name) }, async (t) => {
    const engine = await engineInNode(name);
    const newContext = () => engine.ml.createContext();
    t.after(engine.close);

    await t.test('a graph gives its results', async () => {
      const context = await newContext();
      const builder = new MLGraphBuilder(context);
      const matrix = { dataType: 'float32', shape: [2, 2] };
      const x = builder.input('x', matrix);
      const y = builder.matmul(x, builder.constant(matrix, Float32Array.of(1, 2, 3, 4)));
      const graph = await builder.build({ y });
      const input = await context.createTensor({ ...matrix, writable: true });
      const output = await context.createTensor({ ...matrix, readable: true });
      context.writeTensor(input, Float32Array.of(1, 0, 0, 2));
      context.dispatch(graph, { x: input }, { y: output });
      assert.deepEqual([...new Float32Array(await context.readTensor(output))], [1, 2, 6, 8]);
    });

    await t.test('a builder refuses at once, in the words of the Node package', async () => {
      const builder = new MLGraphBuilder(await newContext());
      const a = builder.input('a', { dataType: 'float32', shape: [2, 3] });
      assert.throws(() => builder.matmul(a, a, { label: 'scores' }), {
        name: 'TypeError',
        message: /^matmul \(scores\): .*a is float32\[2, 3\], b is float32\[2, 3\]/,
      });
    });

    await t.test('constant tensors are weights', async () => {
      const context = await newContext();
      const weight = await context.createConstantTensor(vector(3), Float32Array.of(1, 2, 3));
      const builder = new MLGraphBuilder(context);
      const y = builder.add(builder.input('x', vector(3)), builder.constant(weight));
      const graph = await builder.build({ y });
      const [x, out] = [
        await context.createTensor({ ...vector(3), writable: true }),
        await context.createTensor({ ...vector(3), readable: true }),
      ];
      context.writeTensor(x, Float32Array.of(10, 10, 10));
      context.dispatch(graph, { x }, { y: out });
      assert.deepEqual([...new Float32Array(await context.readTensor(out))], [11, 12, 13]);
    });

    await t.test('a builder keeps its constant tensors, whether nobody else holds them or they are destroyed', async () => {
      const context = await newContext();
      const builder = new MLGraphBuilder(context);
      const weight = (...values) => context.createConstantTensor(vector(3), Float32Array.from(values));
      let y = builder.input('x', vector(3));
      for (let i = 0; i < 10; i += 1) y = builder.add(y, builder.constant(await weight(i, i, i)));
      const last = await weight(1, 2, 3);
      y = builder.mul(y, builder.constant(last));
      last.destroy();
      for (let i = 0; i < 3; i += 1) {
        collectGarbage();
        await new Promise((resolve) => setTimeout(resolve, 20)); // the worker is told what that has freed
      }
      const graph = await builder.build({ y });
      const x = await context.createTensor({ ...vector(3), writable: true });
      const out = await context.createTensor({ ...vector(3), readable: true });
      context.writeTensor(x, Float32Array.of(10, 10, 10));
      context.dispatch(graph, { x }, { y: out });
      assert.deepEqual([...new Float32Array(await context.readTensor(out))], [55, 110, 165]);
    });

    await t.test('bytes for which memory grows arrive whole', async () => {
      const context = await newContext();
      const length = 2 ** 26;
      const bytes = { dataType: 'uint8', shape: [length] };
      const tensor = await context.createTensor({ ...bytes, writable: true, readable: true });
      context.writeTensor(tensor, new Uint8Array(length).fill(7));
      const read = new Uint8Array(await context.readTensor(tensor));
      assert.deepEqual([read[0], read[length - 1]], [7, 7]);
      context.destroy();
    });

    await t.test('no size wraps around at 4 GiB', async () => {
      const context = await newContext();
      for (const shape of [
        [2 ** 29],
        [2 ** 30],
        [2 ** 30 + 1],
        [2 ** 16, 2 ** 16],
        [2 ** 31 - 1, 2 ** 31 - 1],
      ]) {
        await assert.rejects(context.createTensor({ dataType: 'float32', shape }), TypeError, `${shape}`);
        const builder = new MLGraphBuilder(context);
        assert.throws(() => builder.input('x', { dataType: 'float32', shape }), TypeError, `${shape}`);
        const one = builder.input('one', { dataType: 'float32', shape: shape.map(() => 1) });
        assert.throws(() => builder.expand(one, shape), TypeError, `${shape}`);
      }
    });

    await t.test('activations that are more than can be addressed are an error', async () => {
      const context = await newContext();
      const builder = new MLGraphBuilder(context);
      const x = builder.input('x', vector(2 ** 26));
      // All are needed for the sum, and then for the product.
      const values = Array.from({ length: 20 }, (_, i) =>
        builder.sin(builder.add(x, builder.constant('float32', i))),
      );
      const [sum, product] = ['add', 'mul'].map((op) => values.reduce((a, b) => builder[op](a, b)));
      const y = builder.add(builder.reduceMean(builder.cos(sum)), builder.reduceMean(product));
      const run = async () => {
        const graph = await builder.build({ y });
        const from = await context.createTensor({ ...vector(2 ** 26), writable: true });
        const to = await context.createTensor({ dataType: 'float32', shape: [], readable: true });
        context.dispatch(graph, { x: from }, { y: to });
        await context.readTensor(to);
      };
      await assert.rejects(run, (error) => {
        assert.match(error.message, /bytes|memory/);
        return true;
      });
    });

    await t.test('memory that is not there is an error, and the module goes on', async () => {
      const context = await newContext();
      const large = { dataType: 'uint8', shape: [2 ** 31 - 1] };
      const made = [];
      await assert.rejects(
        async () => {
          for (let i = 0; i < 4; i += 1) made.push(await context.createTensor(large));
        },
        { name: 'UnknownError', message: /cannot allocate/ },
      );
      for (const tensor of made) tensor.destroy();
      const small = await context.createTensor({ ...vector(2), readable: true });
      assert.equal((await context.readTensor(small)).byteLength, 8);
    });

    await t.test('a thousand contexts that are made and destroyed take no memory', async () => {
      const heapSize = () => engine.started.napi.heapSize();
      const once = async () => {
        const context = await newContext();
        const builder = new MLGraphBuilder(context);
        await builder.build({ y: builder.relu(builder.input('x', vector(64))) });
        await context.createTensor(vector(4096));
        context.destroy();
      };
      for (let i = 0; i < 100; i += 1) await once();
      const before = heapSize();
      for (let i = 0; i < 1000; i += 1) await once();
      assert.ok(heapSize() - before <= 2 ** 20, `${heapSize() - before} bytes more`);
    });

    await t.test('an ONNX model runs by arrays', async () => {
      const model = await engine.load(product);
      const [input] = model.inputs;
      assert.equal(input.type, 'float32');
      const data = Float32Array.of(1, 0, 0, 1);
      const { y } = await model.run({ [input.name]: { data, dims: [2, 2] } });
      assert.deepEqual([...data], [1, 0, 0, 1]); // the caller's has not moved to the worker
      assert.deepEqual(y.dims, [2, 2]);
      assert.deepEqual([...y.data], [1, 2, 3, 4]);
      model.dispose();
      await assert.rejects(model.run({}), { code: 'invalid_state' });
    });

    await t.test('runs that go on at once and those that follow have the inputs that they were given', async () => {
      const model = await engine.load(product);
      const [{ name: input }] = model.inputs;
      const run = async (...values) =>
        [...(await model.run({ [input]: { data: Float32Array.from(values), dims: [2, 2] } })).y.data];
      assert.deepEqual(await Promise.all([run(1, 0, 0, 1), run(0, 1, 1, 0)]), [
        [1, 2, 3, 4],
        [3, 4, 1, 2],
      ]);
      assert.deepEqual(await Promise.all([run(2, 0, 0, 2), run(0, 0, 0, 0)]), [
        [2, 4, 6, 8],
        [0, 0, 0, 0],
      ]);
      model.dispose();
    });

    await t.test('damaged ONNX models are refused, and the module goes on', async () => {
      for (let i = 0; i < product.length; i += 1) {
        const bytes = Uint8Array.from(product);
        bytes[i] ^= 0xff;
        await engine.load(bytes).then(
          (model) => model.dispose(),
          (error) => assert.equal(error.name, 'HeadraceError', `byte ${i}: ${error.stack}`),
        );
      }
      await assert.rejects(engine.load(product.slice(0, -5)), { name: 'HeadraceError' });
      (await engine.load(product)).dispose();
    });

    const isLong = name === names[1]; // each case once is enough: the kernels are the same
    for (const file of isLong ? files : [])
      await t.test(`the cases of ${file} pass`, async () => {
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
  });
