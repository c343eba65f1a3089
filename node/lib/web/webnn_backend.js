// lib/webnn's backend in a page: graphs are described here, by a builder of the page's own instance of the module, which
// knows types and shapes and no weights; the worker repeats the builder's calls when the graph is built.

/** The largest length of a tensor: what 32 bits address, as a ptrdiff_t has it. */
const maxTensorByteLength = 0x7fffffff;

const moved = (bytes) => {
  const copy = bytes.slice(); // the caller's may change
  return [copy, [copy.buffer]];
};

/** The page's builder has an input in a constant's place; no caller gives one such a name. */
const constantName = (builder) => `\ue000constant ${builder.steps.length}`;

class Description {
  steps = [];
  buffers = []; // of constants, which move to the worker
  tensors = []; // that are constants: the caller may drop or destroy them before the graph is built
  constructor(context, handle) {
    this.context = context;
    this.handle = handle;
  }
}

/**
 * `local`: the page's {addon, napi}; `connect`: gives the Remote of a worker that lives. A new one stands in for one that
 * ended.
 */
export function webnnBackend({ addon, napi }, connect) {
  let described; // the page's context, which only describes
  const remoteOf = new WeakMap(); // of a context
  const send = (context, name, args, buffers) => remoteOf.get(context).send(name, args, buffers);
  const ask = (context, name, args, buffers) => remoteOf.get(context).ask(name, args, buffers);
  const make = (context, name, args, buffers) => remoteOf.get(context).make(name, args, buffers);

  return {
    maxTensorByteLength,

    async createContext(options, onLost) {
      described ??= addon.createContext({}, () => {});
      await described;
      const remote = connect();
      const number = remote.newNumber();
      remote.onLost(number, onLost);
      const context = await remote.make('createContext', [options], [], number);
      remoteOf.set(context, remote);
      context.local = (await described).handle;
      return { handle: context, accelerated: context.accelerated };
    },
    destroyContext(context) {
      send(context, 'destroyContext', [context.number]);
      remoteOf.get(context).forget(context);
    },

    createTensor: async (context, dataType, shape, readable, writable) => {
      const args = [context.number, dataType, shape, readable, writable];
      return Object.assign(await make(context, 'createTensor', args), { dataType, shape });
    },
    createConstantTensor: async (context, dataType, shape, bytes) => {
      const [copy, buffers] = moved(bytes);
      const args = [context.number, dataType, shape, copy];
      return Object.assign(await make(context, 'createConstantTensor', args, buffers), { dataType, shape });
    },
    destroyTensor(context, tensor) {
      tensor.isDestroyed = true;
      if (tensor.builders > 0) return; // the last of them destroys it
      send(context, 'destroyTensor', [context.number, tensor.number]);
      remoteOf.get(context).forget(tensor);
    },
    writeTensor(context, tensor, bytes) {
      const [copy, buffers] = moved(bytes);
      send(context, 'writeTensor', [context.number, tensor.number, copy], buffers);
    },
    async readTensor(context, tensor, bytes) {
      bytes.set(await ask(context, 'readTensor', [context.number, tensor.number, bytes.length]));
    },
    dispatch(context, graph, inputs, outputs) {
      const numbers = [inputs, outputs].map((tensors) => tensors.map(({ number }) => number));
      send(context, 'dispatch', [context.number, graph.number, ...numbers]);
    },
    destroyGraph(context, graph) {
      send(context, 'destroyGraph', [context.number, graph.number]);
      remoteOf.get(context).forget(graph);
    },

    createBuilder: (context) => new Description(context, addon.createBuilder(context.local)),
    input(builder, name, dataType, shape) {
      const operand = addon.input(builder.handle, name, dataType, shape);
      builder.steps.push(['input', name, dataType, shape]);
      return operand;
    },
    constant(builder, dataType, shape, bytes) {
      const operand = addon.input(builder.handle, constantName(builder), dataType, shape);
      const [copy, buffers] = moved(bytes);
      builder.buffers.push(...buffers);
      builder.steps.push(['constant', dataType, shape, copy]);
      return operand;
    },
    constantTensor(builder, tensor) {
      const operand = addon.input(builder.handle, constantName(builder), tensor.dataType, tensor.shape);
      builder.steps.push(['constantTensor', tensor.number]);
      builder.tensors.push(tensor);
      tensor.builders = (tensor.builders ?? 0) + 1;
      return operand;
    },
    operator(builder, name, operands, options, label) {
      const made = addon.operator(builder.handle, name, operands, options, label);
      builder.steps.push(['operator', name, operands, options, label]);
      return made;
    },
    build(builder, names, operands) {
      const { context, steps, buffers, tensors } = builder;
      napi.release(builder.handle);
      const built = make(context, 'build', [context.number, steps, names, operands], buffers);
      for (const tensor of tensors) {
        tensor.builders -= 1;
        if (tensor.builders === 0 && tensor.isDestroyed) this.destroyTensor(context, tensor);
      }
      return built.then((graph) => ({ handle: graph, inputs: graph.inputs, outputs: graph.outputs }));
    },
  };
}
