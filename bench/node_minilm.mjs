// all-MiniLM-L6-v2 in JavaScript, beside onnxruntime-node where HEADRACE_TRANSFORMERS names a folder in which it is
// installed, and beside build/bin/headrace, which is C++ alone: milliseconds a sentence of LENGTH tokens, 16 where none is
// given, the median of 450 runs, in turns, on as many threads.
//
//     python examples/node/export_minilm.py
//     HEADRACE_TRANSFORMERS=… node bench/node_minilm.mjs [THREADS [LENGTH]]
import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

import { load } from '../node/headrace.mjs';

const threads = Number(process.argv[2] ?? 1);
const path = fileURLToPath(new URL('../build/models/minilm/onnx/model.onnx', import.meta.url));
const program = fileURLToPath(new URL('../build/bin/headrace', import.meta.url));
const length = Number(process.argv[3] ?? 16);
const dims = [1, length];
const ids = BigInt64Array.from({ length }, (_, i) => BigInt(1000 + 7 * i));
const mask = new BigInt64Array(length).fill(1n);

const model = await load(path, { device: 'cpu', threads });
const runs = {
  Headrace: async () =>
    (await model.run({ input_ids: { data: ids, dims }, attention_mask: { data: mask, dims } }))
      .sentence_embedding.data,
};
if (process.env.HEADRACE_TRANSFORMERS) {
  const require = createRequire(join(process.env.HEADRACE_TRANSFORMERS, 'package.json'));
  const ort = require('onnxruntime-node');
  const session = await ort.InferenceSession.create(path, { intraOpNumThreads: threads });
  const feeds = {
    input_ids: new ort.Tensor('int64', ids, dims),
    attention_mask: new ort.Tensor('int64', mask, dims),
  };
  runs['onnxruntime-node'] = async () => (await session.run(feeds)).sentence_embedding.data;
}

/** [median, least] milliseconds of the command line: C++ on memory of its own, which stays. */
function compiled() {
  const files = mkdtempSync(join(tmpdir(), 'headrace-bench-'));
  const inputs = Object.entries({ input_ids: ids, attention_mask: mask }).flatMap(([name, data]) => {
    const header =
      `{'descr': '<i8', 'fortran_order': False, 'shape': (${dims.join(', ')}), }`.padEnd(117) + '\n';
    const file = join(files, `${name}.npy`);
    const magic = Buffer.from('\x93NUMPY\x01\x00\x76\x00', 'latin1');
    writeFileSync(file, Buffer.concat([magic, Buffer.from(header), Buffer.from(data.buffer)]));
    return ['--input', `${name}=${file}`];
  });
  const options = ['--peer', 'none', '--device', 'cpu', '--threads', threads, '--rounds', '2'];
  const { stdout, stderr } = spawnSync(program, ['bench', path, ...inputs, ...options], { encoding: 'utf8' });
  rmSync(files, { recursive: true });
  const found = /median ([\d.]+) ms +min ([\d.]+)/.exec(stdout);
  if (!found) throw new Error(`${program}: ${stderr}`);
  return found.slice(1).map(Number);
}

const times = Object.fromEntries(Object.keys(runs).map((name) => [name, []]));
const results = {};
const compiledTimes = [];
// In blocks: after a run, ONNX Runtime's threads spin for a while.
for (let block = 0; block < 9; block += 1) {
  for (const [name, run] of Object.entries(runs)) {
    await sleep(200);
    for (let i = 0; i < 60; i += 1) {
      const begin = performance.now();
      results[name] = await run();
      if (i >= 10) times[name].push(performance.now() - begin);
    }
  }
  if (existsSync(program)) compiledTimes.push(compiled());
}
const medianOf = (list) => list.sort((a, b) => a - b)[list.length >> 1];
const told = Object.entries(times).map(([name, list]) => [name, medianOf(list), list[0]]);
if (compiledTimes.length > 0)
  told.push([
    'C++',
    medianOf(compiledTimes.map(([median]) => median)),
    medianOf(compiledTimes.map(([, least]) => least)),
  ]);
for (const [name, median, least] of told)
  console.log(`${name}: ${median.toFixed(3)} ms, at least ${least.toFixed(3)}`);
const [ours, theirs] = Object.values(results);
if (theirs) {
  const difference = Math.max(...ours.map((value, i) => Math.abs(value - theirs[i])));
  console.log(`largest difference: ${difference.toExponential(1)}`);
}
