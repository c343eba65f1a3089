// Checks of what callers pass. `what` names the value in messages.
import { withArticle } from '../text.js';

/** "a number", "null", "a Float32Array" */
export function kindOf(value) {
  if (value === null || value === undefined) return `${value}`;
  if (Array.isArray(value)) return 'an array';
  if (typeof value !== 'object') return `a ${typeof value}`;
  const name = Object.prototype.toString.call(value).slice(8, -1);
  return name === 'Object' ? 'an object' : withArticle(name);
}

export const isRecord = (value) =>
  typeof value === 'object' && value !== null && !Array.isArray(value) && !ArrayBuffer.isView(value);

export function checkText(value, what) {
  if (typeof value !== 'string') throw new TypeError(`${what} is ${kindOf(value)}; a string is needed`);
  return value;
}

export function checkBoolean(value, what) {
  if (typeof value !== 'boolean') throw new TypeError(`${what} is ${kindOf(value)}; true or false is needed`);
  return value;
}

export function checkInteger(value, what, least = 0, most = Number.MAX_SAFE_INTEGER) {
  if (typeof value !== 'number') throw new TypeError(`${what} is ${kindOf(value)}; a number is needed`);
  if (!Number.isInteger(value) || value < least || value > most)
    throw new RangeError(`${what} is ${value}; it must be a whole number between ${least} and ${most}`);
  return value;
}

export function checkTexts(value, what) {
  if (!Array.isArray(value))
    throw new TypeError(`${what} is ${kindOf(value)}; an array of strings is needed`);
  return value.map((item, i) => checkText(item, `${what}[${i}]`));
}

/** An object that has no other keys than these; undefined is an empty one. */
export function checkOptions(value, what, known) {
  if (value === undefined) return {};
  const [is, has] = what.endsWith('options') ? ['are', 'have'] : ['is', 'has'];
  if (!isRecord(value)) throw new TypeError(`${what} ${is} ${kindOf(value)}; an object is needed`);
  const unknown = Object.keys(value).find((key) => !known.includes(key));
  if (unknown !== undefined)
    throw new TypeError(`${what} ${has} no "${unknown}"; there are ${known.join(', ')}`);
  return value;
}
