// The worker that computes. Its first message says which module; the rest are calls.
import { startAddon } from './start_addon.js';
import { answering, callsOn } from './worker_calls.js';

const post = (message, moved = []) => self.postMessage(message, moved);
let isOver = false;
function fatal(error) {
  if (isOver) return;
  isOver = true;
  post({ ended: String(error?.message ?? error) });
}

self.onmessage = async ({ data: { factory, module, threads } }) => {
  const waiting = [];
  self.onmessage = ({ data }) => waiting.push(data);
  try {
    const { default: make } = await import(factory);
    const started = await startAddon(make, module, { threads, onAbort: fatal });
    started.napi.onFatal = fatal;
    const answer = answering(callsOn(started, post), post, fatal);
    waiting.forEach(answer);
    self.onmessage = ({ data }) => answer(data);
  } catch (error) {
    fatal(error);
  }
};
