// onnxruntime-common's InferenceSession on a Model.
import { checkInteger, isRecord, kindOf } from '../models/check.js';
import { HeadraceError } from '../models/error.js';
import { Tensor, checkTensor } from './tensor.js';

/** Of the providers, the first that this build has, as load()'s options. */
async function toDevice(providers, devices) {
  if (providers === undefined) return { device: 'cpu' };
  if (!Array.isArray(providers))
    throw new TypeError(`executionProviders are ${kindOf(providers)}; an array is needed`);
  if (providers.length === 0) return { device: 'cpu' };
  let here; // asked for where a provider names one of them
  for (const provider of providers) {
    const { name, ...options } = typeof provider === 'string' ? { name: provider } : provider;
    if (name === 'headrace') return options; // load()'s own
    if (name === 'cpu') return { device: 'cpu' };
    const device = `${name.toUpperCase()}${options.deviceId ?? 0}`;
    here ??= (await devices()).map((one) => one.name);
    if (here.includes(device)) return { device };
  }
  const names = providers.map((provider) => provider?.name ?? provider);
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

/** What load() takes of SessionOptions. */
async function toLoadOptions(options, devices) {
  if (!isRecord(options)) throw new TypeError(`the options are ${kindOf(options)}; an object is needed`);
  checkHints(options);
  const { executionProviders, intraOpNumThreads, freeDimensionOverrides, externalData } = options;
  const result = await toDevice(executionProviders, devices);
  if (intraOpNumThreads !== undefined)
    result.threads ??= checkInteger(intraOpNumThreads, 'intraOpNumThreads', 0, 0x7fffffff);
  if (freeDimensionOverrides !== undefined) result.dimensions = freeDimensionOverrides;
  if (externalData?.some((file) => typeof file !== 'string'))
    throw new Error(
      'external data in memory are not read; pass the path of the model, beside which they lie',
    );
  return result;
}

/** (path, options), (bytes, options) or (buffer, byteOffset, byteLength, options). */
function toSource(source, rest) {
  if (typeof rest[0] !== 'number') return [source, rest[0] ?? {}];
  if (!/^\[object (Shared)?ArrayBuffer\]$/.test(Object.prototype.toString.call(source)))
    throw new TypeError(`a byte offset goes with an ArrayBuffer, not with ${kindOf(source)}`);
  const [offset, second, third] = rest;
  const length = typeof second === 'number' ? second : source.byteLength - offset;
  const options = (typeof second === 'number' ? third : second) ?? {};
  checkInteger(offset, 'byteOffset', 0, source.byteLength);
  checkInteger(length, 'byteLength', 0, source.byteLength - offset);
  return [new Uint8Array(source, offset, length), options];
}

const metadataOf = ({ name, type, shape }) => Object.freeze({ name, isTensor: true, type, shape });

/** Names of outputs with the tensors to fill, or null. */
function toFetches(value, names) {
  if (value === undefined) return new Map(names.map((name) => [name, null]));
  const isList = Array.isArray(value);
  if (!isList && (!isRecord(value) || value instanceof Tensor))
    throw new TypeError(`fetches are ${kindOf(value)}; an array of names or an object by names is needed`);
  const entries = isList ? value.map((name) => [name, null]) : Object.entries(value);
  if (entries.length === 0) throw new TypeError('fetches are empty; name an output');
  for (const [name, tensor] of entries) {
    if (typeof name !== 'string')
      throw new TypeError(`fetches: a name is ${kindOf(name)}; names of outputs are strings`);
    if (!names.includes(name))
      throw new RangeError(`fetches: there is no output "${String(name)}"; there are ${names.join(', ')}`);
    if (tensor !== null) checkTensor(tensor, `fetches: "${name}"`);
  }
  return new Map(entries);
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

/** The class on load() and devices(). */
export function inferenceSessionOn(load, devices) {
  return class InferenceSession {
    #model;
    #isReleased = false;

    constructor(model) {
      if (!model?.run) throw new TypeError('InferenceSession: InferenceSession.create() makes sessions');
      this.#model = model;
    }

    static async create(source, ...rest) {
      const [from, options] = toSource(source, rest);
      return new InferenceSession(await load(from, await toLoadOptions(options, devices)));
    }

    get inputNames() {
      return this.#model.inputs.map(({ name }) => name);
    }

    get outputNames() {
      return this.#model.outputs.map(({ name }) => name);
    }

    get inputMetadata() {
      return this.#model.inputs.map(metadataOf);
    }

    get outputMetadata() {
      return this.#model.outputs.map(metadataOf);
    }

    /** (feeds, options) or (feeds, fetches, options). */
    async run(feeds, second, third) {
      if (this.#isReleased)
        throw new HeadraceError('invalid_state', 'the session has been released; create another');
      if (!isRecord(feeds) || feeds instanceof Tensor)
        throw new TypeError(`feeds are ${kindOf(feeds)}; an object of tensors by names of inputs is needed`);
      const names = this.outputNames;
      for (const [what, value] of Object.entries({ 'fetches or options': second, options: third }))
        if (value !== undefined && (typeof value !== 'object' || value === null || value instanceof Tensor))
          throw new TypeError(`${what} are ${kindOf(value)}; an object is needed`);
      // An object without any output's name holds options.
      const hasFetches =
        third !== undefined ||
        Array.isArray(second) ||
        (isRecord(second) && Object.keys(second).some((key) => names.includes(key)));
      const fetches = toFetches(hasFetches ? second : undefined, names);
      const inputs = {};
      for (const name of this.inputNames) {
        if (feeds[name] === undefined) throw new Error(`input '${name}' is missing in 'feeds'.`);
        const { type, dims, data } = checkTensor(feeds[name], `feeds: "${name}"`);
        inputs[name] = { type, dims, data };
      }
      const results = await this.#model.run(inputs);
      return Object.fromEntries(
        [...fetches].map(([name, tensor]) => {
          const { type, dims, data } = results[name];
          return [name, tensor ? filled(tensor, results[name], name) : new Tensor(type, data, dims)];
        }),
      );
    }

    async release() {
      this.#isReleased = true;
      this.#model.dispose();
    }
  };
}
