// What WebIDL's interfaces have and plain classes lack.

/** Passed to constructors by this library alone. */
export const internal = Symbol('headrace');

export function checkInternal(token) {
  if (token !== internal) throw new TypeError('Illegal constructor');
}

/**
 * Members are enumerable, and objects name their interface. told: what `console.log` in Node, Bun and Deno shows of
 * an object's state, by a function that gives undefined for others.
 */
export function finishInterface(type, told = () => undefined) {
  for (const name of Reflect.ownKeys(type.prototype))
    if (name !== 'constructor') Object.defineProperty(type.prototype, name, { enumerable: true });
  Object.defineProperty(type.prototype, Symbol.toStringTag, { value: type.name, configurable: true });
  const value = function (_depth, options, inspect) {
    const shown = told(this);
    return `${type.name} ${shown ? inspect(shown, options) : '{}'}`;
  };
  Object.defineProperty(type.prototype, Symbol.for('nodejs.util.inspect.custom'), { value, configurable: true });
}

/** The value, or the promise of it: whatever is thrown becomes a rejection. */
export function promising(steps) {
  try {
    return Promise.resolve(steps());
  } catch (error) {
    return Promise.reject(error);
  }
}

/** The conversion to an interface: its objects' state, by a function that knows others by undefined. */
export function interfaceType(name, stateOf) {
  return (value, what) => {
    const state = stateOf(value);
    if (!state) throw new TypeError(`${typeof what === 'function' ? what() : what} is not an ${name}`);
    return state;
  };
}

export const invalidState = (message) => new DOMException(message, 'InvalidStateError');

/**
 * What a backend's failure is in the specification's terms. Its errors have a `code`. `otherwise` names the
 * DOMException of what is no fault of the caller's.
 */
export function fromBackend(error, otherwise = 'OperationError') {
  switch (error.code) {
    case 'invalid_argument':
      return new TypeError(error.message);
    case 'invalid_state':
      return invalidState(error.message);
    case 'unsupported':
      return new DOMException(error.message, 'NotSupportedError');
    default:
      return new DOMException(error.message, otherwise);
  }
}
