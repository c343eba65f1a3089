// lib/webnn on a backend that is none of Node's: what it asks of one, and what failures of one become.
import assert from 'node:assert/strict';
import { readFileSync, readdirSync } from 'node:fs';
import { test } from 'node:test';

import { createML, interfaces } from '../../node/lib/webnn/index.js';

const { MLGraphBuilder } = interfaces;
const failure = (code, message) => Object.assign(new Error(message), { code });

/** Promises of reads and builds stay open until a test settles them. */
function fakeBackend() {
  const backend = { calls: [], maxTensorByteLength: 1000 };
  const record = (name, result) => {
    backend[name] = (...args) => {
      backend.calls.push([name, ...args]);
      return typeof result === 'function' ? result(...args) : result;
    };
  };
  const open = () => new Promise((resolve, reject) => Object.assign(backend, { resolve, reject }));
  record('createContext', (_, onLost) => {
    backend.onLost = onLost;
    return Promise.resolve({ handle: 'context', accelerated: true });
  });
  record('createTensor', () => Promise.resolve('tensor'));
  record('readTensor', open);
  record('build', open);
  record('createBuilder', 'builder');
  record('input', 0);
  record('operator', () => [{ operand: 1, dataType: 'float32', shape: [2] }]);
  for (const name of ['destroyContext', 'destroyTensor', 'writeTensor', 'dispatch']) record(name, undefined);
  return backend;
}

async function contextOn(backend) {
  return createML(backend).createContext();
}
const vector = { dataType: 'float32', shape: [2], readable: true };

test('a context that a backend loses is lost to everybody', async () => {
  const backend = fakeBackend();
  const context = await contextOn(backend);
  assert.equal(context.accelerated, true);
  const read = context.readTensor(await context.createTensor(vector));
  backend.onLost('the device is gone');
  await assert.rejects(read, { name: 'InvalidStateError', message: /the device is gone/ });
  assert.deepEqual(await context.lost, { message: 'the device is gone' });
  assert.throws(() => new MLGraphBuilder(context), { name: 'InvalidStateError' });
  assert.equal(backend.calls.filter(([name]) => name === 'destroyContext').length, 1);
  backend.reject(failure('invalid_state', 'late')); // nobody waits for it any more, and nothing is unhandled
});

test('failures of a backend become the exceptions of the specification', async () => {
  const backend = fakeBackend();
  const context = await contextOn(backend);
  const read = context.readTensor(await context.createTensor(vector));
  backend.reject(failure('out_of_memory', 'no room'));
  await assert.rejects(read, { name: 'UnknownError', message: 'no room' });
  const builder = new MLGraphBuilder(context);
  const y = builder.abs(builder.input('x', vector));
  const build = builder.build({ y });
  backend.reject(failure('backend_failure', 'no graph'));
  await assert.rejects(build, { name: 'OperationError', message: 'no graph' });
  backend.createContext = () => Promise.reject(failure('invalid_argument', 'no device'));
  await assert.rejects(createML(backend).createContext(), {
    name: 'NotSupportedError',
    message: 'no device',
  });
});

test('a refusal of a backend names the operator as WebNN does, with its label and operands', async () => {
  const backend = fakeBackend();
  const builder = new MLGraphBuilder(await contextOn(backend));
  backend.operator = (_, name, operands, options, label) => {
    assert.deepEqual([name, operands, options, label], ['arg_max', [0], ['axis', 'integer', 5], 'best']);
    throw failure('invalid_argument', 'arg_max (best): axis is 5');
  };
  assert.throws(() => builder.argMax(builder.input('x', vector), 5, { label: 'best' }), {
    name: 'TypeError',
    message: 'argMax (best): axis is 5; input is float32[2]',
  });
});

test('tensors and results that are too large for a backend are refused', async () => {
  const backend = fakeBackend();
  const context = await contextOn(backend);
  const message = /float32\[251\] takes 1004 bytes; 1000 are allowed/;
  await assert.rejects(context.createTensor({ ...vector, shape: [251] }), { name: 'TypeError', message });
  const builder = new MLGraphBuilder(context);
  const x = builder.input('x', vector);
  backend.operator = () => [{ operand: 1, dataType: 'float32', shape: [251] }];
  assert.throws(() => builder.tile(x, [251]), { name: 'TypeError', message });
});

test('lib/webnn uses nothing of Node', () => {
  const folder = new URL('../../node/lib/webnn/', import.meta.url);
  for (const file of readdirSync(folder)) {
    const text = readFileSync(new URL(file, folder), 'utf8');
    assert.doesNotMatch(text, /\b(require|process|Buffer|__dirname)\b[.(]|from '(?!\.)/, file);
  }
});
