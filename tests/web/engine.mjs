// An engine as lib/web/engine.js makes it, whose worker is on this thread, behind a MessageChannel.
import { MessageChannel } from 'node:worker_threads';

import { modelsOn } from '../../node/lib/web/models.js';
import { Remote } from '../../node/lib/web/remote.js';
import { webnnBackend } from '../../node/lib/web/webnn_backend.js';
import { answering, callsOn } from '../../node/lib/web/worker_calls.js';
import { createML, install } from '../../node/lib/webnn/index.js';

/**
 * `local`: what the page has, `started`: what its worker has, both {addon, napi, files}. Gives {ml, load, connect, end,
 * close}: after end() the next context has another worker.
 */
export function engineOn(local, started) {
  const ports = [];
  let remote;
  const connect = () => {
    if (remote && !remote.hasEnded) return remote;
    const { port1, port2 } = new MessageChannel();
    ports.push(port1);
    const post = (message, moved) => port2.postMessage(message, moved);
    const fatal = (error) => post({ ended: error.message });
    started.napi.onFatal = fatal;
    port2.on('message', answering(callsOn(started, post), post, fatal));
    remote = new Remote(port1);
    return remote;
  };
  const ml = createML(webnnBackend(local, connect));
  install(globalThis, ml);
  return { ml, ...modelsOn(connect), connect, close: () => ports.forEach((port) => port.close()) };
}
