import { bytesOf } from '../memory.js';
import { checkBuffer, checkDimensions, scalarBytes, toBufferSource } from './data_types.js';
import { checkLive, pendingOf, toContext } from './context.js';
import { newGraph } from './graph.js';
import {
  isObject,
  printable,
  requireArguments,
  toEnum,
  toDimension,
  toNumber,
  toOperandDescriptor,
  toRecord,
  toUSVString,
} from './idl.js';
import { finishInterface, fromBackend, internal, invalidState, promising } from './interfaces.js';
import { noteSizes, withSizes } from './open_extents.js';
import { MLOperand, toOperand } from './operand.js';
import { operatorMethod } from './operator_method.js';
import { rewording, told } from './rewording.js';
import { operators } from './operators.js';
import { isDestroyed, isTensor, toTensor } from './tensor.js';

let stateOf;

function checkCanBuild(state, call) {
  if (state.hasBuilt) throw invalidState(`${call}: the builder has built its graph; create a new one`);
  checkLive(state.context, call);
}

function fromBackendOf(steps) {
  try {
    return steps();
  } catch (error) {
    throw fromBackend(error);
  }
}

function newOperand(builder, id, descriptor, kind, rest = {}) {
  const { dataType, shape } = descriptor;
  const frozen = { dataType, shape: Object.freeze(shape) };
  return new MLOperand(internal, { builder, id, descriptor: frozen, kind, ...rest });
}

function constantOfBytes(state, descriptor, bytes) {
  const { backend } = state.context;
  const id = fromBackendOf(() =>
    backend.constant(state.handle, descriptor.dataType, descriptor.shape, bytes),
  );
  return newOperand(state, id, descriptor, 'constant');
}

function constantOfBuffer(state, first, second) {
  const descriptor = toOperandDescriptor(first, 'constant: descriptor');
  const source = toBufferSource(second, 'constant: buffer');
  checkCanBuild(state, 'constant');
  checkDimensions(descriptor, 'constant', state.context.backend.maxTensorByteLength);
  checkBuffer(source, descriptor, 'constant: buffer');
  return constantOfBytes(state, descriptor, bytesOf(source));
}

function constantOfNumber(state, first, second) {
  const dataType = toEnum('MLOperandDataType', first, 'constant: dataType');
  const value = toNumber(second, 'constant: value');
  checkCanBuild(state, 'constant');
  return constantOfBytes(state, { dataType, shape: [] }, scalarBytes(dataType, value));
}

function constantOfTensor(state, value) {
  const tensor = toTensor(value, 'constant: tensor');
  if (tensor.context !== state.context)
    throw new TypeError('constant: the tensor belongs to another context');
  if (isDestroyed(tensor)) throw new TypeError('constant: the tensor has been destroyed');
  if (!tensor.constant)
    throw new TypeError('constant: the tensor may change; create it with createConstantTensor');
  checkCanBuild(state, 'constant');
  const id = fromBackendOf(() => state.context.backend.constantTensor(state.handle, tensor.handle));
  const { dataType, shape } = tensor.descriptor;
  return newOperand(state, id, { dataType, shape }, 'constant', { tensor });
}

function checkOutputs(state, outputs) {
  if (outputs.size === 0) throw new TypeError('build: no outputs are given; name at least one operand');
  for (const [name, operand] of outputs) {
    const what = `build: output "${printable(name)}"`;
    if (name === '') throw new TypeError('build: an output has an empty name');
    if (operand.builder !== state) throw new TypeError(`${what} belongs to another builder`);
    if (operand.kind !== 'result')
      throw new TypeError(
        `${what} is an ${operand.kind === 'input' ? 'input' : 'operand that is constant'}; identity() makes an output of it`,
      );
  }
}

export class MLGraphBuilder {
  #state;
  static {
    stateOf = (builder) => builder.#state;
  }
  constructor(context) {
    requireArguments('MLGraphBuilder', arguments.length, 1);
    const owner = toContext(context, 'MLGraphBuilder: context');
    checkLive(owner, 'MLGraphBuilder');
    const handle = fromBackendOf(() => owner.backend.createBuilder(owner.handle));
    this.#state = { context: owner, handle, hasBuilt: false, inputs: new Map(), sizes: new Map() };
  }

  input(name, descriptor) {
    const state = this.#state;
    requireArguments('input', arguments.length, 2);
    const text = toUSVString(name, 'input: name');
    const wanted = toOperandDescriptor(descriptor, 'input: descriptor', toDimension);
    checkCanBuild(state, 'input');
    if (text === '') throw new TypeError('input: the name is empty');
    const what = `input "${printable(text)}"`;
    if (state.inputs.has(text)) throw new TypeError(`${what}: the builder has one of that name`);
    const { backend } = state.context;
    checkDimensions(wanted, what, backend.maxTensorByteLength);
    wanted.shape = withSizes(state.sizes, wanted.shape, `${what}: shape`);
    const id = fromBackendOf(() => backend.input(state.handle, text, wanted.dataType, wanted.shape));
    noteSizes(state.sizes, wanted.shape);
    const operand = newOperand(state, id, wanted, 'input', { name: text });
    state.inputs.set(text, wanted);
    return operand;
  }

  constant(descriptor) {
    const state = this.#state;
    requireArguments('constant', arguments.length, 1);
    if (arguments.length === 1) return constantOfTensor(state, descriptor);
    const value = arguments[1];
    if (descriptor === undefined || descriptor === null || isObject(descriptor))
      return constantOfBuffer(state, descriptor, value);
    return constantOfNumber(state, descriptor, value);
  }

  build(outputs) {
    return promising(() => {
      const state = this.#state;
      requireArguments('build', arguments.length, 1);
      const named = toRecord(outputs, 'build: outputs', toOperand);
      checkCanBuild(state, 'build');
      checkOutputs(state, named);
      const { context, inputs, handle } = state;
      state.hasBuilt = true;
      state.handle = null;
      const work = context.backend.build(
        handle,
        [...named.keys()],
        [...named.values()].map(({ id }) => id),
      );
      const finish = (built) =>
        newGraph({
          context,
          handle: built.handle,
          inputs: built.inputs.map((name) => [name, inputs.get(name)]),
          outputs: built.outputs.map((name) => [name, named.get(name).descriptor]),
        });
      return pendingOf(context, null, work, finish);
    });
  }
}

for (const row of operators) {
  const reword = rewording(row);
  const add = (state, title, operands, options, label, given) => {
    const { backend } = state.context;
    const made = fromBackendOf(() => {
      try {
        return backend.operator(state.handle, row.catalog, operands, options, label);
      } catch (error) {
        error.message = reword(error.message, title, label, given);
        throw error;
      }
    });
    for (const result of made)
      checkDimensions(result, `${title}: the result`, backend.maxTensorByteLength, told(given));
    const results = made.map(({ operand, dataType, shape }) =>
      newOperand(state, operand, { dataType, shape }, 'result'),
    );
    return row.list ? results : results[0];
  };
  const method = operatorMethod(row, (builder) => stateOf(builder), checkCanBuild, add);
  Object.defineProperty(MLGraphBuilder.prototype, row.name, {
    value: method,
    writable: true,
    configurable: true,
  });
}
finishInterface(MLGraphBuilder);
