// Sentences whose meaning is nearest to a question, by all-MiniLM-L6-v2.
import { load, loadTokenizer } from '../../node/lib/web/index.js';
import { dot, embed } from '../node/embed.mjs';

const $ = (id) => document.getElementById(id);
let opened;

function open() {
  opened ??= fetchAll().catch((error) => {
    opened = undefined;
    throw error;
  });
  return opened;
}

async function fetchAll() {
  const bar = $('search-progress');
  bar.hidden = false;
  const progress = ({ loaded, total }) => {
    bar.max = total || loaded;
    bar.value = loaded;
  };
  try {
    return await Promise.all([
      loadTokenizer('/models/minilm/tokenizer.json'),
      load('/models/minilm/onnx/model.onnx', { progress }),
    ]);
  } finally {
    bar.hidden = true;
  }
}

const known = new Map(); // vectors of sentences

/** Sentences of near lengths are one batch, as all are filled up to the longest. */
const byLength = (a, b) => a.length - b.length;

async function show() {
  const sentences = [
    ...new Set(
      $('text')
        .value.split('\n')
        .map((line) => line.trim()),
    ),
  ].filter(Boolean);
  const begin = performance.now();
  const [tokenizer, model] = await open();
  const fresh = sentences.filter((sentence) => !known.has(sentence)).sort(byLength);
  for (let i = 0; i < fresh.length; i += 16) {
    const some = fresh.slice(i, i + 16);
    const vectors = await embed(tokenizer, model, some);
    some.forEach((sentence, j) => known.set(sentence, vectors[j]));
    $('search-note').textContent = `${Math.min(i + 16, fresh.length)} of ${fresh.length} sentences read …`;
  }
  const [wanted] = await embed(tokenizer, model, [$('question').value]);
  const scores = sentences.map((sentence) => [dot(known.get(sentence), wanted), sentence]);
  scores.sort(([a], [b]) => b - a);
  $('found').replaceChildren(
    ...scores.slice(0, 5).map(([score, sentence]) => {
      const item = document.createElement('li');
      item.textContent = `${sentence} (${score.toFixed(2)})`;
      return item;
    }),
  );
  const took = (performance.now() - begin).toFixed(0);
  $('search-note').textContent = `${fresh.length} new sentences and the question in ${took} ms.`;
}

export async function search() {
  if (!navigator.connection?.saveData) open().catch(() => {}); // a search tries again, and tells
  $('text').value = await (await fetch('/examples/data/sentences.txt')).text();
  $('search').addEventListener('submit', (event) => {
    event.preventDefault();
    $('search-note').textContent = 'Loading the model …';
    show().catch((error) => ($('search-note').textContent = `It failed: ${error.message}`));
  });
}
