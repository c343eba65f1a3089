// load(): a model file as something that is run by arrays.
import { bytesOf, memoryOf } from '../memory.js';
import { checkBoolean, checkInteger, checkOptions, checkText, isRecord, kindOf } from './check.js';
import { HeadraceError, settled } from './error.js';
import { toInput, toTensor, typeName } from './tensors.js';

/* global require */

const int32 = (value, what) => checkInteger(value, what, 0, 0x7fffffff);
/** The addon knows what holds where nothing is given. */
const settings = {
  device: checkText,
  accelerated: checkBoolean,
  deviceType: checkText,
  powerPreference: checkText,
  hostTimeout: int32,
  threads: int32,
  weights: checkText,
  roundActivations: checkBoolean,
  memory: checkText,
  precision: checkText,
  packedCache: checkText,
  tuning: checkText,
  cacheBytes: checkInteger,
  mostIterations: checkInteger,
};

/** A path of text or of a file: URL. */
export function toPath(value, what) {
  if (value instanceof URL) {
    if (value.protocol !== 'file:')
      throw new TypeError(`${what} is a URL with ${value.protocol}; a path or a file: URL is needed`);
    return require('node:url').fileURLToPath(value); // Node's alone
  }
  const path = checkText(value, what);
  if (path === '' || path.includes('\0'))
    throw new TypeError(`${what} is ${JSON.stringify(path)}, which names no file`);
  return path;
}

function toSource(source) {
  if (typeof source === 'string' || source instanceof URL) return toPath(source, 'load: the path');
  const memory = memoryOf(source);
  if (!memory || (memory.kind && memory.kind !== 'Uint8Array'))
    throw new TypeError(
      `load: the model is ${kindOf(source)}; a path, a file: URL, or the bytes of an ONNX model or a .hrg file in a ` +
        'Uint8Array or ArrayBuffer are needed',
    );
  if (memory.byteLength === 0)
    throw new TypeError('load: the model has no bytes (its buffer may be detached)');
  return memory.kind ? source : bytesOf(source); // a page knows its own arrays again
}

const graphMark = Array.from('HDRGRAPH', (letter) => letter.charCodeAt(0));
function isGraph(source) {
  const bytes = bytesOf(source);
  return graphMark.every((code, i) => bytes[i] === code);
}

/** Small enough not to hold up what else the thread has to do. */
const pieceLength = 1 << 20;
const otherWork = () => new Promise((resolve) => setImmediate(resolve));

/** The caller's bytes in memory of the addon's. Whoever else has them may do anything between two pieces. */
async function copied(addon, source) {
  const { byteLength } = memoryOf(source);
  const handle = addon.newBytes(byteLength);
  for (let at = 0; at < byteLength; at += pieceLength) {
    if (at > 0) await otherWork();
    if (memoryOf(source).byteLength !== byteLength)
      throw new TypeError('load: the buffer was detached or resized while its bytes were copied');
    addon.addBytes(handle, bytesOf(source).subarray(at, at + pieceLength));
  }
  return handle;
}

const toExtent = (value, what) =>
  typeof value === 'string' && value !== '' ? value : checkInteger(value, what);

/** Numbers of named dimensions, and whole shapes of inputs, in which names stay open. */
function toDimensions(given) {
  if (given === undefined) return [[], []];
  if (!isRecord(given)) throw new TypeError(`load: dimensions is ${kindOf(given)}; an object is needed`);
  const [numbers, shapes] = [[], []];
  for (const [name, value] of Object.entries(given)) {
    const what = `load: dimensions.${name}`;
    if (Array.isArray(value))
      shapes.push(
        name,
        value.map((extent, i) => toExtent(extent, `${what}[${i}]`)),
      );
    else numbers.push(name, checkInteger(value, what));
  }
  return [numbers, shapes];
}

const declared = (tensors) =>
  Object.freeze(
    tensors.map(({ name, type, shape }) =>
      Object.freeze({ name, type: typeName(type), shape: Object.freeze([...shape]) }),
    ),
  );

/** A run's promise, which is rejected with the signal's reason as soon as that aborts it; `stop` is called then. */
export function abortable(running, signal, stop) {
  return new Promise((resolve, reject) => {
    const abort = () => {
      stop();
      reject(signal.reason);
    };
    signal.addEventListener('abort', abort, { once: true });
    running.then(resolve, reject).finally(() => signal.removeEventListener('abort', abort));
  });
}

/** A compiled graph; load() makes it. */
export class Model {
  #addon;
  #opened;
  #isDisposed = false;
  #last = null; // of a model with states: the run before the next one

  constructor(addon, opened) {
    if (!opened?.handle) throw new TypeError('Model: load() makes models');
    this.#addon = addon;
    this.#opened = opened;
    this.inputs = declared(opened.inputs);
    this.outputs = declared(opened.outputs);
    this.inputNames = Object.freeze(this.inputs.map(({ name }) => name));
    this.outputNames = Object.freeze(this.outputs.map(({ name }) => name));
    this.device = opened.device;
  }

  /**
   * The results by name. Runs may go on at once; those of a model with states take turns. options: `signal`, an
   * AbortSignal, which ends the run between two nodes.
   */
  async run(inputs, options, ...others) {
    if (others.some((other) => other !== undefined))
      throw new TypeError(
        `run: inputs and options are all that it takes; ${kindOf(others[0])} was given, too`,
      );
    const { signal } = checkOptions(options, 'run: the options', ['signal']);
    if (signal !== undefined && !(signal instanceof AbortSignal))
      throw new TypeError(`run: signal is ${kindOf(signal)}; an AbortSignal is needed`);
    this.#checkOpen();
    const given = this.#toInputs(inputs);
    signal?.throwIfAborted();
    const stop = signal && this.#addon.newStop?.(); // a page has none: there the run goes on to its end unheard
    const running = settled(this.#opened.hasStates ? this.#inTurn(given, stop) : this.#start(given, stop));
    const results = await (signal
      ? abortable(running, signal, () => stop && this.#addon.stopRuns(stop))
      : running);
    return Object.fromEntries(
      this.#opened.outputs.map(({ name, type }, i) => [name, toTensor(type, results[i])]),
    );
  }

  /** Writes a graph file; the extension chooses the form: .hrg, .webnn or .json. */
  async save(path) {
    this.#checkOpen();
    if (!this.#addon.saveModel)
      throw new HeadraceError('unsupported', 'save: a page has no files; Node and Python write graph files');
    await settled(this.#addon.saveModel(this.#opened.handle, toPath(path, 'save: the path')));
  }

  /** Frees the model once the runs that go on have ended. */
  dispose() {
    if (this.#isDisposed) return;
    this.#isDisposed = true;
    this.#addon.closeModel(this.#opened.handle);
  }

  #checkOpen() {
    if (this.#isDisposed) throw new HeadraceError('invalid_state', 'the model is disposed of; load it again');
  }

  #start(given, stop) {
    return this.#addon.runModel(this.#opened.handle, given, stop);
  }

  /** After the runs before it. What is given may change until then. */
  async #inTurn(given, stop) {
    const before = this.#last;
    const kept = before ? given.map((part) => (part instanceof Uint8Array ? part.slice() : part)) : given;
    const run = before
      ? before.then(() => {
          this.#checkOpen();
          return this.#start(kept, stop);
        })
      : this.#start(kept, stop);
    const last = run.catch(() => {});
    this.#last = last;
    try {
      return await run;
    } finally {
      if (this.#last === last) this.#last = null;
    }
  }

  #toInputs(inputs) {
    if (!isRecord(inputs))
      throw new TypeError(`run: the inputs are ${kindOf(inputs)}; an object of tensors by name is needed`);
    this.#checkNames(inputs);
    const given = [];
    for (const tensor of this.#opened.inputs) given.push(...toInput(inputs[tensor.name], tensor));
    return given;
  }

  #checkNames(inputs) {
    const names = this.inputNames;
    const listed = () => names.map((name) => `"${name}"`).join(', ') || 'none';
    for (const name of Object.keys(inputs))
      if (!names.includes(name))
        throw new TypeError(`run: the model has no input "${name}"; there are ${listed()}`);
    for (const name of names)
      if (!Object.hasOwn(inputs, name) || inputs[name] === undefined)
        throw new TypeError(`run: the input "${name}" is missing; there are ${listed()}`);
  }
}

/** load() on an addon. */
export function loader(addon) {
  return async function load(source, options) {
    const wanted = checkOptions(options, 'load: the options', ['dimensions', ...Object.keys(settings)]);
    const from = toSource(source);
    const values = {};
    for (const [name, check] of Object.entries(settings))
      if (wanted[name] !== undefined) values[name] = check(wanted[name], `load: ${name}`);
    const isPath = typeof from === 'string';
    const isOnnx = isPath ? /\.onnx$/i.test(from) : !isGraph(from);
    const [dimensions, shapes] = toDimensions(wanted.dimensions);
    if (!isOnnx && dimensions.length + shapes.length > 0)
      throw new TypeError(
        `load: ${isPath ? from : 'the bytes'}: dimensions are for ONNX models; a graph file keeps those it was saved with`,
      );
    // A page has none: its bytes move to the worker.
    const given = isPath || !addon.newBytes ? from : await copied(addon, from);
    return new Model(addon, await settled(addon.openModel(given, isOnnx, values, dimensions, shapes)));
  };
}
