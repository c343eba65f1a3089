// Every parameter and option of every operator, given every kind of value: it is taken, or the TypeError says which call
// of which label it was, and which part of it.
import assert from 'node:assert/strict';
import { test } from 'node:test';

import '../../node/webnn.mjs';
import { operators } from '../../node/lib/webnn/operators.js';
import { calls, float, labeled, made } from './calls.mjs';

const context = await navigator.ml.createContext({ accelerated: false });
const foreign = new MLGraphBuilder(context).input('foreign', float(2, 3));
const values = [
  ...[undefined, null, true, -1, 0, 1.5, NaN, Infinity, 2 ** 31, 2 ** 32, 5n, 'x', '1', '', Symbol('s')],
  ...[{}, [], [1], [-1], [NaN], [[]], [1, 1], [1, 1, 1], [2 ** 32], new Float32Array(2)],
  ...[() => 1, new Date(0), foreign, [foreign], Object.create(MLOperand.prototype)],
  ...[{ [Symbol.iterator]: 5 }, { [Symbol.iterator]: null }, { [Symbol.iterator]: () => 5 }],
];

function refusals(row, place, change) {
  return values.flatMap((value) => {
    const builder = new MLGraphBuilder(context);
    const args = made(builder, labeled(calls[row.name], 'L'));
    change(args, value);
    try {
      builder[row.name](...args);
      return [];
    } catch (error) {
      const hasLabel = args[row.parameters.length]?.label === 'L';
      const said = `${place} is ${typeof value}: ${error}`;
      assert.ok(error instanceof TypeError, said);
      assert.ok(error.message.startsWith(`${row.name}${hasLabel ? ' (L)' : ''}: `), said);
      assert.match(error.message, /: .*\b(?:is|are|has|have|belongs|must)\b/, said);
      return [error.message];
    }
  });
}

/** It, or what the operands are. */
const namesPart = (name) => new RegExp(`\\b${name}\\b|; \\w+(?:\\[\\d\\])? is u?(?:int|float)\\d+\\[`);

for (const row of operators)
  test(`${row.name} takes each value of each parameter and option, or says what is wrong with it`, () => {
    const last = row.parameters.length;
    const withOption = (name) => (args, value) => (args[last] = { ...args[last], [name]: value });
    for (const [i, [name]] of row.parameters.entries()) {
      const messages = refusals(row, name, (args, value) => (args[i] = value));
      assert.ok(messages.length > 3, name);
      for (const message of messages) assert.match(message, namesPart(name));
    }
    for (const [name] of row.options)
      for (const message of refusals(row, name, withOption(name))) assert.match(message, namesPart(name));
    for (const message of refusals(row, 'options', (args, value) => (args[last] = value)))
      assert.match(message, /options is not an object|: \w+/);
    for (const message of refusals(row, 'label', withOption('label')))
      assert.match(message, /options\.label is a symbol/);
  });
