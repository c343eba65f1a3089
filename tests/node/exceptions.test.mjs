// docs/javascript-errors.md: each row of its tables gives what the row says, after the program above the table.
import assert from 'node:assert/strict';
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { fileURLToPath, pathToFileURL } from 'node:url';

import { onnxModel } from './onnx_models.mjs';

const root = fileURLToPath(new URL('../..', import.meta.url));
const hasLanguageModels = existsSync(join(root, 'node/native/headrace-llm.node'));
const folder = mkdtempSync(join(tmpdir(), 'headrace-exceptions-'));
const home = process.cwd();
process.chdir(folder);
after(() => {
  process.chdir(home);
  rmSync(folder, { recursive: true });
});

mkdirSync('node_modules');
symlinkSync(join(root, 'node'), 'node_modules/headrace');
copyFileSync(join(root, 'models/tiny-chat-q8_0.gguf'), 'model.gguf');
const images = { inputs: [['image', 'float32', ['batch', 1024]]], outputs: [['y', 'float32', ['batch', 1024]]] };
for (const [name, op] of [['model', 'Relu'], ['foreign', 'NoSuchOperator']])
  writeFileSync(`${name}.onnx`, onnxModel({ nodes: [{ op, inputs: ['image'], outputs: ['y'] }], ...images }));

const page = readFileSync(join(root, 'docs/javascript-errors.md'), 'utf8');
const part = /^```js title="([\w-]+)\.mjs"\n([^]*?)^```\n\n\| call \| when \| gives \|\n\|---\|---\|---\|\n((?:\|.*\n)+)/gm;
const parts = [...page.matchAll(part)].map(([, title, program, table]) => ({
  title,
  program,
  rows: [...table.matchAll(/^\| `(.+)` \| .+ \| (.+) \|$/gm)].map(([, call, gives]) => ({ call, gives })),
  lines: table.trim().split('\n').length,
}));

/** "rejects, HeadraceError (io)" of a call. */
async function given(call) {
  let promise;
  const text = (how, { name, code }) => `${how}, ${name}${name === 'HeadraceError' ? ` (${code})` : ''}`;
  try {
    promise = call();
  } catch (error) {
    return text('throws', error);
  }
  if (typeof promise?.then !== 'function') return 'nothing';
  return promise.then(
    () => 'nothing',
    (error) => text('rejects', error),
  );
}

test('the page has a table for each of its four programs, and all of their rows are read', () => {
  assert.deepEqual(
    parts.map(({ title }) => title),
    ['models', 'language-models', 'webnn', 'onnxruntime-node'],
  );
  for (const { rows, lines } of parts) assert.equal(rows.length, lines);
  assert.ok(parts.flatMap(({ rows }) => rows).length > 60);
});

for (const { title, program, rows } of parts) {
  const skip = title === 'language-models' && !hasLanguageModels && 'this build has no llama.cpp';
  test(`the calls of ${title} give what the page says`, { skip }, async () => {
    const file = join(folder, `${title}.mjs`);
    const calls = rows.map(({ call }) => `() => ${call}`).join(',\n');
    writeFileSync(file, `${program}\nexport const calls = [${calls}];\n`);
    const { calls: made } = await import(pathToFileURL(file));
    const wrong = [];
    for (const [i, { call, gives }] of rows.entries()) {
      const was = await given(made[i]);
      if (was !== gives) wrong.push(`${call}: ${was}, and not: ${gives}`);
    }
    assert.deepEqual(wrong, []);
  });
}
