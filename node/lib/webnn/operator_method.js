// A builder's method for one row of the table of operators.
import { castNumber, describe } from './data_types.js';
import {
  isObject,
  printable,
  requireArguments,
  toDictionary,
  toEnum,
  toFloat,
  toDimension,
  toIndex,
  toIndexOrIndices,
  toLong,
  toNumber,
  toReal,
  toSequence,
  toUSVString,
  toUnsignedLong,
} from './idl.js';
import { wellFormed } from '../text.js';
import { noteSizes, withSizes } from './open_extents.js';
import { toOperand } from './operand.js';

/** By kind: WebIDL's conversion, and the type under which the backend takes the value. */
const kinds = {
  operand: [toOperand],
  operands: [(value, what) => toSequence(value, what, toOperand)],
  boolean: [Boolean, 'boolean'],
  index: [toIndex, 'integer'],
  long: [toLong, 'integer'],
  unsignedLong: [toUnsignedLong, 'integer'],
  number: [toNumber, 'number'],
  real: [toReal, 'real'],
  reals: [(value, what) => toSequence(value, what, toFloat), 'reals'],
  dimensions: [(value, what) => toSequence(value, what, toDimension), 'dimensions'],
  indices: [(value, what) => toSequence(value, what, toIndex), 'integers'],
  unsignedLongs: [(value, what) => toSequence(value, what, toUnsignedLong), 'integers'],
  splits: [toIndexOrIndices, 'integers'],
  MLOperandDataType: [(value, what) => toEnum('MLOperandDataType', value, what), 'data_type'],
};

function kindOf(name) {
  if (kinds[name]) return kinds[name];
  if (!name.endsWith('[]')) return [(value, what) => toEnum(name, value, what), 'text'];
  const item = name.slice(0, -2);
  return [(value, what) => toSequence(value, what, (one, where) => toEnum(item, one, where)).join(), 'text'];
}

function checkOperand(operand, builder, { types, ranks: [least, most] }, what) {
  if (operand.builder !== builder) throw new TypeError(`${what} belongs to another builder`);
  const { dataType, shape } = operand.descriptor;
  if (!types.includes(dataType))
    throw new TypeError(
      `${what} is ${describe(operand.descriptor)}; allowed data types: ${types.join(', ')}`,
    );
  if (shape.length < least || shape.length > most)
    throw new TypeError(
      `${what} is ${describe(operand.descriptor)}; its rank must lie between ${least} and ${most}`,
    );
}

/** As many parts of one size as a number says. */
function partsOf(count, operand, axis, title) {
  const { shape } = operand.descriptor;
  const isWhole = (extent) => typeof extent === 'number' && extent % count === 0;
  const input = `input is ${describe(operand.descriptor)}`;
  if (axis >= shape.length)
    throw new TypeError(`${title}: axis is ${axis}; ${input}, which has rank ${shape.length}`);
  if (count === 0 || !isWhole(shape[axis]))
    throw new TypeError(
      `${title}: splits is ${count}; it must divide the extent ${shape[axis]?.name ?? shape[axis]} of the axis ${axis}; ${input}`,
    );
  return new Array(count).fill(shape[axis] / count);
}

/** What WebIDL leaves to an operator; the rules beyond types and ranks are the C++ builder's. */
const details = {
  clamp(values) {
    const { dataType } = values.input.descriptor;
    // What is infinite bounds nothing, and integers have none to cast it to.
    for (const name of ['minValue', 'maxValue'])
      if (values[name] !== undefined && values[name] !== Infinity && values[name] !== -Infinity)
        values[name] = castNumber(dataType, values[name]);
  },
  pad(values) {
    if (values.value !== undefined) values.value = castNumber(values.input.descriptor.dataType, values.value);
  },
  split(values, title) {
    if (!Array.isArray(values.splits))
      values.splits = partsOf(values.splits, values.input, values.axis ?? 0, title);
  },
};

/** The label as plain data; undefined where to look at it would run a getter, or fails. */
function plainLabel(options) {
  try {
    const label = Reflect.getOwnPropertyDescriptor(options, 'label')?.value;
    return typeof label === 'string' && label !== '' ? label : undefined;
  } catch {
    return undefined;
  }
}

/** WebIDL reads the label after the parameters. A refusal of ours of these has it, too; the caller's errors stay. */
function labeled(error, name, options) {
  const lead = `${name}: `;
  const isOurs = error instanceof TypeError && `${error.message}`.startsWith(lead);
  const label = isOurs && isObject(options) ? plainLabel(options) : undefined;
  if (label === undefined) return error;
  return new TypeError(`${name} (${printable(wellFormed(label))}): ${error.message.slice(lead.length)}`);
}

/** Parameters by position, then the dictionary: its base's label first, then its members by name. */
function converter(row) {
  const plan = (entries) => entries.map(([name, kind]) => [name, kindOf(kind)[0]]);
  const parameters = plan(row.parameters);
  const options = plan([...row.options].sort(([a], [b]) => (a < b ? -1 : 1)));
  return (args) => {
    const values = {};
    try {
      parameters.forEach(([name, convert], i) => {
        values[name] = convert(args[i], `${row.name}: ${name}`);
      });
    } catch (error) {
      throw labeled(error, row.name, args[parameters.length]);
    }
    const dictionary = toDictionary(args[parameters.length], `${row.name}: options`);
    const label =
      dictionary.label === undefined
        ? ''
        : printable(toUSVString(dictionary.label, `${row.name}: options.label`));
    const title = label ? `${row.name} (${label})` : row.name;
    for (const [name, convert] of options) {
      const value = dictionary[name];
      if (value !== undefined) values[name] = convert(value, `${title}: options.${name}`);
    }
    return { values, label, title };
  };
}

/**
 * `stateOf` gives a builder's state or throws; `add` takes the operands' numbers (null: absent), the options as
 * [name, type, value, ...] of the backend, and the operands given: [name, descriptor].
 */
export function operatorMethod(row, stateOf, checkCanBuild, add) {
  const convert = converter(row);
  const entries = [...row.parameters, ...row.options];
  const needed = row.parameters.length;
  const isOperand = (kind) => kind === 'operand' || kind === 'operands';
  const places = Object.keys(row.operands);
  const shapes = row.parameters.filter(([, kind]) => kind === 'dimensions').map(([name]) => name);
  const attributes = entries
    .filter(([, kind]) => !isOperand(kind))
    .map(([name, kind, target]) => [name, target, kindOf(kind)[1]]);
  const { [row.name]: method } = {
    [row.name](...args) {
      const state = stateOf(this);
      requireArguments(row.name, args.length, needed);
      const { values, label, title } = convert(args);
      checkCanBuild(state, title);
      const operands = [];
      const named = [];
      for (const place of places) {
        const given = values[place];
        const list = given === undefined ? [] : Array.isArray(given) ? given : [given];
        list.forEach((operand, i) => {
          const name = Array.isArray(given) ? `${place}[${i}]` : place;
          checkOperand(operand, state, row.operands[place], `${title}: ${name}`);
          operands.push(operand.id);
          named.push([name, operand.descriptor]);
        });
        if (given === undefined) operands.push(null);
      }
      details[row.name]?.(values, title);
      for (const name of shapes) values[name] = withSizes(state.sizes, values[name], `${title}: ${name}`);
      const options = attributes.flatMap(([name, target, type]) =>
        values[name] === undefined ? [] : [target, type, values[name]],
      );
      const made = add(state, title, operands, options, label, named);
      for (const name of shapes) noteSizes(state.sizes, values[name]);
      return made;
    },
  };
  Object.defineProperty(method, 'length', { value: needed, configurable: true });
  return method;
}
