import { MLContext, contextState, lose } from './context.js';
import { toDictionary, toEnum } from './idl.js';
import { checkInternal, finishInterface, fromBackend, internal, promising } from './interfaces.js';

function toContextOptions(value) {
  const { accelerated, powerPreference } = toDictionary(value, 'createContext: options');
  return {
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
