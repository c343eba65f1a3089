import { MLContext, contextState, lose } from './context.js';
import { ahead, toDictionary, toEnum, toPlainInteger, toUSVString } from './idl.js';
import { checkInternal, finishInterface, fromBackend, internal, promising } from './interfaces.js';

/** Ahead of the specification: where and how graphs are computed, by name with what holds otherwise. */
const policy = {
  device: '',
  deviceType: 'auto',
  hostTimeout: 60000,
  packedCache: '',
  threads: 0,
  weights: '',
};

function toPolicy(dictionary) {
  const result = { ...policy };
  if (!ahead.isOn) return result;
  for (const [name, otherwise] of Object.entries(policy)) {
    const value = dictionary[name];
    if (value === undefined) continue;
    const what = `createContext: ${name}`;
    result[name] = typeof otherwise === 'number' ? toPlainInteger(value, what) : toUSVString(value);
  }
  return result;
}

function toContextOptions(value) {
  const dictionary = toDictionary(value, 'createContext: options');
  const { accelerated, powerPreference } = dictionary;
  return {
    ...toPolicy(dictionary),
    accelerated: accelerated === undefined ? true : Boolean(accelerated),
    powerPreference:
      powerPreference === undefined
        ? 'default'
        : toEnum('MLPowerPreference', powerPreference, 'createContext: powerPreference'),
  };
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
        ({ handle, accelerated }) => {
          Object.assign(state, { handle, accelerated });
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
