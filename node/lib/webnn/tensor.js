import { checkInternal, finishInterface, interfaceType, invalidState } from './interfaces.js';

let stateOf;

/** Memory of a context: its state is {context, handle, descriptor, constant, destroyed, pending}. */
export class MLTensor {
  #state;
  static {
    stateOf = (value) =>
      typeof value === 'object' && value !== null && #state in value ? value.#state : undefined;
  }
  constructor(...[token, state]) {
    checkInternal(token);
    this.#state = state;
  }
  get dataType() {
    return this.#state.descriptor.dataType;
  }
  get shape() {
    return this.#state.descriptor.shape;
  }
  get readable() {
    return this.#state.descriptor.readable;
  }
  get writable() {
    return this.#state.descriptor.writable;
  }
  get constant() {
    return this.#state.constant;
  }
  destroy() {
    const state = this.#state;
    if (state.destroyed) return;
    state.destroyed = true;
    for (const entry of state.pending) entry.abort(invalidState('readTensor: the tensor has been destroyed'));
    const { context } = state;
    if (!context.isLost) context.backend.destroyTensor(context.handle, state.handle);
    state.handle = null;
  }
}
finishInterface(MLTensor, (tensor) => {
  const state = stateOf(tensor);
  if (!state) return undefined;
  const { dataType, shape, readable, writable } = state.descriptor;
  return { dataType, shape, readable, writable, constant: state.constant, destroyed: isDestroyed(state) };
});

export const toTensor = interfaceType('MLTensor', (value) => stateOf(value));
export const isTensor = (value) => stateOf(value) !== undefined;
/** A context that is lost has destroyed its tensors. */
export const isDestroyed = (state) => state.destroyed || state.context.isLost;
