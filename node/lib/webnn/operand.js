import { textOf } from './idl.js';
import { checkInternal, finishInterface } from './interfaces.js';

let stateOf;

/** A value of a graph under construction: its state is {builder, id, descriptor, kind}. */
export class MLOperand {
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
}
finishInterface(MLOperand);

export function toOperand(value, what) {
  const state = stateOf(value);
  if (!state) throw new TypeError(`${textOf(what)} is no MLOperand`);
  return state;
}
