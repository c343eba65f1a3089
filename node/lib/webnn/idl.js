// WebIDL's conversions (https://webidl.spec.whatwg.org/) of what callers pass, as far as WebNN needs them. `what`
// names the value in messages: "matmul: parameter 1".
import { wellFormed } from '../text.js';
import { enums } from './operators.js';

/** What is ahead of the specification, off until headrace/webnn/extensions turns it on. */
export const ahead = { isOn: false };

export function isObject(value) {
  return (typeof value === 'object' && value !== null) || typeof value === 'function';
}

export function requireArguments(call, given, needed) {
  if (given < needed) throw new TypeError(`${call}: ${given} arguments given, ${needed} are needed`);
}

/** ToNumber, which takes neither BigInts nor Symbols. */
function toPlainNumber(value, what) {
  if (typeof value === 'bigint' || typeof value === 'symbol')
    throw new TypeError(`${what} is a ${typeof value}; a number is needed`);
  return +value;
}

/** [EnforceRange] of an integer type. */
function enforceRange(value, what, least, most) {
  const number = toPlainNumber(value, what);
  if (!Number.isFinite(number)) throw new TypeError(`${what} is ${number}; a finite integer is needed`);
  const integer = Math.trunc(number);
  if (integer < least || integer > most)
    throw new TypeError(`${what} is ${integer}; it must lie between ${least} and ${most}`);
  return integer + 0; // no negative zero
}

export const toIndex = (value, what) => enforceRange(value, what, 0, 0xffffffff);
/** [EnforceRange] of what C++ has as int. */
export const toPlainInteger = (value, what) => enforceRange(value, what, 0, 0x7fffffff);
export const toLong = (value, what) => enforceRange(value, what, -0x80000000, 0x7fffffff);
/** unsigned long without [EnforceRange] wraps around. */
export const toUnsignedLong = (value, what) => toPlainNumber(value, what) >>> 0;

export function toReal(value, what) {
  const number = toPlainNumber(value, what);
  if (!Number.isFinite(number)) throw new TypeError(`${what} is ${number}; a finite number is needed`);
  return number;
}

export function toFloat(value, what) {
  return toReal(Math.fround(toReal(value, what)), what);
}

/** (bigint or unrestricted double): negating twice is ToNumeric. */
export function toNumber(value, what) {
  if (typeof value === 'symbol') throw new TypeError(`${what} is a symbol; a number is needed`);
  return typeof value === 'bigint' || typeof value === 'number' ? value : -(-value);
}

function toText(value, what) {
  if (typeof value === 'symbol') throw new TypeError(`${textOf(what)} is a symbol; a string is needed`);
  return `${value}`;
}

export const toUSVString = (value, what) => wellFormed(toText(value, what));

export function toEnum(type, value, what) {
  const text = toText(value, what);
  if (!enums[type].includes(text))
    throw new TypeError(`${what} is "${printable(text)}"; ${type} has ${enums[type].join(', ')}`);
  return text;
}

/** sequence<T>. A method of null or undefined means that the object has none. */
export function toSequence(value, what, convert) {
  const method = isObject(value) ? value[Symbol.iterator] : undefined;
  if (method === undefined || method === null) throw new TypeError(`${what} is not a sequence`);
  return sequenceOf(value, method, what, convert);
}

/** By hand, as an iterator whose item is refused is not closed: for-of would. */
function sequenceOf(value, method, what, convert) {
  if (typeof method !== 'function') throw new TypeError(`${what} is not a sequence: it has no iterator`);
  const isStep = (result) => {
    if (isObject(result)) return true;
    throw new TypeError(`${what} has an iterator that gives no objects`);
  };
  const iterator = Reflect.apply(method, value, []);
  const next = isStep(iterator) && iterator.next;
  const items = [];
  for (;;) {
    const step = Reflect.apply(next, iterator, []);
    if (isStep(step) && step.done) return items;
    items.push(convert(step.value, `${what}[${items.length}]`));
  }
}

/** Objects may convert to numbers; what does not is somebody's open extent. */
function toClosedDimension(object, what) {
  const number = toPlainNumber(object, what);
  if (Number.isNaN(number))
    throw new TypeError(
      `${what} is an object; a number is needed, and open dimensions, { name, maxSize }, need "headrace/webnn/extensions"`,
    );
  return toIndex(number, what);
}

/** Ahead of the specification: a number, or {name, maxSize} for an extent that a dispatch decides. */
export function toDimension(value, what) {
  if (typeof value === 'string' && Number.isNaN(Number(value)))
    throw new TypeError(
      `${what} is "${printable(value)}"; a number is needed, or, with "headrace/webnn/extensions", { name, maxSize }`,
    );
  if (!isObject(value)) return toIndex(value, what);
  if (!ahead.isOn) return toClosedDimension(value, what);
  const name = member(value, 'name', what);
  if (typeof name !== 'string' || name === '')
    throw new TypeError(`${what}: the name is ${JSON.stringify(name) ?? String(name)}; a text is needed`);
  const unknown = Object.keys(value).find((key) => key !== 'name' && key !== 'maxSize');
  if (unknown !== undefined)
    throw new TypeError(`${what} has no "${printable(unknown)}"; there are name and maxSize`);
  const most = value.maxSize ?? undefined;
  return {
    name: toUSVString(name, `${what}: name`),
    maxSize: most === undefined ? most : enforceRange(most, `${what}: maxSize`, 1, 0x7fffffff),
  };
}

/** (unsigned long or sequence<unsigned long>), both [EnforceRange]. */
export function toIndexOrIndices(value, what) {
  if (isObject(value)) {
    const method = value[Symbol.iterator];
    if (method !== undefined && method !== null) return sequenceOf(value, method, what, toIndex);
  }
  return toIndex(value, what);
}

export function toDictionary(value, what) {
  if (value === undefined || value === null) return {};
  if (!isObject(value)) throw new TypeError(`${what} is not an object`);
  return value;
}

/** Names of values that are costly to make are functions, which only a failure calls. */
export const textOf = (what) => (typeof what === 'function' ? what() : what);

/** record<USVString, T> as a Map. */
export function toRecord(value, what, convert) {
  if (!isObject(value)) throw new TypeError(`${what} is not an object`);
  const result = new Map();
  for (const key of Reflect.ownKeys(value)) {
    const property = Reflect.getOwnPropertyDescriptor(value, key);
    if (!property || !property.enumerable) continue;
    const name = toUSVString(key, () => `${what}: the name of a member`);
    result.set(
      name,
      convert(value[key], () => `${what}["${printable(name)}"]`),
    );
  }
  return result;
}

function member(dictionary, name, what) {
  const value = dictionary[name];
  if (value === undefined) throw new TypeError(`${what}: ${name} is missing`);
  return value;
}

/** MLOperandDescriptor; members are read in the order of their names, as WebIDL has it. */
export function toOperandDescriptor(value, what, toExtent = toIndex) {
  const dictionary = toDictionary(value, what);
  return {
    dataType: toEnum('MLOperandDataType', member(dictionary, 'dataType', what), `${what}: dataType`),
    shape: toSequence(member(dictionary, 'shape', what), `${what}: shape`, toExtent),
  };
}

export function toTensorDescriptor(value, what) {
  const descriptor = toOperandDescriptor(value, what);
  return { ...descriptor, readable: Boolean(value.readable), writable: Boolean(value.writable) };
}

/** Without control characters, with which a label could make a message look like another one. */
export function printable(text) {
  return text.replace(/[\p{Cc}\p{Cf}\u2028\u2029]/gu, (c) => `\\u{${c.codePointAt(0).toString(16)}}`);
}
