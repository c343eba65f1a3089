import { bytesOf } from '../memory.js';
import {
  byteLength,
  checkBuffer,
  checkDimensions,
  describe,
  isOpen,
  lostMemory,
  toBufferSource,
} from './data_types.js';
import { toGraph } from './graph.js';
import {
  printable,
  requireArguments,
  textOf,
  toOperandDescriptor,
  toRecord,
  toTensorDescriptor,
} from './idl.js';
import {
  checkInternal,
  finishInterface,
  fromBackend,
  interfaceType,
  internal,
  invalidState,
  promising,
} from './interfaces.js';
import { supportLimits } from './limits.js';
import { MLTensor, isDestroyed, toTensor } from './tensor.js';

let stateOf;

/** The state of a context whose handle comes later; `lost` settles when it is lost. */
export function contextState(backend) {
  const state = { backend, handle: null, accelerated: false, isLost: false, why: '', pending: new Set() };
  state.lost = new Promise((resolve) => {
    state.resolveLost = resolve;
  });
  return state;
}

export function lose(state, message) {
  if (state.isLost) return;
  state.isLost = true;
  state.why = message;
  state.resolveLost({ message });
  for (const entry of state.pending) entry.abort(invalidState(`the context is lost: ${message}`));
  if (state.handle) state.backend.destroyContext(state.handle);
}

export function checkLive(state, call) {
  if (state.isLost) throw invalidState(`${call}: the context is lost: ${state.why}`);
}

/**
 * The promise of what the backend's promise becomes, which is rejected before when the context is lost or the
 * tensor destroyed.
 */
export function pendingOf(context, tensor, work, finish, otherwise) {
  return new Promise((resolve, reject) => {
    const entry = {};
    const forget = () => {
      context.pending.delete(entry);
      tensor?.pending.delete(entry);
    };
    entry.abort = (error) => {
      forget();
      reject(error);
    };
    context.pending.add(entry);
    tensor?.pending.add(entry);
    const isOver = () => !context.pending.has(entry);
    const fulfilled = (value) => {
      if (isOver()) return;
      forget();
      resolve(promising(() => finish(value)));
    };
    const rejected = (error) => {
      if (isOver()) return;
      forget();
      reject(fromBackend(error, otherwise));
    };
    work.then(fulfilled, rejected);
  });
}

function checkTensor(tensor, context, what) {
  if (tensor.context !== context) throw new TypeError(`${textOf(what)} belongs to another context`);
  if (isDestroyed(tensor)) throw new TypeError(`${textOf(what)} has been destroyed`);
}

/** Open extents take what lies within their bounds. */
const fits = (shape, declared) =>
  shape.length === declared.length &&
  shape.every((extent, i) =>
    isOpen(declared[i]) ? extent <= (declared[i].maxSize ?? Infinity) : extent === declared[i],
  );

/** ", where n is at most 4" */
function limitsOf({ shape }) {
  const limits = shape
    .filter((extent) => isOpen(extent) && extent.maxSize < 0x7fffffff)
    .map(({ name, maxSize }) => `${printable(name)} is at most ${maxSize}`);
  return limits.length > 0 ? `, where ${limits.join(' and ')}` : '';
}

/** Checks a graph's open extents: those of one name have one number, which decides the outputs' shapes. */
function checkOpenShapes(run, read, written) {
  if (!run.isOpen) return;
  const shapes = run.inputs.map(([name]) => read.get(name).descriptor.shape);
  let wanted;
  try {
    wanted = run.context.backend.outputShapes(run.handle, shapes);
  } catch (error) {
    throw fromBackend({ code: error.code, message: `dispatch: ${error.message}` });
  }
  run.outputs.forEach(([name], i) => {
    const { dataType, shape } = written.get(name).descriptor;
    if (!fits(shape, wanted[i]))
      throw new TypeError(
        `dispatch: output "${printable(name)}" is ${describe({ dataType, shape })}; these inputs give ${describe({ dataType, shape: wanted[i] })}`,
      );
  });
}

/** No tensor is given twice, and all are the context's. */
function checkNamedTensors(context, inputs, outputs) {
  const names = new Map();
  const note = (kind) => (tensor, name) => {
    const what = () => `${kind} "${printable(name)}"`;
    if (names.has(tensor))
      throw new TypeError(`dispatch: ${what()} is the tensor of ${names.get(tensor)()}, too`);
    names.set(tensor, what);
  };
  inputs.forEach(note('input'));
  outputs.forEach(note('output'));
  for (const [tensor, what] of names) checkTensor(tensor, context, () => `dispatch: ${what()}`);
}

/** "Validate tensors with descriptors"; the handles in the graph's order. */
function handlesOf(named, declared, kind) {
  if (named.size !== declared.length || declared.some(([name]) => !named.has(name))) {
    const text = (names) => [...names].map((name) => `"${printable(name)}"`).join(', ');
    const given = named.size === 0 ? `no ${kind}s` : `the ${kind}s ${text(named.keys())}`;
    throw new TypeError(
      `dispatch: ${given} are given; the graph has ${text(declared.map(([name]) => name)) || 'none'}`,
    );
  }
  return declared.map(([name, descriptor]) => {
    const tensor = named.get(name);
    const what = () => `dispatch: ${kind} "${printable(name)}"`;
    if (tensor.constant) throw new TypeError(`${what()} is a constant tensor; create it with createTensor`);
    const { dataType, shape } = tensor.descriptor;
    if (dataType !== descriptor.dataType || !fits(shape, descriptor.shape))
      throw new TypeError(
        `${what()} is ${describe(tensor.descriptor)}; the graph declares ${describe(descriptor)}${limitsOf(descriptor)}`,
      );
    return tensor.handle;
  });
}

const toTensors = (value, what) => toRecord(value, what, toTensor);

export class MLContext {
  #state;
  static {
    stateOf = (value) =>
      typeof value === 'object' && value !== null && #state in value ? value.#state : undefined;
  }
  constructor(...[token, state]) {
    checkInternal(token);
    this.#state = state;
  }
  get accelerated() {
    return this.#state.accelerated;
  }
  get lost() {
    try {
      return this.#state.lost;
    } catch (error) {
      return Promise.reject(error);
    }
  }

  createTensor(descriptor) {
    return promising(() => {
      const state = this.#state;
      requireArguments('createTensor', arguments.length, 1);
      const wanted = toTensorDescriptor(descriptor, 'createTensor: descriptor');
      checkLive(state, 'createTensor');
      checkDimensions(wanted, 'createTensor', state.backend.maxTensorByteLength);
      const { dataType, shape, readable, writable } = wanted;
      const work = state.backend.createTensor(state.handle, dataType, shape, readable, writable);
      return newTensor(state, wanted, false, work);
    });
  }

  createConstantTensor(descriptor, inputData) {
    return promising(() => {
      const state = this.#state;
      requireArguments('createConstantTensor', arguments.length, 2);
      const wanted = toOperandDescriptor(descriptor, 'createConstantTensor: descriptor');
      const source = toBufferSource(inputData, 'createConstantTensor: inputData');
      checkLive(state, 'createConstantTensor');
      checkDimensions(wanted, 'createConstantTensor', state.backend.maxTensorByteLength);
      checkBuffer(source, wanted, 'createConstantTensor: inputData');
      const work = state.backend.createConstantTensor(
        state.handle,
        wanted.dataType,
        wanted.shape,
        bytesOf(source),
      );
      return newTensor(state, { ...wanted, readable: false, writable: false }, true, work);
    });
  }

  readTensor(tensor) {
    return promising(() => {
      const state = this.#state;
      requireArguments('readTensor', arguments.length, 1);
      const from = toTensor(tensor, 'readTensor: tensor');
      const hasOutput = arguments.length > 1;
      const output = hasOutput ? toBufferSource(arguments[1], 'readTensor: outputData') : null;
      checkTensor(from, state, 'readTensor: the tensor');
      if (!from.descriptor.readable)
        throw new TypeError('readTensor: the tensor is not readable; create it with readable: true');
      if (hasOutput) checkBuffer(output, from.descriptor, 'readTensor: outputData');
      return read(state, from, output);
    });
  }

  writeTensor(tensor, inputData) {
    const state = this.#state;
    requireArguments('writeTensor', arguments.length, 2);
    const to = toTensor(tensor, 'writeTensor: tensor');
    const source = toBufferSource(inputData, 'writeTensor: inputData');
    checkTensor(to, state, 'writeTensor: the tensor');
    if (!to.descriptor.writable)
      throw new TypeError('writeTensor: the tensor is not writable; create it with writable: true');
    checkBuffer(source, to.descriptor, 'writeTensor: inputData');
    state.backend.writeTensor(state.handle, to.handle, bytesOf(source));
  }

  dispatch(graph, inputs, outputs) {
    const state = this.#state;
    requireArguments('dispatch', arguments.length, 3);
    const run = toGraph(graph, 'dispatch: graph');
    const read = toTensors(inputs, 'dispatch: inputs');
    const written = toTensors(outputs, 'dispatch: outputs');
    if (run.context !== state) throw new TypeError('dispatch: the graph belongs to another context');
    if (run.destroyed || state.isLost)
      throw invalidState(`dispatch: the graph has been destroyed${state.isLost ? ` (${state.why})` : ''}`);
    checkNamedTensors(state, read, written);
    const inputHandles = handlesOf(read, run.inputs, 'input');
    const outputHandles = handlesOf(written, run.outputs, 'output');
    checkOpenShapes(run, read, written);
    state.backend.dispatch(state.handle, run.handle, inputHandles, outputHandles);
  }

  opSupportLimits() {
    return supportLimits(this.#state.backend.maxTensorByteLength);
  }

  destroy() {
    lose(this.#state, 'destroy() was called');
  }
}
finishInterface(MLContext, (context) => {
  const state = stateOf(context);
  return state && { device: state.device, accelerated: state.accelerated, lost: state.isLost };
});

function newTensor(context, descriptor, constant, work) {
  const finish = (handle) =>
    new MLTensor(internal, {
      context,
      handle,
      descriptor: { ...descriptor, shape: Object.freeze(descriptor.shape) },
      constant,
      destroyed: false,
      pending: new Set(),
    });
  return pendingOf(context, null, work, finish, 'UnknownError');
}

/** Reads a tensor. The new buffer is filled before anybody sees it; a caller's is written to on the caller's own thread. */
function read(context, tensor, output) {
  let buffer;
  try {
    buffer = new ArrayBuffer(byteLength(tensor.descriptor));
  } catch (error) {
    throw new DOMException(`readTensor: ${error.message}`, 'UnknownError');
  }
  const work = context.backend.readTensor(context.handle, tensor.handle, new Uint8Array(buffer));
  const finish = () => {
    if (!output) return buffer;
    if (lostMemory(output, tensor.descriptor))
      throw new TypeError('readTensor: outputData has been detached');
    bytesOf(output).set(new Uint8Array(buffer));
    return undefined;
  };
  return pendingOf(context, tensor, work, finish, 'UnknownError');
}

export const toContext = interfaceType('MLContext', (value) => stateOf(value));
