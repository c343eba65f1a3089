// examples/node, as a reader would run them.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { fileURLToPath } from 'node:url';

const inTree = (path) => fileURLToPath(new URL(`../../${path}`, import.meta.url));
const folder = mkdtempSync(join(tmpdir(), 'headrace-examples-'));
after(() => rmSync(folder, { recursive: true }));

/** What an example prints. */
function printed(name, args = [], input = '') {
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    [inTree(`examples/node/${name}.mjs`), ...args],
    {
      encoding: 'utf8',
      input,
      timeout: 300000,
    },
  );
  assert.equal(status, 0, stderr);
  return stdout;
}

test('digits: a network that is trained here tells what is drawn', () => {
  const graph = join(folder, 'digits.hrg');
  const share = Number(/^([\d.]+) %/.exec(printed('train_digits', [graph]))[1]);
  assert.ok(share > 95, `${share} %`);
  assert.match(printed('digits', [inTree('examples/node/digit.txt'), graph]), /\n3: [\d.]+ %\n/);
  const seven = join(folder, 'seven.txt');
  writeFileSync(seven, '########\n      ##\n     ##\n    ##\n    ##\n   ##\n   ##\n  ##\n');
  assert.match(printed('digits', [seven, graph]), /\n\n7: [\d.]+ %\n/);
});

test('digits: says how the network is made where there is none', () => {
  const run = [
    inTree('examples/node/digits.mjs'),
    inTree('examples/node/digit.txt'),
    join(folder, 'none.hrg'),
  ];
  const { status, stderr } = spawnSync(process.execPath, run, { encoding: 'utf8' });
  assert.deepEqual([status, stderr.includes('train_digits.mjs makes it')], [1, true]);
});

const hasModels = existsSync(inTree('node/native/headrace-llm.node'));
test(
  'chat: each line is answered until one is empty',
  { skip: !hasModels && 'this build has no llama.cpp' },
  () => {
    assert.match(printed('chat', [], 'Hello\n\n'), /> .*\w.*\n> /);
  },
);

const hasMiniLM = existsSync(inTree('build/models/minilm/onnx/model.onnx'));
const whyNot =
  !hasMiniLM && 'build/models/minilm is not there: python examples/node/export_minilm.py writes it';
test('semantic search: the sentence of the same meaning comes first', { skip: whyNot }, () => {
  const [question, best] = printed('semantic_search', ['How do I mend a flat bicycle tyre?'])
    .trim()
    .split('\n');
  assert.equal(question, 'How do I mend a flat bicycle tyre?');
  assert.match(best, /^ {2}0\.\d+ {2}Patch the inner tube/);
});
