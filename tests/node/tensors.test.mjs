// Tensors: what goes in and comes out, in which order, and what is refused.
import assert from 'node:assert/strict';
import { test } from 'node:test';

import '../../node/webnn.mjs';

const context = await navigator.ml.createContext({ accelerated: false });
const other = await navigator.ml.createContext({ accelerated: false });
const both = { readable: true, writable: true };
const make = (dataType, shape, options = both) => context.createTensor({ dataType, shape, ...options });

async function rejection(call) {
  const promise = call();
  assert.ok(promise instanceof Promise);
  return promise.then(
    () => assert.fail('it is fulfilled'),
    (error) => error,
  );
}

async function doubling() {
  const builder = new MLGraphBuilder(context);
  const x = builder.input('x', { dataType: 'float32', shape: [2] });
  return builder.build({ y: builder.add(x, x) });
}
const graph = await doubling();

test('tensors start as zeros and tell what they are', async () => {
  const tensor = await make('int32', [2, 3], { readable: true });
  assert.deepEqual(
    [tensor.dataType, tensor.shape, tensor.readable, tensor.writable, tensor.constant],
    ['int32', [2, 3], true, false, false],
  );
  assert.ok(Object.isFrozen(tensor.shape));
  const buffer = await context.readTensor(tensor);
  assert.ok(buffer instanceof ArrayBuffer);
  assert.deepEqual(new Int32Array(buffer), new Int32Array(6));
});

const arrays = {
  float32: Float32Array,
  int32: Int32Array,
  uint32: Uint32Array,
  int64: BigInt64Array,
  uint64: BigUint64Array,
  int8: Int8Array,
  uint8: Uint8Array,
  float16: globalThis.Float16Array ?? Uint16Array,
};
for (const [dataType, type] of Object.entries(arrays))
  test(`${dataType} goes in and out as ${type.name}, bytes and buffers`, async () => {
    const tensor = await make(dataType, [2]);
    const big = dataType.endsWith('64');
    const values = type.from(big ? [1n, 2n] : [1, 2]);
    const shared = new SharedArrayBuffer(values.byteLength);
    new type(shared).set(values);
    for (const source of [values, new Uint8Array(values.buffer), values.buffer, shared, new type(shared)]) {
      context.writeTensor(tensor, new Uint8Array(values.byteLength));
      context.writeTensor(tensor, source);
      assert.deepEqual(new type(await context.readTensor(tensor)), values);
      const output = new type(2);
      assert.equal(await context.readTensor(tensor, output), undefined);
      assert.deepEqual(output, values);
      const target = new SharedArrayBuffer(values.byteLength);
      await context.readTensor(tensor, target);
      assert.deepEqual(new type(target), new type(values));
    }
    const wrong = dataType === 'int32' ? new Float32Array(2) : new Int32Array(values.byteLength / 4 || 1);
    assert.throws(() => context.writeTensor(tensor, wrong), TypeError);
    assert.throws(() => context.writeTensor(tensor, new DataView(values.buffer)), TypeError);
  });

// "Validate buffer with descriptor": the number of bytes, and for a view its type or Uint8Array, a view of any bytes.
test('a view has the type of the tensor or is a Uint8Array, in each call that takes one', async () => {
  const views = [...new Set(Object.values(arrays)), Float64Array, Int16Array, Uint8ClampedArray, DataView];
  for (const [dataType, own] of Object.entries(arrays)) {
    const shape = [8 / own.BYTES_PER_ELEMENT];
    const tensor = await make(dataType, shape);
    for (const view of views) {
      const source = new view(new ArrayBuffer(8));
      const calls = [
        () => context.readTensor(tensor, source),
        () => context.createConstantTensor({ dataType, shape }, source),
        async () => context.writeTensor(tensor, source),
        async () => new MLGraphBuilder(context).constant({ dataType, shape }, source),
      ];
      for (const call of calls) {
        const what = `${dataType}, ${view.name}: ${call}`;
        const isTaken = [own, Uint8Array, dataType === 'float16' && Uint16Array].includes(view);
        if (isTaken) await assert.doesNotReject(call, what);
        else await assert.rejects(call, { name: 'TypeError', message: /needs an? \w+, a Uint8Array or/ }, what);
      }
    }
  }
});

test('a view writes its own bytes only', async () => {
  const tensor = await make('float32', [2]);
  const all = Float32Array.of(0, 1, 2, 3);
  context.writeTensor(tensor, all.subarray(1, 3));
  assert.deepEqual(new Float32Array(await context.readTensor(tensor)), Float32Array.of(1, 2));
  await context.readTensor(tensor, all.subarray(2));
  assert.deepEqual(all, Float32Array.of(0, 1, 1, 2));
});

test('operations happen in the order of their calls, with the content of that moment', async () => {
  const [x, y] = [await make('float32', [2]), await make('float32', [2])];
  const data = new Float32Array(2);
  const reads = [];
  for (let i = 0; i < 50; i += 1) {
    data.fill(i);
    context.writeTensor(x, data);
    context.dispatch(graph, { x }, { y });
    reads.push(context.readTensor(y), context.readTensor(x));
  }
  const results = await Promise.all(reads);
  results.forEach((buffer, i) => assert.equal(new Float32Array(buffer)[1], i % 2 ? (i - 1) / 2 : i, `${i}`));
});

test('buffers of the wrong kind, size or state are refused', async () => {
  const tensor = await make('float32', [2]);
  const detached = new Float32Array(2);
  structuredClone(null, { transfer: [detached.buffer] });
  const refused = [
    undefined,
    null,
    8,
    [1, 2],
    {},
    new Float32Array(3),
    new ArrayBuffer(4),
    detached,
    detached.buffer,
    new Array(8),
  ];
  if (ArrayBuffer.prototype.resize) {
    const resizable = new ArrayBuffer(8, { maxByteLength: 16 });
    refused.push(resizable, new Float32Array(resizable), new Float32Array(resizable, 0, 2));
    refused.push(new SharedArrayBuffer(8, { maxByteLength: 16 }));
  }
  for (const source of refused) {
    assert.throws(() => context.writeTensor(tensor, source), TypeError);
    assert.ok((await rejection(() => context.readTensor(tensor, source))) instanceof TypeError);
    assert.ok(
      (await rejection(() =>
        context.createConstantTensor({ dataType: 'float32', shape: [2] }, source),
      )) instanceof TypeError,
    );
    assert.throws(
      () => new MLGraphBuilder(context).constant({ dataType: 'float32', shape: [2] }, source),
      TypeError,
    );
  }
});

test('buffers and views are what they are, whatever properties of their own say', async () => {
  const large = await make('float32', [1000]);
  const small = await make('float32', [2]);
  const saying = (source, properties) => {
    for (const [name, value] of Object.entries(properties)) Object.defineProperty(source, name, { value });
    return source;
  };
  for (const source of [
    saying(new ArrayBuffer(8), { byteLength: 4000 }),
    saying(new SharedArrayBuffer(8), { byteLength: 4000 }),
    saying(new Float32Array(2), { byteLength: 4000 }),
    saying(new Float32Array(2), { buffer: new ArrayBuffer(4000), byteLength: 4000 }),
  ]) {
    assert.throws(() => context.writeTensor(large, source), { name: 'TypeError', message: /has 8 bytes/ });
    assert.ok((await rejection(() => context.readTensor(large, source))) instanceof TypeError);
    context.writeTensor(small, source);
    await context.readTensor(small, source);
  }
  const integers = Object.defineProperty(new Int32Array(2), Symbol.toStringTag, { value: 'Float32Array' });
  assert.throws(() => context.writeTensor(small, integers), { message: /is an Int32Array/ });
  let asked = 0;
  const counting = new Float32Array(2);
  for (const name of ['byteLength', 'byteOffset', 'buffer'])
    Object.defineProperty(counting, name, { get: () => (asked += 1) });
  context.writeTensor(small, counting);
  assert.equal(asked, 0);
});

test('an output that is detached while it is awaited rejects the read', async () => {
  const tensor = await make('float32', [2]);
  const output = new Float32Array(2);
  const read = context.readTensor(tensor, output);
  structuredClone(null, { transfer: [output.buffer] });
  await assert.rejects(read, { name: 'TypeError', message: /detached/ });
});

test('reads and writes ask for tensors that allow them', async () => {
  const tensor = await make('float32', [2], {});
  assert.throws(() => context.writeTensor(tensor, new Float32Array(2)), {
    name: 'TypeError',
    message: /not writable/,
  });
  const error = await rejection(() => context.readTensor(tensor));
  assert.match(`${error}`, /^TypeError.*not readable/);
  for (const wrong of [null, {}, context]) {
    assert.throws(() => context.writeTensor(wrong, new Float32Array(2)), TypeError);
    assert.ok((await rejection(() => context.readTensor(wrong))) instanceof TypeError);
  }
  assert.ok((await rejection(() => context.readTensor())) instanceof TypeError);
  assert.ok((await rejection(() => context.readTensor(tensor, undefined))) instanceof TypeError);
});

test('tensors of another context are refused', async () => {
  const foreign = await other.createTensor({ dataType: 'float32', shape: [2], ...both });
  const y = await make('float32', [2]);
  assert.throws(() => context.writeTensor(foreign, new Float32Array(2)), TypeError);
  assert.ok((await rejection(() => context.readTensor(foreign))) instanceof TypeError);
  assert.throws(() => context.dispatch(graph, { x: foreign }, { y }), {
    name: 'TypeError',
    message: /input "x" belongs to another context/,
  });
  assert.throws(() => other.dispatch(graph, { x: foreign }, { y: foreign }), {
    name: 'TypeError',
    message: /graph belongs to another/,
  });
});

test('a destroyed tensor is refused, and what was called before still happens', async () => {
  const [x, y] = [await make('float32', [2]), await make('float32', [2])];
  context.writeTensor(x, Float32Array.of(3, 4));
  context.dispatch(graph, { x }, { y });
  x.destroy();
  x.destroy();
  assert.deepEqual(new Float32Array(await context.readTensor(y)), Float32Array.of(6, 8));
  assert.throws(() => context.writeTensor(x, new Float32Array(2)), TypeError);
  assert.throws(() => context.dispatch(graph, { x }, { y }), {
    name: 'TypeError',
    message: /input "x" has been destroyed/,
  });
  assert.ok((await rejection(() => context.readTensor(x))) instanceof TypeError);
});

test('destroying a tensor rejects its reads', async () => {
  const tensor = await make('float32', [2]);
  const reads = [context.readTensor(tensor), context.readTensor(tensor, new Float32Array(2))];
  tensor.destroy();
  for (const read of reads) await assert.rejects(read, { name: 'InvalidStateError' });
});

test('dispatch refuses names and tensors that the graph does not have', async () => {
  const [x, y] = [await make('float32', [2]), await make('float32', [2])];
  const constant = await context.createConstantTensor(
    { dataType: 'float32', shape: [2] },
    new Float32Array(2),
  );
  const wide = await make('float32', [3]);
  const integers = await make('int32', [2]);
  const calls = [
    [{}, { y }],
    [{ x }, {}],
    [{ x, z: wide }, { y }],
    [{ z: x }, { y }],
    [{ x }, { z: y }],
    [{ x }, { y: x }],
    [{ x: wide }, { y }],
    [{ x: integers }, { y }],
    [{ x }, { y: integers }],
    [{ x: constant }, { y }],
    [{ x }, { y: constant }],
    [null, { y }],
    [{ x: {} }, { y }],
    [5, { y }],
    [{ x, [Symbol('s')]: y }, { y }],
  ];
  for (const [inputs, outputs] of calls)
    assert.throws(() => context.dispatch(graph, inputs, outputs), TypeError);
  assert.throws(() => context.dispatch(graph, {}, { y }), {
    message: 'dispatch: no inputs are given; the graph has "x"',
  });
  assert.throws(() => context.dispatch(graph, { z: x }, { y }), {
    message: 'dispatch: the inputs "z" are given; the graph has "x"',
  });
  assert.throws(() => context.dispatch(graph, { x }), TypeError);
  assert.throws(() => context.dispatch({}, { x }, { y }), TypeError);
  assert.throws(() => context.dispatch(graph, { x: wide }, { y }), {
    message: /input "x" is float32\[3\]; the graph declares float32\[2\]/,
  });
});

test('a destroyed graph is refused, and what was dispatched before still happens', async () => {
  const own = await doubling();
  const [x, y] = [await make('float32', [2]), await make('float32', [2])];
  context.writeTensor(x, Float32Array.of(1, 2));
  context.dispatch(own, { x }, { y });
  own.destroy();
  own.destroy();
  assert.throws(() => context.dispatch(own, { x }, { y }), { name: 'InvalidStateError' });
  assert.deepEqual(new Float32Array(await context.readTensor(y)), Float32Array.of(2, 4));
});
