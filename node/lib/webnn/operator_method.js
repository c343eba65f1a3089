// A builder's method for one row of the table of operators.
import { castNumber, describe, isOpen } from './data_types.js';
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

function checkRanks(isRight, wanted) {
  return ({ input, scale, zeroPoint }, title) => {
    const rank = input.descriptor.shape.length;
    for (const [name, { descriptor }] of Object.entries({ scale, zeroPoint }))
      if (!isRight(descriptor.shape.length, rank))
        throw new TypeError(`${title}: ${name} is ${describe(descriptor)}; it must have ${wanted}, ${rank}`);
  };
}

/** Indices have the input's extents but along the axis. */
function checkIndices({ input, indices, axis = 0 }, title) {
  const [shape, given] = [input, indices].map(({ descriptor }) => descriptor.shape);
  if (shape.length !== given.length || axis >= shape.length) return; // C++ refuses it
  if (shape.some((size, i) => i !== axis && !isOpen(size) && !isOpen(given[i]) && size !== given[i]))
    throw new TypeError(
      `${title}: indices must have the input's extents but along axis ${axis}; ` +
        `input is ${describe(input.descriptor)}, indices is ${describe(indices.descriptor)}`,
    );
}

/** Both of outputSizes are rounded down, or both up. */
function checkOutputSizes(values, title) {
  const { outputSizes, layout, padding = [0, 0, 0, 0], strides = [1, 1], dilations = [1, 1] } = values;
  if (!outputSizes) return;
  const { shape } = values.input.descriptor;
  const sizes = layout === 'nhwc' ? shape.slice(1, 3) : shape.slice(2);
  const { windowDimensions = sizes } = values;
  const exact = sizes.map((size, i) => {
    const rest = size + padding[2 * i] + padding[2 * i + 1] - (windowDimensions[i] - 1) * dilations[i] - 1;
    return rest / strides[i] + 1;
  });
  const [down, up] = [Math.floor, Math.ceil].map((round) => exact.map(round));
  const are = (wanted) => outputSizes.every((size, i) => size === wanted[i]);
  const isEither = outputSizes.every((size, i) => size === down[i] || size === up[i]); // C++ refuses others
  if (isEither && !are(down) && !are(up))
    throw new TypeError(
      `${title}: options.outputSizes is [${outputSizes.join(', ')}]; it must be [${down.join(', ')}] or [${up.join(', ')}]`,
    );
}

/** What an operator demands beyond types and ranks. */
const details = {
  averagePool2d: checkOutputSizes,
  l2Pool2d: checkOutputSizes,
  maxPool2d: checkOutputSizes,
  clamp(values) {
    const { dataType } = values.input.descriptor;
    // What is infinite bounds nothing, and integers have none to cast it to.
    for (const name of ['minValue', 'maxValue'])
      if (values[name] !== undefined && values[name] !== Infinity && values[name] !== -Infinity)
        values[name] = castNumber(dataType, values[name]);
  },
  concat({ inputs: [first, ...others] }, title) {
    if (!first) throw new TypeError(`${title}: inputs is empty; give an operand at least`);
    const wrong = others.findIndex(({ descriptor }) => descriptor.dataType !== first.descriptor.dataType);
    if (wrong >= 0)
      throw new TypeError(
        `${title}: inputs[${wrong + 1}] is ${describe(others[wrong].descriptor)} and inputs[0] ` +
          `${describe(first.descriptor)}; they must have one data type`,
      );
  },
  pad(values) {
    if (values.value !== undefined) values.value = castNumber(values.input.descriptor.dataType, values.value);
  },
  gatherElements: checkIndices,
  scatterElements: checkIndices,
  // The conformance cases have scales of fewer dimensions, which are added in front.
  dequantizeLinear: checkRanks((rank, most) => rank <= most, "at most the input's rank"),
  quantizeLinear: checkRanks((rank, wanted) => rank === wanted, "the input's rank"),
  resample2d({ scales }, title) {
    if (scales && (scales.length !== 2 || scales.some((scale) => scale <= 0)))
      throw new TypeError(
        `${title}: options.scales is [${scales.join(', ')}]; it must have two numbers greater than 0`,
      );
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
function labelled(error, name, options) {
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
      throw labelled(error, row.name, args[parameters.length]);
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
