import { checkInternal, finishInterface, interfaceType } from './interfaces.js';

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
finishInterface(MLGraph);

export const toGraph = interfaceType('MLGraph', (value) => stateOf(value));
