// examples/node, as a reader would run them.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { fileURLToPath } from 'node:url';

import { normalized, ofText } from '../../examples/node/drawings.mjs';
import { load } from '../../node/headrace.mjs';

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

/** [digit, rows] of each drawing by hand in hand_drawn.txt. */
const handDrawn = readFileSync(inTree('tests/node/hand_drawn.txt'), 'utf8')
  .split(/^= /m)
  .slice(1)
  .map((part) => [Number(part[0]), ofText(part.slice(2))]);

/** The drawing turned, slanted, larger by a scale, with a thicker pen. */
function changed(rows, { angle, slant, scale, pen }) {
  const [height, width] = [rows.length, Math.max(...rows.map(({ length }) => length))];
  const side = Math.ceil(Math.max(height, width) * scale * 1.8);
  const [s, c] = [Math.sin(angle), Math.cos(angle)];
  const isMarked = (u, v) => {
    const [x, y] = [c * u + s * v + slant * v + width / 2, c * v - s * u + height / 2];
    return rows[Math.floor(y)]?.[Math.floor(x)] === 1;
  };
  const touches = [[0, 0], [pen, 0], [-pen, 0], [0, pen], [0, -pen]]; // prettier-ignore
  const place = (i) => (i + 0.5 - side / 2) / scale;
  return Array.from({ length: side }, (_, row) =>
    Array.from({ length: side }, (__, column) =>
      Number(touches.some(([dx, dy]) => isMarked(place(column) + dx, place(row) + dy))),
    ),
  );
}

function* changes() {
  for (const angle of [-0.15, 0, 0.15])
    for (const slant of [-0.2, 0, 0.2])
      for (const scale of [1, 1.7, 3]) for (const pen of [0, 0.4]) yield { angle, slant, scale, pen };
}

test('digits: a network that is trained here tells what is drawn', async () => {
  const graph = join(folder, 'digits.hrg');
  const share = Number(/^([\d.]+) %/.exec(printed('train_digits', [graph]))[1]);
  assert.ok(share > 95, `${share} %`);
  assert.match(printed('digits', [inTree('examples/node/digit.txt'), graph]), /\n3: [\d.]+ %\n/);
  const seven = join(folder, 'seven.txt');
  writeFileSync(seven, '########\n      ##\n     ##\n    ##\n    ##\n   ##\n   ##\n  ##\n');
  assert.match(printed('digits', [seven, graph]), /\n\n7: [\d.]+ %\n/);

  const model = await load(graph, { device: 'cpu' });
  const told = async (rows) => {
    const { data } = (await model.run({ image: normalized(rows) })).probabilities;
    return data.indexOf(Math.max(...data));
  };
  for (const [digit, rows] of handDrawn) assert.equal(await told(rows), digit, rows.join('\n'));
  let [right, all] = [0, 0];
  for (const [digit, rows] of handDrawn)
    for (const change of changes()) {
      all += 1;
      if ((await told(changed(rows, change))) === digit) right += 1;
    }
  assert.ok(all > 1000 && right / all > 0.94, `${right} of ${all}`);
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
