// What is dropped, destroyed or ended while something runs.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { Worker } from 'node:worker_threads';

import '../../node/webnn.mjs';

const busy = fileURLToPath(new URL('busy.mjs', import.meta.url));
const newContext = () => navigator.ml.createContext({ accelerated: false });
const square = { dataType: 'float32', shape: [64, 64] };

async function productOf(context) {
  const builder = new MLGraphBuilder(context);
  const x = builder.input('x', square);
  let y = x;
  for (let i = 0; i < 20; i += 1) y = builder.matmul(y, x);
  const graph = await builder.build({ y });
  const x1 = await context.createTensor({ ...square, writable: true });
  const y1 = await context.createTensor({ ...square, readable: true });
  return { context, graph, x: x1, y: y1 };
}

test('destroying a context resolves lost, rejects what waits and refuses what follows', async () => {
  const { context, graph, x, y } = await productOf(await newContext());
  const builder = new MLGraphBuilder(context);
  const operand = builder.abs(builder.input('x', square));
  for (let i = 0; i < 200; i += 1) context.dispatch(graph, { x }, { y });
  const waiting = [
    context.readTensor(y),
    context.createTensor(square),
    new MLGraphBuilder(context).constant('int8', 1) && builder.build({ operand }),
  ];
  context.destroy();
  context.destroy();
  for (const promise of waiting) await assert.rejects(promise, { name: 'InvalidStateError' });
  assert.match((await context.lost).message, /destroy\(\)/);
  assert.equal(context.lost, context.lost);
  assert.throws(() => context.dispatch(graph, { x }, { y }), { name: 'InvalidStateError' });
  assert.throws(() => context.writeTensor(x, new Float32Array(64 * 64)), TypeError);
  await assert.rejects(context.readTensor(y), { name: 'TypeError' });
  await assert.rejects(context.createTensor(square), { name: 'InvalidStateError' });
  await assert.rejects(context.createConstantTensor(square, new Float32Array(64 * 64)), {
    name: 'InvalidStateError',
  });
  assert.throws(() => new MLGraphBuilder(context), { name: 'InvalidStateError' });
  for (const owned of [x, y, graph]) owned.destroy();
  assert.equal(Object.keys(context.opSupportLimits()).length, 100);
});

test('work goes on beside the event loop', async () => {
  const { context, graph, x, y } = await productOf(await newContext());
  for (let i = 0; i < 300; i += 1) context.dispatch(graph, { x }, { y });
  let turns = 0;
  let done = false;
  const read = context.readTensor(y).then(() => (done = true));
  while (!done) {
    await sleep(0);
    turns += 1;
  }
  await read;
  assert.ok(turns > 3, `${turns} turns of the event loop`);
  context.destroy();
});

test('100,000 tensors that are dropped leave no memory behind', { timeout: 300000 }, async () => {
  const context = await newContext();
  const some = async (count) => {
    for (let i = 0; i < count; i += 100)
      await Promise.all(
        Array.from({ length: 100 }, () =>
          context.createTensor({ dataType: 'float32', shape: [1024], writable: true }),
        ),
      );
  };
  await some(20000);
  const before = process.memoryUsage.rss();
  await some(80000);
  const grown = (process.memoryUsage.rss() - before) / 2 ** 20;
  assert.ok(grown < 64, `80,000 tensors of 4 KiB (312 MiB) left ${grown} MiB`);
});

test(
  'contexts, graphs and dispatches that are dropped leave no memory behind',
  { timeout: 300000 },
  async () => {
    const some = async (count) => {
      for (let i = 0; i < count; i += 1) {
        const context = await newContext();
        const builder = new MLGraphBuilder(context);
        const big = { dataType: 'float32', shape: [256, 1024] };
        const graph = await builder.build({
          y: builder.add(builder.input('x', big), builder.constant(big, new Float32Array(256 * 1024))),
        });
        const [x, y] = [await context.createTensor(big), await context.createTensor(big)];
        context.dispatch(graph, { x }, { y });
        if (i % 2) context.destroy();
      }
    };
    await some(40);
    const before = process.memoryUsage.rss();
    await some(200);
    const grown = (process.memoryUsage.rss() - before) / 2 ** 20;
    assert.ok(grown < 200, `200 contexts of 4 MiB and more (800 MiB) left ${grown} MiB`);
  },
);

test('builders that are dropped with their constants leave no memory behind', async () => {
  const context = await newContext();
  const wide = { dataType: 'float32', shape: [2 ** 20] };
  const data = new Float32Array(2 ** 20).fill(1);
  const some = async (count) => {
    for (let i = 0; i < count; i += 1) {
      new MLGraphBuilder(context).constant(wide, data);
      await sleep(0); // handles are freed between tasks
    }
  };
  await some(40);
  const before = process.memoryUsage.rss();
  await some(200);
  const grown = (process.memoryUsage.rss() - before) / 2 ** 20;
  assert.ok(grown < 200, `200 builders of 4 MiB (800 MiB) left ${grown} MiB`);
});

test('a worker has navigator.ml, too', async () => {
  const worker = new Worker(busy, { workerData: 'once' });
  const [result] = await new Promise((resolve, reject) =>
    worker.once('message', (...values) => resolve(values)).once('error', reject),
  );
  assert.deepEqual(result, [4, 8]);
  await worker.terminate();
});

test('workers that end at any moment take nothing with them', { timeout: 300000 }, async () => {
  for (let i = 0; i < 20; i += 1) {
    const worker = new Worker(busy, { workerData: 'forever' });
    worker.on('error', (error) => assert.fail(error));
    if (i % 2) await new Promise((resolve) => worker.once('message', resolve));
    await sleep(5 * i);
    await worker.terminate();
  }
  const { context, graph, x, y } = await productOf(await newContext());
  context.dispatch(graph, { x }, { y });
  assert.equal((await context.readTensor(y)).byteLength, 64 * 64 * 4);
});

for (const [name, code] of Object.entries({ ends: 0, exits: 3, throws: 1 }))
  test(`a process that ${name} while dispatches run does so cleanly`, () => {
    const { status, signal, stderr } = spawnSync(process.execPath, [busy, name], { timeout: 60000 });
    assert.deepEqual([status, signal], [code, null], `${stderr}`);
  });
