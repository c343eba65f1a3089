// What bench/in_browser.py calls: one model on headrace/web and on onnxruntime-web, in turns.
import * as ort from '/build/onnxruntime-web/node_modules/onnxruntime-web/dist/ort.wasm.min.mjs';
import { install, load } from '../../node/lib/web/index.js';

const arrays = { float32: Float32Array, int64: BigInt64Array };
const leastMs = 100; // of a turn
const pauseMs = 200; // before it: after a run, ONNX Runtime's threads spin for a while, on the processors that we need

window.start = async (threads) => {
  ort.env.wasm.numThreads = threads;
  ort.env.wasm.wasmPaths = '/build/onnxruntime-web/node_modules/onnxruntime-web/dist/';
  const ours = await install({ threads, force: true });
  return `headrace/web: ${ours.threads}, onnxruntime-web: ${threads} threads; isolated: ${crossOriginIsolated}`;
};

function arrayOf({ type, dims, data }) {
  const length = dims.reduce((a, b) => a * b, 1);
  return arrays[type].from({ length }, (_, i) => (type === 'int64' ? BigInt(data[i]) : Math.sin(i)));
}

/** Milliseconds a run, of as many as take leastMs. */
async function turn(run) {
  await new Promise((resolve) => setTimeout(resolve, pauseMs));
  await run(); // wakes threads again
  const begin = performance.now();
  let runs = 0;
  do {
    await run();
    runs += 1;
  } while (performance.now() - begin < leastMs);
  return (performance.now() - begin) / runs;
}

const compared = async ({ model: url, inputs, rounds }) => {
  const given = Object.entries(inputs).map(([name, input]) => [name, { ...input, data: arrayOf(input) }]);
  const model = await load(url);
  const session = await ort.InferenceSession.create(url, { executionProviders: ['wasm'] });
  const ours = Object.fromEntries(given.map(([name, { data, dims }]) => [name, { data, dims }]));
  const theirs = () =>
    Object.fromEntries(given.map(([name, { type, data, dims }]) => [name, new ort.Tensor(type, data, dims)]));
  const runs = { headrace: () => model.run(ours), onnxruntime: () => session.run(theirs()) };

  const times = { headrace: [], onnxruntime: [] };
  const [a, b] = [await runs.headrace(), await runs.onnxruntime()];
  const [name] = session.outputNames;
  const difference = a[name].data.reduce((most, v, i) => Math.max(most, Math.abs(v - b[name].data[i])), 0);
  for (let i = 0; i < 8; i += 1) for (const run of Object.values(runs)) await turn(run); // compiled by then
  for (let i = 0; i < rounds; i += 1)
    for (const [who, run] of Object.entries(runs)) times[who].push(await turn(run));
  model.dispose();
  await session.release();
  return { ...times, difference };
};

/** WebDriver wants an Error without a code; onnxruntime-web throws numbers, too. */
window.compare = (given) =>
  compared(given).catch((error) => {
    throw new Error(String(error));
  });
