// A worker or a process with much to do: by its argument it computes once, goes on forever, or ends in the middle.
import { isMainThread, parentPort, workerData } from 'node:worker_threads';

import '../../node/webnn.mjs';

const task = isMainThread ? process.argv[2] : workerData;
const context = await navigator.ml.createContext({ accelerated: false });
const builder = new MLGraphBuilder(context);
const size = task === 'once' ? [2] : [64, 64];
const descriptor = { dataType: 'float32', shape: size };
const x = builder.input('x', descriptor);
const graph = await builder.build({
  y: task === 'once' ? builder.add(x, x) : builder.matmul(builder.matmul(x, x), x),
});
const read = await context.createTensor({ ...descriptor, writable: true });
const written = await context.createTensor({ ...descriptor, readable: true });

const enqueue = () => {
  for (let i = 0; i < 1000; i += 1) context.dispatch(graph, { x: read }, { y: written });
};

if (task === 'once') {
  context.writeTensor(read, Float32Array.of(2, 4));
  context.dispatch(graph, { x: read }, { y: written });
  parentPort.postMessage([...new Float32Array(await context.readTensor(written))]);
} else if (task === 'forever') {
  parentPort.postMessage('begun');
  for (;;) {
    enqueue();
    await Promise.all([
      context.readTensor(written),
      context.createTensor(descriptor),
      context.readTensor(written),
    ]);
  }
} else {
  enqueue();
  const waiting = context.readTensor(written);
  if (task === 'exits') process.exit(3);
  if (task === 'throws') throw new Error('on purpose');
  await waiting;
}
