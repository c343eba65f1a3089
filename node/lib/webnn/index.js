// The Web Neural Network API on a backend: an object with the functions of node/src/functions.h and
// `maxTensorByteLength`. Nothing here needs Node.
import { MLGraphBuilder } from './builder.js';
import { MLContext } from './context.js';
import { enableExtensions } from './extensions.js';
import { MLGraph } from './graph.js';
import { internal } from './interfaces.js';
import { ML } from './ml.js';
import { MLOperand } from './operand.js';
import { MLTensor } from './tensor.js';

export const interfaces = { ML, MLContext, MLGraph, MLGraphBuilder, MLOperand, MLTensor };

export function createML(backend) {
  const ml = new ML(internal, backend);
  // For headrace/webnn/extensions; nobody else sees it.
  Object.defineProperty(ml, Symbol.for('headrace.extensions'), { value: () => enableExtensions(interfaces) });
  return ml;
}

/** Gives a global object `navigator.ml` and the interfaces, as browsers have them. */
export function install(global, ml) {
  for (const [name, value] of Object.entries(interfaces))
    Object.defineProperty(global, name, { value, writable: true, configurable: true });
  if (!('navigator' in global)) {
    class Navigator {}
    Object.defineProperty(Navigator.prototype, Symbol.toStringTag, {
      value: 'Navigator',
      configurable: true,
    });
    Object.defineProperty(global, 'Navigator', { value: Navigator, writable: true, configurable: true });
    Object.defineProperty(global, 'navigator', {
      value: new Navigator(),
      enumerable: true,
      configurable: true,
    });
  }
  const { navigator } = global;
  const property = {
    get ml() {
      if (this !== navigator) throw new TypeError('Illegal invocation');
      return ml;
    },
  };
  const { get } = Object.getOwnPropertyDescriptor(property, 'ml');
  const prototype = Object.getPrototypeOf(navigator);
  // Bun's navigator has no prototype of its own: every object would get the attribute.
  Object.defineProperty(prototype === Object.prototype ? navigator : prototype, 'ml', {
    get,
    enumerable: true,
    configurable: true,
  });
}
