// What a page may ask of the worker that holds the addon. Objects have numbers, which the page chooses, so that it need
// not wait for one to ask for the next.

const pieceLength = 2 ** 20;

/** Calls by name on a module that startAddon() made; `post` sends {lost, message}, the number of a lost context. */
export function callsOn({ addon, napi, files }, post) {
  const objects = new Map(); // {object, owner} by number
  const owned = new Map(); // the numbers of what goes with a context, by its number
  const at = (number) => objects.get(number)?.object;
  const release = (number) => {
    const known = objects.get(number);
    if (!known) return;
    objects.delete(number);
    owned.get(known.owner)?.delete(number);
    napi.release(known.object);
    for (const part of owned.get(number) ?? []) release(part);
    owned.delete(number);
  };
  const kept = (number, promise, owner) =>
    promise.then((made) => {
      const { handle, ...rest } = made.handle ? made : { handle: made };
      objects.set(number, { object: handle, owner });
      if (owner === undefined) owned.set(number, new Set());
      else if (owned.has(owner)) owned.get(owner).add(number);
      else release(number); // its context has been destroyed meanwhile
      return rest;
    });
  /** What nobody waits for: its failure loses the context. */
  const queued = (context, steps) => {
    if (!objects.has(context)) return; // lost, or destroyed
    try {
      steps(at(context));
    } catch (error) {
      if (!error.code) throw error;
      post({ lost: context, message: error.message });
    }
  };
  /** In pieces: the module has room for a model's bytes once, not twice. */
  const copied = (bytes) => {
    const handle = addon.newBytes(bytes.length);
    for (let at = 0; at < bytes.length; at += pieceLength)
      addon.addBytes(handle, bytes.subarray(at, at + pieceLength));
    return handle;
  };
  const places = { input: addon.input, constant: addon.constant, operator: addon.operator };

  return {
    createContext: (number, options) =>
      kept(
        number,
        addon.createContext(options, (message) => post({ lost: number, message })),
      ),
    createTensor: (number, context, ...rest) =>
      kept(number, addon.createTensor(at(context), ...rest), context),
    createConstantTensor: (number, context, ...rest) =>
      kept(number, addon.createConstantTensor(at(context), ...rest), context),
    writeTensor: (context, tensor, bytes) =>
      queued(context, (handle) => addon.writeTensor(handle, at(tensor), bytes)),
    async readTensor(context, tensor, length) {
      const bytes = new napi.Bytes(length);
      try {
        await addon.readTensor(at(context), at(tensor), bytes);
        return bytes.copy();
      } finally {
        bytes.free();
      }
    },
    dispatch: (context, graph, inputs, outputs) =>
      queued(context, (handle) => addon.dispatch(handle, at(graph), inputs.map(at), outputs.map(at))),
    /** Steps are a builder's calls in their order: it numbers operands alike. */
    build(number, context, steps, names, operands) {
      const builder = addon.createBuilder(at(context));
      for (const [name, ...rest] of steps) {
        if (name === 'constantTensor') addon.constantTensor(builder, at(rest[0]));
        else places[name](builder, ...rest);
      }
      return kept(number, addon.build(builder, names, operands), context).finally(() =>
        napi.release(builder),
      );
    },
    destroyTensor(context, tensor) {
      queued(context, (handle) => addon.destroyTensor(handle, at(tensor)));
      release(tensor);
    },
    destroyGraph(context, graph) {
      queued(context, (handle) => addon.destroyGraph(handle, at(graph)));
      release(graph);
    },
    destroyContext(context) {
      queued(context, (handle) => addon.destroyContext(handle));
      release(context);
    },
    release,

    writeFile: (path, bytes) => files.writeFile(path, bytes),
    removeFile: (path) => files.unlink(path),
    readFile: (path) => files.readFile(path),
    openModel: (number, source, ...rest) =>
      kept(number, addon.openModel(typeof source === 'string' ? source : copied(source), ...rest)),
    /** With the memory of the inputs that came as bytes, for the page to use again. */
    async runModel(model, inputs) {
      const outputs = await addon.runModel(at(model), inputs);
      return { outputs, memories: inputs.map(({ buffer }) => buffer) };
    },
    saveModel: (model, path) => addon.saveModel(at(model), path),
    closeModel(model) {
      addon.closeModel(at(model));
      release(model);
    },
    devices: () => addon.devices(),
    openTokenizer: (number, path) => kept(number, addon.openTokenizer(path)),
    encodeTexts: (tokenizer, ...rest) => addon.encodeTexts(at(tokenizer), ...rest),
  };
}

/** ArrayBuffers in a result, which move to the page. */
function buffersOf(value) {
  if (ArrayBuffer.isView(value)) return [value.buffer];
  if (value instanceof ArrayBuffer) return [value];
  if (typeof value !== 'object' || value === null) return [];
  return [...new Set(Object.values(value).flatMap(buffersOf))];
}

/**
 * Answers messages {id, name, args}; without an id nobody waits. `fatal` is told what is no refusal: the module is then
 * of no use any more.
 */
export function answering(calls, post, fatal) {
  const failed = (id) => (error) => {
    if (!error?.code) return fatal(error);
    if (id !== undefined) post({ id, error: { code: error.code, message: error.message } });
    return undefined;
  };
  return ({ id, name, args }) => {
    try {
      const value = calls[name](...args);
      if (id === undefined) return;
      Promise.resolve(value).then((result) => post({ id, value: result }, buffersOf(result)), failed(id));
    } catch (error) {
      failed(id)(error);
    }
  };
}
