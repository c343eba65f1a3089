// Guests of one process of Node, each opened by the addon: node node_guests.mjs ADDON.node LIBRARY.so MODEL.onnx
// Prints what their calls gave as JSON.
import { createRequire } from 'node:module';
import { resolve } from 'node:path';
import { WasiNn } from '../../examples/wasi_nn/node/wasi_nn.mjs';

const [addon, library, model] = process.argv.slice(2);
const { open } = createRequire(import.meta.url)(resolve(addon));
const config = JSON.stringify({ model_aliases: { m: resolve(model) }, max_graphs: 1, max_contexts: 1, log_level: 'none' });
const NAME = 0, WORD = 16, TEXT = 64, SIZE = 4096;

class Guest {
  memory = new ArrayBuffer(SIZE);
  constructor() {
    this.nn = open(resolve(library), config);
    new Uint8Array(this.memory)[NAME] = 'm'.charCodeAt();
  }
  call(name, ...numbers) { return this.nn.imports[name](this.memory, ...numbers); }
  word() { return new Uint32Array(this.memory, WORD, 1)[0]; }
  load() { return [this.call('load_by_name', NAME, 1, WORD), this.word()]; }
  context(graph) { return [this.call('init_execution_context', graph, WORD), this.word()]; }
  lastFailure() {
    this.call('get_output', 0, 1, TEXT, SIZE - TEXT, WORD);
    return JSON.parse(Buffer.from(this.memory, TEXT, this.word()).toString()).error.message;
  }
}
function thrown(call) {
  try { call(); } catch (error) { return error.message; }
  return null;
}

const first = new Guest(), second = new Guest(), told = {};
told.loaded = first.load();
told.opened = first.context(told.loaded[1]);
told.handlesOfAnother = [second.call('compute', told.opened[1]), second.call('unload', told.loaded[1]), second.context(told.loaded[1])[0]];
told.whyNot = second.lastFailure();
told.ownLimit = first.load()[0];
told.secondLoads = second.load();
const { compute } = first.nn.imports;
first.nn.close();
first.nn.close();
told.closed = thrown(() => compute(first.memory, told.opened[1]));
told.secondGoesOn = second.context(told.secondLoads[1]);
told.wrongCalls = [() => open(), () => open(library), () => open('/no/such.so', '{}'), () => open(resolve(library), '{"n_threads": []}')].map(thrown);
second.nn.close();

// Components of one process.
const component = () => new WasiNn(open(resolve(library), config)).imports()['wasi:nn/graph'];
const [here, there] = [component(), component()];
told.components = [here, there].map(({ loadByName }) => typeof loadByName('m').initExecutionContext());
told.componentsOwnLimit = thrown(() => here.loadByName('m'));
globalThis.gc?.();
console.log(JSON.stringify(told));
