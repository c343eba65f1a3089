// Trains a small network (144 -> 64 -> 10) on drawings of digits that are made up, in some seconds, and saves it as a
// graph by WebNN.
//
//     node examples/node/train_digits.mjs [GRAPH.hrg]
import { mkdirSync } from 'node:fs';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';

import '../../node/webnn-extensions.mjs'; // 'headrace/webnn/extensions' where the package is installed
import { drawn, random, size } from './drawings.mjs';

const path = process.argv[2] ?? fileURLToPath(new URL('../../build/models/digits.hrg', import.meta.url));
const [inputs, hidden, outputs] = [size * size, 64, 10];
const next = random(7);

/** Weights, row by row for each input, and their momentum. */
const layer = (from, to) => ({
  from,
  to,
  w: Float32Array.from({ length: from * to }, () => (next() * 2 - 1) * Math.sqrt(3 / from)),
  b: new Float32Array(to),
  vw: new Float32Array(from * to),
  vb: new Float32Array(to),
});
const [first, second] = [layer(inputs, hidden), layer(hidden, outputs)];

function forward({ from, to, w, b }, x) {
  const y = Float32Array.from(b);
  for (let i = 0; i < from; i += 1)
    if (x[i] !== 0) for (let j = 0; j < to; j += 1) y[j] += x[i] * w[i * to + j];
  return y;
}

/** One step of gradient descent; what the layer's input should change by. */
function learn({ from, to, w, b, vw, vb }, x, dy, rate) {
  const dx = new Float32Array(from);
  for (let i = 0; i < from; i += 1)
    for (let j = 0; j < to; j += 1) {
      const at = i * to + j;
      dx[i] += dy[j] * w[at];
      vw[at] = 0.5 * vw[at] - rate * dy[j] * x[i];
      w[at] += vw[at];
    }
  for (let j = 0; j < to; j += 1) {
    vb[j] = 0.5 * vb[j] - rate * dy[j];
    b[j] += vb[j];
  }
  return dx;
}

function hiddenOf(x) {
  return forward(first, x).map((value) => Math.max(0, value));
}

function step(x, digit, rate) {
  const h = hiddenOf(x);
  const y = forward(second, h);
  const most = Math.max(...y);
  const exps = y.map((value) => Math.exp(value - most));
  const sum = exps.reduce((a, b) => a + b);
  const dy = exps.map((value, i) => value / sum - (i === digit ? 1 : 0));
  const dh = learn(second, h, dy, rate).map((value, i) => (h[i] > 0 ? value : 0));
  learn(first, x, dh, rate);
}

const drawings = Array.from({ length: 12_000 }, (_, i) => ({ digit: i % 10, image: drawn(i % 10, next) }));
const steps = 60_000;
for (let i = 0; i < steps; i += 1) {
  const { digit, image } = drawings[Math.floor(next() * drawings.length)];
  step(image, digit, 0.015 * (1 - i / steps) + 0.0005);
}

let right = 0;
for (let i = 0; i < 2000; i += 1) {
  const y = forward(second, hiddenOf(drawn(i % 10, next)));
  if (y.indexOf(Math.max(...y)) === i % 10) right += 1;
}
console.log(`${((100 * right) / 2000).toFixed(1)} % of 2,000 other drawings are told right`);

const context = await navigator.ml.createContext();
const builder = new MLGraphBuilder(context);
const constant = (values, ...shape) => builder.constant({ dataType: 'float32', shape }, values);
const product = (x, { from, to, w, b }) => builder.gemm(x, constant(w, from, to), { c: constant(b, to) });
const image = builder.input('image', { dataType: 'float32', shape: [1, inputs] });
const graph = await builder.build({
  probabilities: builder.softmax(product(builder.relu(product(image, first)), second), 1),
});
mkdirSync(dirname(path), { recursive: true });
await graph.save(path);
console.log(path);
