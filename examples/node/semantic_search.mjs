// Semantic search with the real all-MiniLM-L6-v2: sentences of a text whose meaning is nearest to a question.
//
//     python examples/node/export_minilm.py
//     node examples/node/semantic_search.mjs ["a question" ...]
import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

import { Tokenizer, load } from '../../node/headrace.mjs'; // 'headrace' where the package is installed
import { dot, embed } from './embed.mjs';

const folder = new URL('../../build/models/minilm/', import.meta.url);
if (!existsSync(folder)) {
  console.error(`${fileURLToPath(folder)} is not there: python examples/node/export_minilm.py makes it`);
  process.exit(1);
}
const text = readFileSync(new URL('../data/sentences.txt', import.meta.url), 'utf8');
const sentences = text.split('\n').filter((line) => line.trim());
const asked = process.argv.slice(2);
const questions =
  asked.length > 0 ? asked : ['How do I mend a flat bicycle tyre?', 'a song to help a child fall asleep'];

const [tokenizer, model] = await Promise.all([
  Tokenizer.load(new URL('tokenizer.json', folder)),
  load(new URL('onnx/model.onnx', folder)),
]);

const begin = performance.now();
const vectors = await embed(tokenizer, model, sentences);
const milliseconds = performance.now() - begin;
const wanted = await embed(tokenizer, model, questions);
questions.forEach((question, i) => {
  console.log(`\n${question}`);
  const scores = vectors.map((vector, at) => [dot(vector, wanted[i]), sentences[at]]);
  scores.sort(([a], [b]) => b - a);
  for (const [score, sentence] of scores.slice(0, 3)) console.log(`  ${score.toFixed(3)}  ${sentence}`);
});
console.log(`\n${sentences.length} sentences in ${milliseconds.toFixed(0)} ms`);
