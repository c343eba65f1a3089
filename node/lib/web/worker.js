// The worker that computes. Its first message says with which factory; one is the module, and the rest are calls.
import { startAddon } from './start_addon.js';
import { answering, callsOn } from './worker_calls.js';

const post = (message, moved = []) => self.postMessage(message, moved);
let isOver = false;
function fatal(error) {
  if (isOver) return;
  isOver = true;
  post({ ended: String(error?.message ?? error) });
}

/** What Emscripten takes for a worker of this one: the page has it (thread.js), and a port leads there. */
self.Worker = class {
  onmessage = null;
  #port;
  constructor(url) {
    const { port1, port2 } = new MessageChannel();
    this.#port = port1;
    port1.onmessage = (event) => this.onmessage(event);
    post({ thread: { factory: String(url), port: port2 } }, [port2]);
  }
  postMessage(message, moved) {
    this.#port.postMessage(message, moved);
  }
};

const waiting = [];
let receive;
const module = new Promise((resolve) => {
  receive = resolve;
});

async function start(factory, threads) {
  const [{ default: make }, compiled] = await Promise.all([import(factory), module]);
  const started = await startAddon(make, compiled, { threads, onAbort: fatal });
  started.napi.onFatal = fatal;
  const answer = answering(callsOn(started, post), post, fatal);
  waiting.forEach(answer);
  self.onmessage = ({ data }) => answer(data);
}

self.onmessage = ({ data: { factory, threads } }) => {
  self.onmessage = ({ data }) => {
    if (data instanceof WebAssembly.Module) receive(data);
    else waiting.push(data);
  };
  start(factory, threads).catch(fatal);
};
