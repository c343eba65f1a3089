// Every interface, attribute, operation and enumeration of the specification's IDL: that it is there, shaped and bound
// as WebIDL shapes and binds it.
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { enums } from '../../node/lib/webnn/operators.js';
import {
  assertTypeError,
  context,
  idl,
  interfaces,
  isPromise,
  least,
  mixin,
  newBuilder,
  objects,
  operationsOf,
  rightArguments,
  skip,
  vector,
} from './idl_calls.mjs';

const isConstructor = (value) => {
  try {
    Reflect.construct(Object, [], value);
    return true;
  } catch {
    return false;
  }
};
const flags = ({ writable, enumerable, configurable }) => [writable, enumerable, configurable];

test('the IDL has what is looked for', { skip }, () => {
  assert.deepEqual(Object.keys(interfaces).sort(), Object.keys(objects).sort());
  assert.equal(operationsOf('MLGraphBuilder').size, 95 + 3);
});

test('navigator.ml is an attribute as the mixin has it', { skip }, async () => {
  assert.deepEqual(
    mixin.members.map(({ name, attributes }) => [name, attributes]),
    [['ml', ['SecureContext', 'SameObject']]],
  );
  const prototype = Object.getPrototypeOf(navigator);
  const { get, set, enumerable, configurable } = Object.getOwnPropertyDescriptor(prototype, 'ml');
  assert.deepEqual(
    [get.name, get.length, set, enumerable, configurable],
    ['get ml', 0, undefined, true, true],
  );
  assert.ok(!isConstructor(get));
  for (const receiver of [undefined, null, {}, prototype, navigator.ml])
    assert.throws(() => get.call(receiver), TypeError);
  assert.equal(navigator.ml, navigator.ml);
});

for (const [name, { members }] of Object.entries(interfaces)) {
  const type = globalThis[name];
  const object = objects[name];

  test(`${name} is an interface object with a prototype object`, () => {
    assert.deepEqual(flags(Object.getOwnPropertyDescriptor(globalThis, name)), [true, false, true]);
    assert.deepEqual(flags(Object.getOwnPropertyDescriptor(type, 'prototype')), [false, false, false]);
    assert.deepEqual(flags(Object.getOwnPropertyDescriptor(type.prototype, 'constructor')), [
      true,
      false,
      true,
    ]);
    assert.equal(type.prototype.constructor, type);
    assert.equal(Object.getPrototypeOf(type), Function.prototype);
    assert.equal(Object.getPrototypeOf(type.prototype), Object.prototype);
    assert.equal(Object.getPrototypeOf(object), type.prototype);
    const own = (property) => {
      const { value, ...rest } = Object.getOwnPropertyDescriptor(type, property);
      return [value, ...flags(rest)];
    };
    const constructors = members.filter(({ kind }) => kind === 'constructor');
    assert.deepEqual(own('name'), [name, false, false, true]);
    assert.deepEqual(own('length'), [constructors.length ? least(constructors) : 0, false, false, true]);
    assert.deepEqual(Reflect.ownKeys(type).sort(), ['length', 'name', 'prototype']);
    const tag = Object.getOwnPropertyDescriptor(type.prototype, Symbol.toStringTag);
    assert.deepEqual([tag.value, ...flags(tag)], [name, false, false, true]);
    assert.equal(`${object}`, `[object ${name}]`);
    assert.throws(() => type(context), TypeError);
    if (constructors.length === 0)
      for (const call of [
        () => new type(),
        () => new type(context),
        () => Reflect.construct(type, [], Object),
      ])
        assert.throws(call, {
          name: 'TypeError',
          message: 'Illegal constructor',
        });
  });

  test(`${name} has the members of the IDL and no others`, () => {
    const names = members.filter(({ kind }) => kind !== 'constructor').map((member) => member.name);
    const found = Reflect.ownKeys(type.prototype).filter(
      (key) => typeof key === 'string' && key !== 'constructor',
    );
    assert.deepEqual(found.sort(), [...new Set(names)].sort());
    assert.deepEqual(Reflect.ownKeys(object), name === 'ML' ? [Symbol.for('headrace.extensions')] : []);
  });

  for (const { name: member, type: of, attributes } of members.filter(({ kind }) => kind === 'attribute'))
    test(`${name}.${member} is an attribute`, async () => {
      const { get, set, ...rest } = Object.getOwnPropertyDescriptor(type.prototype, member);
      assert.deepEqual([rest.enumerable, rest.configurable, set], [true, true, undefined]);
      assert.deepEqual([get.name, get.length, isConstructor(get)], [`get ${member}`, 0, false]);
      for (const receiver of [undefined, null, 5, {}, type.prototype, navigator, navigator.ml])
        await assertTypeError(() => get.call(receiver), of.name === 'Promise', `${receiver}`);
      assert.throws(() => {
        'use strict';
        object[member] = 1;
      }, TypeError);
      const value = object[member];
      if (of.name === 'FrozenArray') assert.ok(Object.isFrozen(value));
      if (attributes.includes('SameObject') || /^(FrozenArray|Promise)$/.test(of.name))
        assert.equal(object[member], value);
    });

  for (const [method, overloads] of operationsOf(name))
    test(`${name}.${method} is an operation`, async () => {
      const property = Object.getOwnPropertyDescriptor(type.prototype, method);
      const { value } = property;
      assert.deepEqual(flags(property), [true, true, true]);
      const [named, count] = ['name', 'length'].map((key) => Object.getOwnPropertyDescriptor(value, key));
      assert.deepEqual([named.value, ...flags(named)], [method, false, false, true]);
      assert.deepEqual([count.value, ...flags(count)], [least(overloads), false, false, true]);
      assert.ok(!isConstructor(value) && !Object.hasOwn(value, 'prototype'));
      const returnsPromise = isPromise(overloads[0]);
      for (const receiver of [undefined, null, 5, {}, type.prototype, navigator])
        await assertTypeError(
          () => value.call(receiver, ...rightArguments(name, method)),
          returnsPromise,
          'receiver',
        );
      for (let given = 0; given < least(overloads); given += 1) {
        const some = rightArguments(name, method).slice(0, given);
        await assertTypeError(() => value.apply(object, some), returnsPromise, `${given} arguments`);
      }
    });
}

test('enumerations have the values of the IDL, data types those of 4 bits besides', { skip }, () => {
  const MLOperandDataType = [...idl.enums.MLOperandDataType, 'int4', 'uint4'];
  assert.deepEqual(enums, { ...idl.enums, MLOperandDataType });
});

test('every data type can be had, and operators say which they take', { skip }, async () => {
  for (const dataType of enums.MLOperandDataType)
    assert.equal((await context.createTensor({ dataType, shape: [2] })).dataType, dataType);
  const types = new Set(JSON.stringify(context.opSupportLimits()).match(/\bu?(?:int|float)\d+\b/g));
  assert.deepEqual([...types].sort(), [...enums.MLOperandDataType].sort());
});
