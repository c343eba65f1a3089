// Sentences whose meaning is nearest to a question, by all-MiniLM-L6-v2.
import { load, loadTokenizer } from '../../node/lib/web/index.js';
import { dot, embed } from '../node/embed.mjs';
import { keptVectors } from './vectors.mjs';

const $ = (id) => document.getElementById(id);
const url = '/models/minilm/onnx/model.onnx';
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
    return await Promise.all([loadTokenizer('/models/minilm/tokenizer.json'), load(url, { progress })]);
  } finally {
    bar.hidden = true;
  }
}

const known = keptVectors(url); // of sentences
let reading = Promise.resolve();

/** Sentences of near lengths are one batch, as all are filled up to the longest. */
const byLength = (a, b) => a.length - b.length;

function sentencesOf(text) {
  const lines = text.split('\n').map((line) => line.trim());
  return [...new Set(lines)].filter(Boolean);
}

/** Gives all those that have no vector one. */
async function readNow(sentences) {
  const { vectors, keep } = await known;
  const fresh = sentences.filter((sentence) => !vectors.has(sentence)).sort(byLength);
  if (fresh.length === 0) return;
  const [tokenizer, model] = await open();
  for (let i = 0; i < fresh.length; i += 16) {
    const some = fresh.slice(i, i + 16);
    const made = await embed(tokenizer, model, some);
    some.forEach((sentence, j) => vectors.set(sentence, made[j]));
    $('search-note').textContent = `${Math.min(i + 16, fresh.length)} of ${fresh.length} sentences are read.`;
  }
  keep();
}

/** After what is read already: nothing is read twice. */
function read(sentences) {
  reading = reading.catch(() => {}).then(() => readNow(sentences));
  return reading;
}

async function show() {
  const sentences = sentencesOf($('text').value);
  const begin = performance.now();
  const { vectors } = await known;
  const fresh = sentences.filter((sentence) => !vectors.has(sentence)).length;
  await read(sentences);
  const [tokenizer, model] = await open();
  const [wanted] = await embed(tokenizer, model, [$('question').value]);
  const scores = sentences.map((sentence) => [dot(vectors.get(sentence), wanted), sentence]);
  scores.sort(([a], [b]) => b - a);
  $('found').replaceChildren(
    ...scores.slice(0, 5).map(([score, sentence]) => {
      const item = document.createElement('li');
      item.textContent = `${sentence} (${score.toFixed(2)})`;
      return item;
    }),
  );
  const took = (performance.now() - begin).toFixed(0);
  $('search-note').textContent = `${fresh} new sentences and the question in ${took} ms.`;
}

/** Resolves when the page has its text, and the model has read it ahead. */
export async function search() {
  const isFree = !navigator.connection?.saveData; // a search tries again what fails, and tells
  if (isFree) open().catch(() => {});
  $('text').value = await (await fetch('/examples/data/sentences.txt')).text();
  $('search').addEventListener('submit', (event) => {
    event.preventDefault();
    $('search-note').textContent = 'Loading the model …';
    show().catch((error) => ($('search-note').textContent = `It failed: ${error.message}`));
  });
  if (isFree) await Promise.all([open(), read(sentencesOf($('text').value))]).catch(() => {});
}
