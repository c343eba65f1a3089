// What is ahead of the specification: off in headrace/webnn, on with headrace/webnn/extensions.
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';

import '../../node/webnn.mjs';

const folder = mkdtempSync(join(tmpdir(), 'headrace-graphs-'));
after(() => rmSync(folder, { recursive: true }));

const rows = { name: 'rows', maxSize: 4 };
const float = (...shape) => ({ dataType: 'float32', shape });
const newContext = (options) => navigator.ml.createContext({ accelerated: false, ...options });

async function tensorOf(context, shape, values) {
  const tensor = await context.createTensor({
    ...float(...shape),
    readable: true,
    writable: true,
  });
  if (values) context.writeTensor(tensor, Float32Array.from(values));
  return tensor;
}
const read = async (context, tensor) => [...new Float32Array(await context.readTensor(tensor))];

/** y = x doubled, of as many rows as there are. */
async function doubled(context) {
  const builder = new MLGraphBuilder(context);
  const x = builder.input('x', float(rows, 2));
  const y = builder.add(x, x);
  assert.deepEqual(y.shape, [rows, 2]);
  return builder.build({ y });
}

test('without the extensions there is nothing but the specification', async () => {
  const context = await newContext({ threads: 'many' });
  assert.throws(() => new MLGraphBuilder(context).input('x', float(rows, 2)), {
    name: 'TypeError',
    message: /shape\[0\] is an object; a number is needed, and open dimensions.*headrace\/webnn\/extensions/,
  });
  assert.throws(() => new MLGraphBuilder(context).input('x', float('rows', 2)), {
    name: 'TypeError',
    message: /shape\[0\] is "rows"; a number is needed, or.*\{ name, maxSize \}/,
  });
  assert.deepEqual(new MLGraphBuilder(context).input('x', float('3', 2)).shape, [3, 2]);
  const three = { valueOf: () => 3 };
  assert.deepEqual(new MLGraphBuilder(context).input('x', float(three, 2)).shape, [3, 2]);
  assert.ok(!('loadGraph' in MLContext.prototype) && !('save' in MLGraph.prototype));
  assert.ok(!('device' in MLContext.prototype));
});

test('the extensions are those of the same interfaces', async () => {
  const { MLGraph: extended } = await import('../../node/webnn-extensions.mjs');
  assert.equal(extended, MLGraph);
  assert.ok('loadGraph' in MLContext.prototype && 'save' in MLGraph.prototype);
});

test('an open dimension takes the number of each dispatch', async () => {
  const context = await newContext();
  const graph = await doubled(context);
  for (const count of [1, 3, 4]) {
    const values = Array.from({ length: 2 * count }, (_, i) => i);
    const x = await tensorOf(context, [count, 2], values);
    const y = await tensorOf(context, [count, 2]);
    context.dispatch(graph, { x }, { y });
    assert.deepEqual(
      await read(context, y),
      values.map((value) => 2 * value),
    );
  }
});

test('a dispatch refuses shapes that do not fit, and the context lives on', async () => {
  const context = await newContext();
  const graph = await doubled(context);
  const [five, three, two] = await Promise.all([5, 3, 2].map((count) => tensorOf(context, [count, 2])));
  assert.throws(() => context.dispatch(graph, { x: five }, { y: three }), {
    name: 'TypeError',
    message: /input "x" is float32\[5, 2\]; the graph declares float32\[rows, 2\], where rows is at most 4/,
  });
  assert.throws(() => context.dispatch(graph, { x: three }, { y: two }), {
    name: 'TypeError',
    message: /output "y" is float32\[2, 2\]; these inputs give float32\[3, 2\]/,
  });
  context.dispatch(graph, { x: three }, { y: await tensorOf(context, [3, 2]) });
});

test('two inputs of one open dimension have one number', async () => {
  const context = await newContext();
  const builder = new MLGraphBuilder(context);
  const graph = await builder.build({
    c: builder.add(builder.input('a', float(rows)), builder.input('b', float(rows))),
  });
  const [a, b, c] = await Promise.all([2, 3, 3].map((count) => tensorOf(context, [count])));
  assert.throws(() => context.dispatch(graph, { a, b }, { c }), {
    name: 'TypeError',
    message: /rows/,
  });
});

test('extents that follow from open ones are checked before the dispatch begins', async () => {
  const context = await newContext();
  const builder = new MLGraphBuilder(context);
  const x = builder.input('x', float(rows));
  const graph = await builder.build({
    y: builder.concat([x, x], 0),
    z: builder.pad(x, [1], [2]),
  });
  const of = (count) => tensorOf(context, [count], new Array(count).fill(1));
  const [three, six, seven] = await Promise.all([3, 6, 7].map(of));
  assert.throws(() => context.dispatch(graph, { x: three }, { y: seven, z: six }), {
    name: 'TypeError',
    message: /output "y" is float32\[7\]; these inputs give float32\[6\]/,
  });
  const other = await of(6);
  context.dispatch(graph, { x: three }, { y: six, z: other });
  assert.deepEqual(await read(context, six), [1, 1, 1, 1, 1, 1]);
  assert.deepEqual(await read(context, other), [0, 1, 1, 1, 0, 0]);
});

test('reshape takes open dimensions, split wants a number', async () => {
  const builder = new MLGraphBuilder(await newContext());
  const x = builder.input('x', float(rows, 2, 3));
  assert.deepEqual(builder.reshape(x, [rows, 6]).shape, [rows, 6]);
  assert.throws(() => builder.split(x, 2, { axis: 0 }), {
    name: 'TypeError',
    message: /extent rows/,
  });
});

test('bad open dimensions are refused', async () => {
  const context = await newContext();
  for (const bad of [{}, { name: '' }, { name: 5 }, { name: 'n', maxSize: 0 }, { name: 'n', most: 3 }])
    assert.throws(() => new MLGraphBuilder(context).input('x', float(bad)), TypeError);
  await assert.rejects(context.createTensor(float(rows)), TypeError);
  assert.throws(() => new MLGraphBuilder(context).constant(float(rows), new Float32Array(2)), TypeError);
});

for (const extension of ['hrg', 'webnn', 'json'])
  test(`a graph that is saved as .${extension} computes the same when it is loaded`, async () => {
    const context = await newContext();
    const builder = new MLGraphBuilder(context);
    const w = builder.constant(float(2, 2), Float32Array.of(1, 2, 3, 4));
    const graph = await builder.build({
      y: builder.matmul(builder.input('x', float(1, 2)), w),
    });
    const path = join(folder, `product.${extension}`);
    assert.equal(await graph.save(path), undefined);

    const other = await newContext();
    const loaded = await other.loadGraph(path);
    assert.deepEqual([loaded.inputs, loaded.outputs], [{ x: float(1, 2) }, { y: float(1, 2) }]);
    const x = await tensorOf(other, [1, 2], [10, 1]);
    const y = await tensorOf(other, [1, 2]);
    other.dispatch(loaded, { x }, { y });
    assert.deepEqual(await read(other, y), [13, 24]);
  });

for (const extension of ['hrg', 'webnn', 'json'])
  test(`a graph that is loaded from a .${extension} has the limits of its open dimensions`, async () => {
    const context = await newContext();
    const path = join(folder, `doubled.${extension}`);
    await (await doubled(context)).save(path);
    const loaded = await context.loadGraph(path);
    assert.deepEqual([loaded.inputs, loaded.outputs], [{ x: float(rows, 2) }, { y: float(rows, 2) }]);
    const [five, other] = await Promise.all([0, 1].map(() => tensorOf(context, [5, 2])));
    assert.throws(() => context.dispatch(loaded, { x: five }, { y: other }), {
      name: 'TypeError',
      message: /input "x" is float32\[5, 2\].*where rows is at most 4/,
    });
  });

test('a dimension without a maxSize may be any, and one of a name that has a maxSize has that', async () => {
  const context = await newContext();
  const builder = new MLGraphBuilder(context);
  const any = { name: 'any', maxSize: 2147483647 };
  const x = builder.input('x', float({ name: 'any' }, rows));
  assert.deepEqual(x.shape, [any, rows]);
  assert.deepEqual(builder.reshape(x, [{ name: 'rows' }, { name: 'any' }]).shape, [rows, any]);
  const graph = await builder.build({ y: builder.concat([x, x], 0) });
  const path = join(folder, 'any.hrg');
  await graph.save(path);
  const { outputs } = await context.loadGraph(path);
  assert.deepEqual(outputs.y.shape[0].maxSize, 2147483647); // twice as many would be no MLDimension
});

test('one name with two different limits is refused, and what is refused declares nothing', async () => {
  const builder = new MLGraphBuilder(await newContext());
  const two = { name: 'n', maxSize: 2 };
  const three = { name: 'n', maxSize: 3 };
  const message = /shape\[\d\]: the dimension "n" has the maxSize 3; it was declared with 2$/;
  assert.throws(() => builder.input('bad', float(two, three)), {
    name: 'TypeError',
    message,
  });
  assert.throws(() => builder.input('bad', float(three, 0)), TypeError);
  const x = builder.input('x', float(two, 2));
  assert.throws(() => builder.input('y', float(three)), {
    name: 'TypeError',
    message,
  });
  assert.throws(() => builder.reshape(x, [three, 2], { label: 'L' }), {
    name: 'TypeError',
    message: 'reshape (L): newShape[0]: the dimension "n" has the maxSize 3; it was declared with 2',
  });
  assert.deepEqual(builder.reshape(x, [2, two]).shape, [2, two]);
  // Another builder has names of its own.
  assert.deepEqual(new MLGraphBuilder(await newContext()).input('x', float(three)).shape, [three]);
});

test('data types of 4 bits are two elements a byte, the low nibble first', async () => {
  const context = await newContext();
  const builder = new MLGraphBuilder(context);
  const nibbles = (dataType) => ({ dataType, shape: [3] });
  const y = builder.cast(builder.input('x', nibbles('int4')), 'int32');
  const z = builder.cast(builder.constant(nibbles('uint4'), Uint8Array.of(0x21, 0x0f)), 'int32');
  const graph = await builder.build({ y, z: builder.identity(z) });
  const x = await context.createTensor({ ...nibbles('int4'), writable: true });
  context.writeTensor(x, Uint8Array.of(0x21, 0x0f));
  const [a, b] = await Promise.all(
    [0, 1].map(() => context.createTensor({ dataType: 'int32', shape: [3], readable: true })),
  );
  context.dispatch(graph, { x }, { y: a, z: b });
  const values = async (tensor) => [...new Int32Array(await context.readTensor(tensor))];
  assert.deepEqual(
    [await values(a), await values(b)],
    [
      [1, 2, -1],
      [1, 2, 15],
    ],
  );
  assert.ok(context.opSupportLimits().cast.input.dataTypes.includes('uint4'));
});

test('a file that is no graph is refused with its path', async () => {
  const context = await newContext();
  await assert.rejects(context.loadGraph(join(folder, 'none.hrg')), /none\.hrg/);
  const graph = await doubled(context);
  await assert.rejects(
    graph.save(join(folder, 'no', 'folder.hrg')),
    /folder\.hrg': No such file or directory/,
  );
  graph.destroy();
  await assert.rejects(graph.save(join(folder, 'gone.hrg')), {
    name: 'InvalidStateError',
  });
});

test('a context says how its graphs are computed, and where', async () => {
  assert.equal((await newContext()).device, 'cpu');
  assert.equal((await newContext({ device: 'cpu' })).device, 'cpu');
  await newContext({
    device: 'cpu',
    threads: 1,
    weights: 'q8_0',
    deviceType: 'cpu',
    hostTimeout: 500,
  });
  await newContext({ device: 'cpu', precision: 'fast' });
  await assert.rejects(newContext({ precision: 'f16' }), /precision 'f16' is none of exact, fast/);
  await assert.rejects(newContext({ weights: 'q9' }), /weights 'q9' is none of as-given, q8_0, q4_0/);
  await assert.rejects(newContext({ device: 'TPU7' }), /TPU7/);
  await assert.rejects(newContext({ threads: -1 }), TypeError);
});
