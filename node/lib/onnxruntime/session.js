// onnxruntime-common's InferenceSession on a Model.
import { checkInteger, isRecord, kindOf } from '../models/check.js';
import { HeadraceError } from '../models/error.js';
import { memoryOf } from '../memory.js';
import { startedBackend } from './backends.js';
import { Tensor, checkTensor, isTensor } from './tensor.js';

function named(provider) {
  const one = typeof provider === 'string' ? { name: provider } : provider;
  if (typeof one?.name !== 'string')
    throw new TypeError(
      `executionProviders: one is ${kindOf(provider)}; a name or an object with one is needed`,
    );
  return one;
}

/** The first provider that is available: load()'s options for one of this build, or a registered backend. */
async function toProvider(providers, devices) {
  if (providers === undefined) return { options: { device: 'cpu' } };
  if (!Array.isArray(providers))
    throw new TypeError(`executionProviders are ${kindOf(providers)}; an array is needed`);
  if (providers.length === 0) return { options: { device: 'cpu' } };
  const given = providers.map(named);
  let here; // asked for where a provider names one of them
  const found = async ({ name, ...options }) => {
    const backend = await startedBackend(name);
    if (backend) return { backend };
    if (name === 'headrace') return { options }; // load()'s own
    if (name === 'cpu') return { options: { device: 'cpu' } };
    const device = `${name.toUpperCase()}${options.deviceId ?? 0}`;
    here ??= (await devices()).map((one) => one.name);
    return here.includes(device) && { options: { device } };
  };
  for (const [i, one] of given.entries()) {
    const provider = await found(one);
    if (!provider) continue;
    for (const { name } of given.slice(0, i))
      console.warn(`the execution provider "${name}" is not here; "${one.name}" is taken`);
    return provider;
  }
  const names = given.map(({ name }) => name);
  throw new Error(
    `no execution provider of ${names.join(', ')} is here; there are 'cpu' and { name: 'headrace', device }, where ` +
      `device is one of ${here.join(', ')}`,
  );
}

/** Hints of ONNX Runtime's own, which change nothing here. */
const hints = {
  executionMode: ['sequential', 'parallel'],
  graphOptimizationLevel: ['disabled', 'basic', 'extended', 'layout', 'all'],
};

function checkHints(options) {
  for (const [name, values] of Object.entries(hints))
    if (options[name] !== undefined && !values.includes(options[name]))
      throw new TypeError(`${name} is ${JSON.stringify(options[name])}; there are ${values.join(', ')}`);
}

/** What load() takes of SessionOptions, beside what the provider says. */
function toLoadOptions(options, result) {
  checkHints(options);
  const { intraOpNumThreads, freeDimensionOverrides, externalData } = options;
  if (intraOpNumThreads !== undefined)
    result.threads ??= checkInteger(intraOpNumThreads, 'intraOpNumThreads', 0, 0x7fffffff);
  if (freeDimensionOverrides !== undefined) result.dimensions = freeDimensionOverrides;
  if (externalData !== undefined && !Array.isArray(externalData))
    throw new TypeError(
      `externalData are ${kindOf(externalData)}; an array of paths is needed, of files beside the model`,
    );
  if (externalData?.some((file) => typeof file !== 'string'))
    throw new Error(
      'external data in memory are not read; pass the path of the model, beside which they lie',
    );
  return result;
}

function toOptions(value) {
  if (value === undefined) return {};
  if (!isRecord(value)) throw new TypeError(`the options are ${kindOf(value)}; an object is needed`);
  return value;
}

/** (path, options), (bytes, options) or (buffer, byteOffset, byteLength, options). */
function toSource(source, rest) {
  if (typeof rest[0] !== 'number') return [source, toOptions(rest[0])];
  const memory = memoryOf(source);
  if (!memory || memory.kind)
    throw new TypeError(`a byte offset goes with an ArrayBuffer, not with ${kindOf(source)}`);
  const [offset, given, options] = rest;
  const all = memory.byteLength;
  checkInteger(offset, 'byteOffset', 0, all - 1);
  const length = given === undefined ? all - offset : checkInteger(given, 'byteLength', 1, all - offset);
  return [new Uint8Array(source, offset, length), toOptions(options)];
}

const metadataOf = ({ name, type, shape }) => Object.freeze({ name, isTensor: true, type, shape });

function checkNames(list, names) {
  if (list.length === 0) throw new TypeError('fetches are empty; name an output');
  for (const name of list) {
    if (typeof name !== 'string')
      throw new TypeError(`fetches: a name is ${kindOf(name)}; names of outputs are strings`);
    if (!names.includes(name))
      throw new RangeError(`fetches: there is no output "${name}"; there are ${names.join(', ')}`);
  }
}

/** What follows the feeds, as {fetches, options}: outputs by name with the tensors to fill, or null. */
function toFetches(second, third, names) {
  for (const [what, value] of Object.entries({ 'fetches or options': second, options: third }))
    if (value !== undefined && (typeof value !== 'object' || value === null || value instanceof Tensor))
      throw new TypeError(`${what} are ${kindOf(value)}; an object is needed`);
  if (Array.isArray(second)) {
    checkNames(second, names);
    return { fetches: new Map(second.map((name) => [name, null])), options: third ?? {} };
  }
  // An object without a tensor, or null, by any output's name holds options.
  const own = names.filter((name) => second !== undefined && Object.hasOwn(second, name));
  const chosen = own.filter((name) => second[name] === null || isTensor(second[name]));
  if (own.length > 0 && chosen.length === 0)
    throw new TypeError(`fetches: "${own[0]}" is ${kindOf(second[own[0]])}; a Tensor or null is needed`);
  return chosen.length > 0
    ? { fetches: new Map(chosen.map((name) => [name, second[name]])), options: third ?? {} }
    : { fetches: new Map(names.map((name) => [name, null])), options: second ?? {} };
}

/** A result in the tensor that the caller gave for it. */
function filled(tensor, result, name) {
  const fits =
    tensor.type === result.type &&
    tensor.dims.length === result.dims.length &&
    tensor.dims.every((extent, i) => extent === result.dims[i]);
  if (!fits)
    throw new Error(
      `fetches: "${name}" is ${tensor.type}[${tensor.dims.join(', ')}]; the result is ${result.type}[${result.dims.join(', ')}]`,
    );
  tensor.data.set(result.data);
  return tensor;
}

/** What backends give, on a Model. */
class ModelHandler {
  #model;
  #isReleased = false;

  constructor(model) {
    this.#model = model;
    this.inputNames = model.inputNames;
    this.outputNames = model.outputNames;
    this.inputMetadata = model.inputs.map(metadataOf);
    this.outputMetadata = model.outputs.map(metadataOf);
  }

  async run(feeds, fetches) {
    if (this.#isReleased)
      throw new HeadraceError('invalid_state', 'the session has been released; create another');
    const inputs = {};
    for (const name of this.inputNames) {
      const { type, dims, data } = checkTensor(feeds[name], `feeds: "${name}"`);
      inputs[name] = { type, dims, data };
    }
    const results = await this.#model.run(inputs);
    return Object.fromEntries(
      Object.entries(fetches).map(([name, tensor]) => {
        const { type, dims, data } = results[name];
        return [name, tensor ? filled(tensor, results[name], name) : new Tensor(type, data, dims)];
      }),
    );
  }

  /** Runs write no profiles. */
  startProfiling() {}
  endProfiling() {}

  async dispose() {
    this.#isReleased = true;
    this.#model.dispose();
  }
}

/** The class on load() and devices(). */
export function inferenceSessionOn(load, devices) {
  return class InferenceSession {
    #handler;

    constructor(handler) {
      if (typeof handler?.run !== 'function')
        throw new TypeError('InferenceSession: InferenceSession.create() makes sessions');
      this.#handler = handler;
    }

    static async create(source, ...rest) {
      const [from, options] = toSource(source, rest);
      const { backend, options: found } = await toProvider(options.executionProviders, devices);
      if (backend) return new InferenceSession(await backend.createInferenceSessionHandler(from, options));
      return new InferenceSession(new ModelHandler(await load(from, toLoadOptions(options, found))));
    }

    get inputNames() {
      return this.#handler.inputNames;
    }

    get outputNames() {
      return this.#handler.outputNames;
    }

    get inputMetadata() {
      return this.#handler.inputMetadata;
    }

    get outputMetadata() {
      return this.#handler.outputMetadata;
    }

    /** (feeds, options) or (feeds, fetches, options). */
    async run(feeds, second, third) {
      if (!isRecord(feeds) || feeds instanceof Tensor)
        throw new TypeError(`feeds are ${kindOf(feeds)}; an object of tensors by names of inputs is needed`);
      const { fetches, options } = toFetches(second, third, this.outputNames);
      for (const name of this.inputNames)
        if (feeds[name] === undefined) throw new Error(`input '${name}' is missing in 'feeds'.`);
      return this.#handler.run(feeds, Object.fromEntries(fetches), options);
    }

    startProfiling() {
      this.#handler.startProfiling();
    }

    endProfiling() {
      this.#handler.endProfiling();
    }

    async release() {
      await this.#handler.dispose();
    }
  };
}
