// node:assert/strict as far as tests/node uses it, in a page.

class AssertionError extends Error {}

function fail(message, otherwise) {
  throw message instanceof Error ? message : new AssertionError(message ?? otherwise);
}
const shown = (value) => {
  try {
    return JSON.stringify(value) ?? String(value);
  } catch {
    return Object.prototype.toString.call(value);
  }
};

function isSame(a, b) {
  if (Object.is(a, b)) return true;
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return false;
  if (Object.getPrototypeOf(a) !== Object.getPrototypeOf(b)) return false;
  if (a instanceof ArrayBuffer) return isSame(new Uint8Array(a), new Uint8Array(b));
  if (a instanceof Map || a instanceof Set) return isSame([...a], [...b]);
  const [names, others] = [Object.keys(a), Object.keys(b)];
  return names.length === others.length && names.every((name) => Object.hasOwn(b, name) && isSame(a[name], b[name]));
}

/** Whether an error is what a test expects: a class, a pattern, members, or a function that says so. */
function fits(error, expected) {
  if (expected === undefined) return true;
  if (expected instanceof RegExp) return expected.test(String(error));
  if (typeof expected === 'function')
    return expected.prototype !== undefined && error instanceof expected ? true : expected(error) === true;
  return Object.entries(expected).every(([name, value]) =>
    value instanceof RegExp ? value.test(error[name]) : isSame(error[name], value),
  );
}
const isText = (value) => typeof value === 'string';
function checkError(error, expected, message) {
  if (isText(expected)) return;
  let isExpected = false;
  try {
    isExpected = fits(error, expected);
  } catch {
    // a class called as a function
  }
  if (!isExpected) fail(message, `another error: ${error}`);
}

const assert = {
  ok: (value, message) => value || fail(message, 'it is not true'),
  equal: (a, b, message) => Object.is(a, b) || fail(message, `${shown(a)} is not ${shown(b)}`),
  notEqual: (a, b, message) => !Object.is(a, b) || fail(message, `${shown(a)} is no other value`),
  deepEqual: (a, b, message) => isSame(a, b) || fail(message, `${shown(a)} is not ${shown(b)}`),
  match: (text, pattern, message) => pattern.test(text) || fail(message, `${text} does not match ${pattern}`),
  doesNotMatch: (text, pattern, message) => !pattern.test(text) || fail(message, `${text} matches ${pattern}`),
  fail: (message) => fail(message, 'failed'),
  throws(call, expected, message) {
    try {
      call();
    } catch (error) {
      return checkError(error, expected, message);
    }
    return fail(isText(expected) ? expected : message, 'nothing is thrown');
  },
  async rejects(given, expected, message) {
    try {
      await (typeof given === 'function' ? given() : given);
    } catch (error) {
      return checkError(error, expected, message);
    }
    return fail(isText(expected) ? expected : message, 'it is not rejected');
  },
  async doesNotReject(given, message) {
    try {
      await (typeof given === 'function' ? given() : given);
    } catch (error) {
      fail(isText(message) ? message : undefined, `it is rejected: ${error}`);
    }
  },
};
export default assert;
