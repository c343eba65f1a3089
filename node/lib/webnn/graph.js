import { describe, isOpen } from './data_types.js';
import { checkInternal, finishInterface, interfaceType, internal } from './interfaces.js';

let stateOf;

/** A compiled graph: its state is {context, handle, inputs, outputs: [name, descriptor] in the backend's order}. */
export class MLGraph {
  #state;
  static {
    stateOf = (value) =>
      typeof value === 'object' && value !== null && #state in value ? value.#state : undefined;
  }
  constructor(...[token, state]) {
    checkInternal(token);
    this.#state = state;
  }
  destroy() {
    const state = this.#state;
    if (state.destroyed) return;
    state.destroyed = true;
    const { context } = state;
    if (!context.isLost) context.backend.destroyGraph(context.handle, state.handle);
    state.handle = null;
  }
}
const described = (named) =>
  Object.fromEntries(named.map(([name, descriptor]) => [name, describe(descriptor)]));

finishInterface(MLGraph, (graph) => {
  const state = stateOf(graph);
  if (!state) return undefined;
  const { inputs, outputs, destroyed, context } = state;
  return { inputs: described(inputs), outputs: described(outputs), destroyed: destroyed || context.isLost };
});

/** A graph of {context, handle, inputs, outputs}. */
export function newGraph(state) {
  const hasOpen = ([, { shape }]) => shape.some(isOpen);
  const open = state.inputs.some(hasOpen) || state.outputs.some(hasOpen);
  return new MLGraph(internal, { ...state, isOpen: open, destroyed: false });
}

export const toGraph = interfaceType('MLGraph', (value) => stateOf(value));
