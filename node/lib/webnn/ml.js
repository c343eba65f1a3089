import { MLContext, contextState, lose } from './context.js';
import { ahead, toDictionary, toEnum, toPlainInteger, toUSVString } from './idl.js';
import { checkInternal, finishInterface, fromBackend, internal, promising } from './interfaces.js';

/** Conversions by name, in the order of their names. */
const options = {
  accelerated: Boolean,
  powerPreference: (value, what) => toEnum('MLPowerPreference', value, what),
};
/** Ahead of the specification: where and how graphs are computed. */
const policy = {
  device: toUSVString,
  deviceType: toUSVString,
  hostTimeout: toPlainInteger,
  packedCache: toUSVString,
  precision: toUSVString,
  threads: toPlainInteger,
  weights: toUSVString,
};

/** What is given; the backend knows what holds otherwise. */
function toContextOptions(value) {
  const dictionary = toDictionary(value, 'createContext: options');
  const result = {};
  for (const [name, convert] of Object.entries({ ...options, ...(ahead.isOn ? policy : {}) })) {
    const member = dictionary[name];
    if (member !== undefined) result[name] = convert(member, `createContext: ${name}`);
  }
  return result;
}

/**
 * The backend keeps this function as long as its context, which the state keeps: made where the state is in scope,
 * it would keep that.
 */
const loserOf = (weak) => (message) => {
  const state = weak.deref();
  if (state) lose(state, message);
};

/** What `navigator.ml` is. */
export class ML {
  #backend;
  constructor(...[token, backend]) {
    checkInternal(token);
    this.#backend = backend;
  }
  createContext() {
    return promising(() => {
      const backend = this.#backend;
      const options = toContextOptions(arguments[0]);
      const state = contextState(backend);
      return backend.createContext(options, loserOf(new WeakRef(state))).then(
        ({ handle, accelerated, device }) => {
          Object.assign(state, { handle, accelerated, device });
          return new MLContext(internal, state);
        },
        (error) => {
          throw fromBackend({
            code: error.code === 'invalid_argument' ? 'unsupported' : error.code,
            message: error.message,
          });
        },
      );
    });
  }
}
finishInterface(ML);
