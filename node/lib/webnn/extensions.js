// What is ahead of the specification: graphs as files, beside what `ahead` turns on elsewhere.
import { checkLive, pendingOf, toContext } from './context.js';
import { MLGraph, newGraph, toGraph } from './graph.js';
import { ahead, requireArguments, toDictionary, toUSVString } from './idl.js';
import { invalidState, promising } from './interfaces.js';

const descriptorsOf = (named) =>
  Object.fromEntries(named.map(([name, { dataType, shape }]) => [name, { dataType, shape: [...shape] }]));

const graphMembers = {
  /** MLOperandDescriptors by name. */
  get inputs() {
    return descriptorsOf(toGraph(this, 'inputs: this').inputs);
  },
  get outputs() {
    return descriptorsOf(toGraph(this, 'outputs: this').outputs);
  },
  /** Writes a graph file: .webnn and .json in the WebNN graph tools' format, other names in Headrace's. */
  save(path) {
    return promising(() => {
      const state = toGraph(this, 'save: this');
      requireArguments('save', arguments.length, 1);
      const { quantized } = toDictionary(arguments[1], 'save: options');
      const file = toUSVString(path, 'save: path');
      checkLive(state.context, 'save');
      if (state.destroyed) throw invalidState('save: the graph has been destroyed');
      const work = state.context.backend.saveGraph(state.handle, file, Boolean(quantized));
      return pendingOf(state.context, null, work, () => undefined);
    });
  },
};

const contextMembers = {
  /** What was taken: "cpu" or a device's name. */
  get device() {
    return toContext(this, 'device: this').device;
  },
  /** A graph that save() wrote, compiled for this context. */
  loadGraph(path) {
    return promising(() => {
      const context = toContext(this, 'loadGraph: this');
      requireArguments('loadGraph', arguments.length, 1);
      const file = toUSVString(path, 'loadGraph: path');
      checkLive(context, 'loadGraph');
      const named = (tensors) =>
        tensors.map(({ name, dataType, shape }) => [name, { dataType, shape: Object.freeze(shape) }]);
      const finish = ({ handle, inputs, outputs }) =>
        newGraph({ context, handle, inputs: named(inputs), outputs: named(outputs) });
      return pendingOf(context, null, context.backend.loadGraph(context.handle, file), finish);
    });
  },
};

function addMembers(type, members) {
  for (const [name, property] of Object.entries(Object.getOwnPropertyDescriptors(members)))
    Object.defineProperty(type.prototype, name, { ...property, enumerable: true });
}

/** Once, for all contexts of this environment. */
export function enableExtensions({ MLContext }) {
  if (ahead.isOn) return;
  ahead.isOn = true;
  addMembers(MLGraph, graphMembers);
  addMembers(MLContext, contextMembers);
}
