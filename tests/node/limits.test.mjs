// opSupportLimits: the members of the specification's IDL, and its tables of data types and ranks.
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { enums } from '../../node/lib/webnn/operators.js';
import { context, idl, read, skip } from './idl_calls.mjs';
import { membersOf } from './webidl.mjs';

test('opSupportLimits has every member of the IDL', { skip }, () => {
  const limits = context.opSupportLimits();
  const { preferredInputLayout, maxTensorByteLength, input, constant: of, output, ...operators } = limits;
  assert.ok(idl.enums.MLInputOperandLayout.includes(preferredInputLayout));
  assert.ok(Number.isSafeInteger(maxTensorByteLength));
  const declared = membersOf(idl, 'MLOpSupportLimits');
  assert.deepEqual(Object.keys(operators).sort(), declared.map(({ name }) => name).sort());
  const single = {
    MLSingleInputSupportLimits: ['input', 'output'],
    MLBinarySupportLimits: ['a', 'b', 'output'],
  };
  for (const { name, type } of declared) {
    const parts = idl.dictionaries[type.name]
      ? membersOf(idl, type.name).map((part) => part.name)
      : single[type.name];
    assert.deepEqual(Object.keys(operators[name]).sort(), [...parts].sort(), name);
  }
  for (const part of [input, of, output, ...Object.values(operators).flatMap((one) => Object.values(one))]) {
    assert.deepEqual(Object.keys(part), ['dataTypes', 'rankRange']);
    assert.ok(
      part.dataTypes.length > 0 && part.dataTypes.every((type) => enums.MLOperandDataType.includes(type)),
    );
    const { min, max } = part.rankRange;
    assert.ok(Number.isInteger(min) && min >= 0 && max >= min);
  }
});

/** A dictionary's members in the order in which they were made, and those of what it holds. */
function assertInOrder(value, where) {
  if (typeof value !== 'object' || Array.isArray(value)) return;
  const names = Object.keys(value);
  assert.deepEqual(names, [...names].sort(), where);
  for (const name of names) assertInOrder(value[name], `${where}.${name}`);
}

test("opSupportLimits has its members in WebIDL's order", () => {
  assertInOrder(context.opSupportLimits(), 'limits');
});

/** The rows of the tables: [operator, operand, allowed types, required types, allowed ranks, required ranks]. */
function* requirements() {
  let names = [];
  for (const line of read('webnn_required_types.md').split('\n')) {
    if (line.startsWith('## ')) {
      names = line.slice(3).trim().split('/');
      if (line.includes('binary')) names = ['add', 'sub', 'mul', 'div', 'max', 'min', 'pow'];
    }
    if (!line.startsWith('|') || /^\|(---| operand)/.test(line)) continue;
    const cells = line.split('|').map((cell) => cell.trim());
    for (let at = 1; at + 4 < cells.length; at += 5)
      for (const name of names) yield [name, ...cells.slice(at, at + 5)];
  }
}
const partOf = (operand) => operand.replace(/'s list\/items$/, '').replace(/^outputs\[(\d)\].*/, 'output$1');
const numbers = (range, most) => range.replace('N', most).split(' to ').map(Number);

test(
  'opSupportLimits has the types and ranks that the specification requires, and no others',
  { skip },
  () => {
    const limits = context.opSupportLimits();
    const all = idl.enums.MLOperandDataType;
    let count = 0;
    for (const [name, operand, allowed, required, allowedRanks, ranks] of requirements()) {
      count += 1;
      const what = `${name}: ${operand}`;
      const part = limits[name][partOf(operand)];
      assert.ok(part, what);
      for (const type of required.split(', ')) assert.ok(part.dataTypes.includes(type), `${what}: ${type}`);
      const source = /^same as (\w+)/.exec(allowed)?.[1];
      const taken = source ? limits[name][source].dataTypes : allowed.split(', ');
      if (allowed !== 'any' && /^(same as \w+|\w+\d+(, \w+\d+)*)$/.test(allowed))
        for (const type of part.dataTypes.filter((one) => all.includes(one)))
          assert.ok(taken.includes(type), `${what} has ${type}`);
      const [low, high = low] = numbers(ranks, 5);
      assert.ok(
        part.rankRange.min <= low && part.rankRange.max >= high,
        `${what}: ranks ${JSON.stringify(part.rankRange)}`,
      );
      if (!/^[\dN]+( to [\dN]+)?$/.test(allowedRanks) || allowedRanks === 'N') continue;
      const [least_, most = least_] = numbers(allowedRanks, 8);
      assert.ok(
        part.rankRange.min >= least_ && part.rankRange.max <= most,
        `${what}: ranks ${JSON.stringify(part.rankRange)}`,
      );
    }
    assert.ok(count > 200, `${count} rows`);
  },
);
