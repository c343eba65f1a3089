// Every operation of the specification's IDL takes and refuses what WebIDL's conversions take and refuse, for each
// parameter and each member of its dictionaries.
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { calls, made } from './calls.mjs';
import {
  assertTypeError,
  constant,
  idl,
  interfaces,
  isPromise,
  newBuilder,
  objects,
  operationsOf,
  outcome,
  rightArguments,
  vector,
  x,
} from './idl_calls.mjs';
import { membersOf } from './webidl.mjs';

const resolved = (type) => (idl.typedefs[type.name] ? { ...idl.typedefs[type.name], attributes: [] } : type);
const symbol = Symbol('s');
const wrongIntegers = [NaN, Infinity, -Infinity, 'one', 1n, symbol, {}, { valueOf: () => 2 ** 40 }];
const wrongDoubles = [NaN, Infinity, -Infinity, 'one', 1n, symbol, {}];
const noObjects = [5, 'text', true, symbol, 1n];

/** Values that WebIDL's conversion to a type refuses with a TypeError. */
function refusedBy(given) {
  const type = resolved(given);
  const isEnforced = type.attributes.includes('EnforceRange');
  if (interfaces[type.name]) return [...noObjects, null, {}, [], navigator];
  if (idl.enums[type.name]) return ['none', '', 5, null, symbol, {}];
  if (idl.dictionaries[type.name]) {
    const members = membersOf(idl, type.name);
    return members.some(({ isRequired }) => isRequired) ? [...noObjects, null, {}] : noObjects;
  }
  switch (type.name) {
    case 'boolean':
      return [];
    case 'unsigned long':
      return isEnforced ? [...wrongIntegers, -1, 2 ** 32] : [1n, symbol];
    case 'long':
      return [...wrongIntegers, -(2 ** 31) - 1, 2 ** 31];
    case 'double':
      return wrongDoubles;
    case 'float':
      return [...wrongDoubles, 3.5e38, -3.5e38];
    case 'USVString':
      return [symbol];
    case 'AllowSharedBufferSource':
      return [...noObjects, null, {}, [1, 2], new Map()];
    case 'sequence':
      return [
        ...noObjects,
        null,
        {},
        { length: 1, 0: 1 },
        { [Symbol.iterator]: 5 },
        ...refusedBy(type.of[0]).map((item) => [item]),
      ];
    case 'record':
      return [...noObjects, null, ...refusedBy(type.of[1]).map((value) => ({ x: value })), { [symbol]: 1 }];
    default:
      assert.equal(type.name, 'or');
      if (type.of.some(({ name }) => name === 'bigint')) return [symbol, { valueOf: () => symbol }];
      return ['one', symbol, {}, NaN, -1, 1n, ...refusedBy(type.of[1]).filter(Array.isArray)];
  }
}

/** The value in other forms that WebIDL converts to the same. */
function formsOf(given, value) {
  const type = resolved(given);
  if (interfaces[type.name]) return [value];
  if (idl.enums[type.name]) return [value, { toString: () => value }, [value]];
  if (idl.dictionaries[type.name])
    return [
      value,
      Object.assign(() => {}, value),
      Object.create(value),
      new Proxy(value, {}),
      ...membersOf(idl, type.name)
        .filter(({ name }) => value[name] !== undefined)
        .flatMap((member) =>
          formsOf(member.type, value[member.name]).map((form) => ({ ...value, [member.name]: form })),
        ),
    ];
  const again = (items) => ({
    *[Symbol.iterator]() {
      yield* items;
    },
  });
  switch (type.name) {
    case 'boolean':
      return value ? [true, 1, 'false', {}, symbol, -1n] : [false, 0, '', null, NaN, 0n];
    case 'long':
    case 'unsigned long':
      return [value, `${value}`, value + 0.9, { valueOf: () => value }, [value]];
    case 'double':
    case 'float':
      return [value, ` ${value} `, { valueOf: () => value }];
    case 'USVString':
      return [value, { toString: () => value }];
    case 'sequence':
      return [value, again(value), Object.assign(() => {}, again(value)), Object.freeze([...value])];
    case 'record':
      return [
        value,
        Object.assign(() => {}, value),
        Object.defineProperty({ ...value }, 'hidden', { value: 1 }),
      ];
    case 'AllowSharedBufferSource': {
      const bytes = new Uint8Array(value.buffer);
      const shared = new Uint8Array(new SharedArrayBuffer(bytes.length));
      shared.set(bytes);
      return [value, value.buffer, bytes, shared, shared.buffer];
    }
    default:
      return typeof value === 'number' ? [value, `${value}`, { valueOf: () => value }] : [value];
  }
}

/** Calls of an overload: [receiver, arguments], made anew for each use. */
function callsOf(name, method, { parameters }) {
  if (name !== 'MLGraphBuilder') {
    const call = rightArguments(name, method);
    return () => [
      objects[name],
      method === 'readTensor' && parameters.length === 2 ? [x, new Float32Array(2)] : call,
    ];
  }
  if (method === 'constant' && parameters.length === 1) return () => [newBuilder(), [constant]];
  if (method === 'constant' && parameters[0].type.name === 'MLOperandDataType')
    return () => [newBuilder(), ['float32', 1]];
  return () => {
    const builder = newBuilder();
    if (calls[method]) return [builder, made(builder, calls[method])];
    if (method !== 'build') return [builder, rightArguments(name, method)];
    return [builder, [{ y: builder.abs(builder.input('x', vector)) }]];
  };
}

/** The call with another value of a parameter, or of a member of its last, a dictionary. */
function changed(args, index, value, member) {
  const copy = [...args];
  copy[index] = member ? { ...copy[index], [member]: value } : value;
  return copy;
}

/** Parameters, and members of optional dictionaries: [what, index, member or undefined, type]. */
const placesOf = ({ parameters }) =>
  parameters.flatMap(({ name, type }, index) => [
    [name, index, undefined, type],
    ...(idl.dictionaries[type.name] ? membersOf(idl, type.name) : []).map((member) => [
      `${name}.${member.name}`,
      index,
      member.name,
      member.type,
    ]),
  ]);
const text = (value) => {
  try {
    return JSON.stringify(value, (_, item) =>
      /^(bigint|symbol|undefined)$/.test(typeof item) ? String(item) : item,
    );
  } catch {
    return String(value);
  }
};

for (const name of Object.keys(objects))
  for (const [method, overloads] of operationsOf(name))
    for (const overload of overloads) {
      if (overload.parameters.length === 0) continue;
      const { parameters } = overload;
      const start = callsOf(name, method, overload);
      const title = `${name}.${method}(${parameters.map((one) => one.name).join(', ')})`;

      test(`${title} refuses what its types refuse`, async () => {
        for (const [what, index, member, type] of placesOf(overload))
          for (const wrong of refusedBy(type)) {
            // These are the arguments of another overload.
            if (
              method === 'constant' &&
              index === 0 &&
              !member &&
              parameters.length === 2 &&
              wrong === 'none'
            )
              continue;
            const [receiver, args] = start();
            await assertTypeError(
              () => receiver[method](...changed(args, index, wrong, member)),
              isPromise(overload),
              `${what} is ${text(wrong)}`,
            );
          }
      });

      test(`${title} takes what its types take`, async () => {
        const seen = (value) =>
          value instanceof MLOperand
            ? `${value.dataType}[${value.shape}]`
            : Array.isArray(value)
              ? value.map(seen)
              : `${value}`;
        const [receiver, args] = start();
        const expected = await outcome(() => receiver[method](...args), isPromise(overload));
        assert.ok(!expected.error, `${expected.error}`);
        for (const [what, index, member, type] of placesOf(overload)) {
          // Objects there are another overload's.
          if (method === 'constant' && what === 'dataType') continue;
          const length = start()[1].length;
          const given = member ? start()[1][index]?.[member] : start()[1][index];
          if (index >= length || given === undefined) continue;
          for (let form = 0; form < formsOf(type, given).length; form += 1) {
            const [again, others] = start();
            const value = formsOf(type, member ? others[index][member] : others[index])[form];
            const result = await outcome(
              () => again[method](...changed(others, index, value, member)),
              isPromise(overload),
            );
            assert.ok(!result.error, `${what} in form ${form}: ${result.error}`);
            assert.deepEqual(seen(result.value), seen(expected.value), `${what} in form ${form}`);
          }
        }
      });

      const last = parameters.at(-1);
      if (last && idl.dictionaries[last.type.name] && name === 'MLGraphBuilder' && calls[method])
        test(`${title} reads the members of its options in WebIDL's order`, () => {
          const reads = [];
          const [builder, args] = start();
          const options = new Proxy({}, { get: (_, member) => void reads.push(member) });
          try {
            builder[method](...args.slice(0, parameters.length - 1), options);
          } catch (error) {
            assert.ok(error instanceof TypeError, `${error}`); // some need an option
          }
          assert.deepEqual(
            reads,
            membersOf(idl, last.type.name).map((member) => member.name),
          );
        });
    }

test('an iterator of a sequence is asked until it is done, and not closed where an item is refused', () => {
  const said = [];
  const sequence = (...items) => ({
    [Symbol.iterator]: () => ({
      next: () => {
        said.push('next');
        return items.length > 0 ? { value: items.shift(), done: false } : { done: true };
      },
      return: () => void said.push('return'),
    }),
  });
  const input = (shape) => newBuilder().input('x', { dataType: 'float32', shape });
  assert.deepEqual(input(sequence(2, 3)).shape, [2, 3]);
  assert.throws(() => input(sequence(-1, 3)), TypeError);
  assert.deepEqual(said, ['next', 'next', 'next', 'next']);
  for (const wrong of [() => 5, () => null, () => ({}), () => ({ next: () => 5 })])
    assert.throws(() => input({ [Symbol.iterator]: wrong }), TypeError);
});
