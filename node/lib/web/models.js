// load() and Tokenizer of `headrace` in a page: the same classes on a worker's addon.
import { checkOptions } from '../models/check.js';
import { HeadraceError } from '../models/error.js';
import { loader } from '../models/model.js';
import { tokenizerOn } from '../models/tokenizer.js';
import { fetchModel } from './fetch_model.js';

/** Bytes that nobody else has, which may move to the worker. */
const owned = new WeakSet();
const movable = (bytes) => (owned.has(bytes) ? bytes : Uint8Array.from(bytes));

/** A copy in the memory, if it has that length: new memory takes longer than the copying. */
function copyIn(memory, bytes) {
  if (memory?.byteLength !== bytes.length) return bytes.slice();
  const copy = new Uint8Array(memory);
  copy.set(bytes);
  return copy;
}

/** What lib/models calls an addon, on a Remote that `connect` gives or promises. */
function remoteAddon(connect) {
  const remoteOf = new WeakMap();
  const make = async (name, args, moved) => {
    const remote = await connect();
    const object = await remote.make(name, args, moved);
    remoteOf.set(object, remote);
    return Object.assign(object, { handle: object });
  };
  const ask = (object, name, args, moved) =>
    remoteOf.get(object).ask(name, [object.number, ...args], moved);
  const spares = new WeakMap(); // by model: the memory of the last run's copies
  /** The caller's may change: copies, which move to the worker, and their memory back for the next run's. */
  async function runModel(model, inputs) {
    const memories = spares.get(model);
    spares.delete(model); // a run that begins before this one ends has its own
    const copies = inputs.map((part, i) => (part instanceof Uint8Array ? copyIn(memories?.[i], part) : part));
    const moved = copies.filter((part) => part instanceof Uint8Array).map(({ buffer }) => buffer);
    const { outputs, memories: returned } = await ask(model, 'runModel', [copies], moved);
    spares.set(model, returned);
    return outputs;
  }
  return {
    openModel(source, ...rest) {
      if (typeof source === 'string') return make('openModel', [source, ...rest], []);
      const bytes = movable(source);
      return make('openModel', [bytes, ...rest], [bytes.buffer]);
    },
    runModel,
    closeModel(model) {
      const remote = remoteOf.get(model);
      remote.send('closeModel', [model.number]);
      remote.forget(model);
      spares.delete(model);
    },
    openTokenizer: (path) => make('openTokenizer', [path], []),
    encodeTexts: (tokenizer, ...rest) => ask(tokenizer, 'encodeTexts', rest),
  };
}

const isUrl = (source) => typeof source === 'string' || source instanceof URL;
const fetching = ['progress', 'signal', 'cached'];

/** Splits what fetchModel takes from what load takes. */
function split(options) {
  const given = checkOptions(options, 'load: the options', Object.keys(options ?? {}));
  const entries = Object.entries(given);
  const has = ([name]) => fetching.includes(name);
  return [
    Object.fromEntries(entries.filter(has)),
    Object.fromEntries(entries.filter((entry) => !has(entry))),
  ];
}

/** {load, loadTokenizer} on workers that `connect` gives or promises: files are fetched while an engine starts. */
export function modelsOn(connect) {
  const addon = remoteAddon(connect);
  const loadFrom = loader(addon);
  const Tokenizer = tokenizerOn(addon);
  let files = 0;

  /** The result of steps on a file of the worker's with these bytes. */
  async function withFile(name, bytes, steps) {
    const remote = await connect();
    const path = `/${++files}-${name}`;
    await remote.ask('writeFile', [path, bytes], [bytes.buffer]);
    try {
      return await steps(path);
    } finally {
      remote.send('removeFile', [path]);
    }
  }
  const nameOf = (url) => decodeURIComponent(url.pathname.split('/').pop()) || 'model';

  /** A model of an ONNX file's or graph file's URL, or of the bytes of an ONNX model. */
  async function load(source, options) {
    const [fetched, rest] = split(options);
    if (!isUrl(source)) return loadFrom(source, rest);
    const url = new URL(source, globalThis.location?.href);
    const bytes = await fetchModel(url.href, fetched);
    if (bytes.length === 0) throw new HeadraceError('io', `${url.href} is empty`);
    owned.add(bytes);
    if (!/\.(hrg|webnn|json)$/i.test(url.pathname)) return loadFrom(bytes, rest);
    return withFile(nameOf(url), bytes, (path) => loadFrom(path, rest));
  }

  /** The tokenizer of a tokenizer.json's URL. */
  async function loadTokenizer(source, options) {
    const url = new URL(source, globalThis.location?.href);
    const bytes = await fetchModel(url.href, options);
    return withFile('tokenizer.json', bytes, (path) => Tokenizer.load(path));
  }
  return { load, loadTokenizer };
}
