import { checkInternal, finishInterface, interfaceType } from './interfaces.js';

let stateOf;

/** A value of a graph under construction: its state is {builder, id, descriptor, kind}, of an input its name. */
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
finishInterface(MLOperand, (operand) => {
  const state = stateOf(operand);
  if (!state) return undefined;
  const { kind, name, descriptor } = state;
  return { kind, ...(kind === 'input' && { name }), dataType: descriptor.dataType, shape: descriptor.shape };
});

export const toOperand = interfaceType('MLOperand', (value) => stateOf(value));
