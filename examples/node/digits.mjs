// Tells which digit a drawing is: a text of marks and blanks, of any size.
//
//     node examples/node/train_digits.mjs
//     node examples/node/digits.mjs [DRAWING.txt [GRAPH.hrg]]
import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

import { load } from '../../node/headrace.mjs'; // 'headrace' where the package is installed
import { normalized, ofText } from './drawings.mjs';

const inTree = (path) => fileURLToPath(new URL(path, import.meta.url));
const [drawing = inTree('digit.txt'), graph = inTree('../../build/models/digits.hrg')] =
  process.argv.slice(2);
if (!existsSync(graph)) {
  console.error(`${graph} is not there: node examples/node/train_digits.mjs makes it`);
  process.exit(1);
}
const text = readFileSync(drawing, 'utf8');
const model = await load(graph);
const { probabilities } = await model.run({ image: normalized(ofText(text)) });
const order = [...probabilities.data.keys()].sort((a, b) => probabilities.data[b] - probabilities.data[a]);
console.log(text);
for (const digit of order.slice(0, 3))
  console.log(`${digit}: ${(100 * probabilities.data[digit]).toFixed(1)} %`);
