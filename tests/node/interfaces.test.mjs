// The API as WebIDL shapes it: interfaces, conversions, exceptions.
import assert from 'node:assert/strict';
import { constants } from 'node:buffer';
import { createRequire } from 'node:module';
import { totalmem } from 'node:os';
import { test } from 'node:test';
import { inspect } from 'node:util';

import * as webnn from '../../node/webnn.mjs';
import { install } from '../../node/lib/webnn/index.js';
import { operators } from '../../node/lib/webnn/operators.js';

const context = await navigator.ml.createContext({ accelerated: false });
const descriptor = { dataType: 'float32', shape: [2] };
const builderWith = (name = 'x') => {
  const builder = new MLGraphBuilder(context);
  return [builder, builder.input(name, descriptor)];
};
/** What a call that returns promises rejects with; it must not throw. */
async function rejection(call) {
  const promise = call();
  assert.ok(promise instanceof Promise);
  return promise.then(
    () => assert.fail('it is fulfilled'),
    (error) => error,
  );
}

test('navigator.ml is one object, and only of navigator', () => {
  assert.equal(navigator.ml, navigator.ml);
  assert.equal(navigator.ml, webnn.ml);
  const prototype = Object.getPrototypeOf(navigator);
  const holder = prototype === Object.prototype ? navigator : prototype; // Bun's has no prototype of its own
  const { get, set, enumerable } = Object.getOwnPropertyDescriptor(holder, 'ml');
  assert.equal(get.name, 'get ml');
  assert.equal(set, undefined);
  assert.ok(enumerable);
  assert.throws(() => get.call({}), TypeError);
});

test('a navigator without a prototype of its own has the attribute alone', () => {
  const global = { navigator: {} };
  install(global, navigator.ml);
  assert.equal(global.navigator.ml, navigator.ml);
  assert.ok(!('ml' in {}));
});

test('import and require give the same classes', () => {
  const required = createRequire(import.meta.url)('../../node/dist/webnn.cjs');
  assert.deepEqual({ ...webnn }, { ...required });
});

test('console.log shows what an object is', async () => {
  const [builder, x] = builderWith();
  const graph = await builder.build({ y: builder.relu(x) });
  const tensor = await context.createTensor({ ...descriptor, readable: true });
  assert.equal(inspect(context), "MLContext { device: 'cpu', accelerated: false, lost: false }");
  assert.equal(inspect(x), "MLOperand { kind: 'input', name: 'x', dataType: 'float32', shape: [ 2 ] }");
  assert.equal(
    inspect(graph),
    "MLGraph {\n  inputs: { x: 'float32[2]' },\n  outputs: { y: 'float32[2]' },\n  destroyed: false\n}",
  );
  tensor.destroy();
  assert.match(inspect([tensor]), /MLTensor {\s+dataType: 'float32',[^]*readable: true,[^]*destroyed: true/);
  for (const type of [MLContext, MLGraph, MLOperand, MLTensor])
    assert.equal(inspect(Object.create(type.prototype)), `${type.name} {}`);
});

for (const type of [ML, MLContext, MLGraph, MLOperand, MLTensor])
  test(`${type.name} has no constructor`, () => {
    assert.throws(() => new type(), {
      name: 'TypeError',
      message: 'Illegal constructor',
    });
    assert.throws(() => new type(context), TypeError);
    assert.throws(() => type(), TypeError);
    assert.equal(type.length, 0);
  });

test('interfaces are global, members enumerable, objects named', () => {
  const members = {
    ML: ['createContext'],
    MLContext: [
      'accelerated',
      'lost',
      'createTensor',
      'createConstantTensor',
      'readTensor',
      'writeTensor',
      'dispatch',
      'opSupportLimits',
      'destroy',
    ],
    MLGraph: ['destroy'],
    MLGraphBuilder: ['input', 'constant', 'build', ...operators.map(({ name }) => name)],
    MLOperand: ['dataType', 'shape'],
    MLTensor: ['dataType', 'shape', 'readable', 'writable', 'constant', 'destroy'],
  };
  for (const [name, list] of Object.entries(members)) {
    const property = Object.getOwnPropertyDescriptor(globalThis, name);
    assert.deepEqual([property.enumerable, property.writable, property.configurable], [false, true, true]);
    assert.deepEqual(Object.keys(property.value.prototype).sort(), [...list].sort());
    assert.equal(property.value.prototype[Symbol.toStringTag], name);
  }
});

test('methods have the length that their required parameters give', () => {
  const lengths = {
    createTensor: 1,
    createConstantTensor: 2,
    readTensor: 1,
    writeTensor: 2,
    dispatch: 3,
    opSupportLimits: 0,
    destroy: 0,
  };
  for (const [name, length] of Object.entries(lengths))
    assert.equal(MLContext.prototype[name].length, length, name);
  assert.deepEqual([MLGraphBuilder.length, ML.prototype.createContext.length], [1, 0]);
  for (const [name, length] of Object.entries({
    input: 2,
    constant: 1,
    build: 1,
  }))
    assert.equal(MLGraphBuilder.prototype[name].length, length, name);
});

test('getters and methods refuse other objects; promises are rejected, nothing is thrown', async () => {
  for (const name of ['dataType', 'shape'])
    assert.throws(() => Reflect.get(MLOperand.prototype, name, {}), TypeError);
  assert.throws(() => MLTensor.prototype.destroy.call(context), TypeError);
  for (const name of ['createTensor', 'createConstantTensor', 'readTensor'])
    assert.ok(
      (await rejection(() => MLContext.prototype[name].call({}, descriptor, new Float32Array(2)))) instanceof
        TypeError,
    );
  assert.ok((await rejection(() => Reflect.get(MLContext.prototype, 'lost', {}))) instanceof TypeError);
  assert.ok((await rejection(() => ML.prototype.createContext.call({}))) instanceof TypeError);
  assert.ok((await rejection(() => MLGraphBuilder.prototype.build.call({}, {}))) instanceof TypeError);
});

test('createContext converts its options', async () => {
  for (const options of [
    undefined,
    null,
    {},
    { powerPreference: 'low-power' },
    { powerPreference: undefined, accelerated: 0 },
    () => {},
  ])
    assert.ok((await navigator.ml.createContext(options)) instanceof MLContext);
  for (const options of [5, 'gpu', true, Symbol('x'), { powerPreference: 'fast' }, { powerPreference: null }])
    assert.ok((await rejection(() => navigator.ml.createContext(options))) instanceof TypeError);
});

test('descriptors are converted as WebIDL has it', async () => {
  const bad = [
    undefined,
    null,
    5,
    {},
    { dataType: 'float32' },
    { shape: [1] },
    { dataType: 'float', shape: [1] },
    { dataType: 'float32', shape: 1 },
    { dataType: 'float32', shape: [-1] },
    { dataType: 'float32', shape: [0] },
    { dataType: 'float32', shape: [NaN] },
    { dataType: 'float32', shape: [2 ** 32] },
    { dataType: 'float32', shape: [1n] },
    { dataType: 'float32', shape: [2 ** 31] },
    { dataType: 'float32', shape: new Array(9).fill(1) },
    { dataType: 'float32', shape: [2 ** 30, 2 ** 30, 2 ** 30] },
    { dataType: 'float32', shape: 'two' },
    { dataType: 'float32', shape: { length: 1 } },
  ];
  for (const value of bad) {
    assert.ok(
      (await rejection(() => context.createTensor(value))) instanceof TypeError,
      JSON.stringify(value, (_, v) => `${v}`),
    );
    assert.throws(() => new MLGraphBuilder(context).input('x', value), TypeError);
  }
  const operand = new MLGraphBuilder(context).input('x', {
    dataType: { toString: () => 'int8' },
    shape: new Set(['2', 3.9, true]),
  });
  assert.deepEqual([operand.dataType, operand.shape], ['int8', [2, 3, 1]]);
  assert.ok(Object.isFrozen(operand.shape));
  assert.equal(operand.shape, operand.shape);
});

test('members of dictionaries are read in the order of WebIDL', () => {
  const read = [];
  const options = new Proxy({}, { get: (_, name) => void read.push(name) });
  const [builder, x] = builderWith();
  builder.clamp(x, options);
  builder.conv2d(
    ...[
      [1, 1, 3, 3],
      [1, 1, 3, 3],
    ].map((shape, i) => builder.input(`i${i}`, { dataType: 'float32', shape })),
    options,
  );
  assert.deepEqual(read, [
    'label',
    'maxValue',
    'minValue',
    'label',
    'bias',
    'dilations',
    'filterLayout',
    'groups',
    'inputLayout',
    'padding',
    'strides',
  ]);
});

test('what a conversion throws reaches the caller', async () => {
  const thrown = new RangeError('mine');
  const hostile = {
    get dataType() {
      throw thrown;
    },
  };
  assert.equal(await rejection(() => context.createTensor(hostile)), thrown);
  assert.throws(() => new MLGraphBuilder(context).input('x', hostile), thrown);
});

test('a refusal of a parameter has the label without a getter or a trap that disturbs it', () => {
  const [builder, x] = builderWith();
  assert.throws(() => builder.softmax(x, -1, { label: 'mine' }), {
    name: 'TypeError',
    message: /^softmax \(mine\): axis is -1/,
  });
  const disturbing = [
    Object.defineProperty({}, 'label', { get: () => assert.fail('the label is read') }),
    new Proxy({}, { getOwnPropertyDescriptor: () => assert.fail('a trap') }),
  ];
  for (const options of disturbing)
    assert.throws(() => builder.softmax(x, -1, options), {
      name: 'TypeError',
      message: /^softmax: axis is -1/,
    });
  const thrown = Object.freeze(new TypeError('softmax: mine'));
  const hostile = {
    valueOf() {
      throw thrown;
    },
  };
  assert.throws(
    () => builder.softmax(x, hostile),
    (error) => error === thrown,
  );
});

test('names are USVStrings, and labels cannot forge messages', () => {
  const [builder, x] = builderWith('\ud800');
  assert.throws(() => builder.input('\ufffd', descriptor), TypeError);
  assert.throws(() => builder.reshape(x, [3], { label: 'a\u202eb\nc' }), {
    message: /^reshape \(a\\u\{202e\}b\\u\{a\}c\)/,
  });
});

test('opSupportLimits has what the specification requires', async () => {
  const limits = context.opSupportLimits();
  assert.notEqual(limits, context.opSupportLimits());
  assert.equal(Object.keys(limits).length, 5 + operators.length);
  const most = limits.maxTensorByteLength;
  assert.ok(Number.isSafeInteger(most) && most >= 2 ** 30);
  assert.ok(most <= totalmem() && most <= constants.MAX_LENGTH, `${most} bytes`);
  await assert.rejects(
    context.createTensor({
      dataType: 'int8',
      shape: [2 ** 20, Math.ceil((most + 1) / 2 ** 20)],
    }),
    {
      name: 'TypeError',
      message: new RegExp(`; ${most} are allowed$`),
    },
  );
  assert.deepEqual(limits.logicalNot, {
    a: { dataTypes: ['uint8'], rankRange: { min: 0, max: 8 } },
    output: { dataTypes: ['uint8'], rankRange: { min: 0, max: 8 } },
  });
  assert.deepEqual(limits.lstm.output2.rankRange, { min: 4, max: 4 });
  assert.deepEqual(limits.conv2d.bias.rankRange, { min: 1, max: 1 });
  for (const type of ['float32', 'float16', 'int32', 'uint32', 'int64', 'uint64', 'int8', 'uint8']) {
    assert.ok(limits.add.output.dataTypes.includes(type));
    assert.ok(limits.input.dataTypes.includes(type));
  }
});
