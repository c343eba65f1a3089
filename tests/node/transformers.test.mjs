// transformers.js on Headrace by one line, and the same on the real onnxruntime-node. Both come from a folder that
// HEADRACE_TRANSFORMERS names: npm install @huggingface/transformers. The model is examples/node/export_minilm.py's.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

const inTree = (path) => fileURLToPath(new URL(`../../${path}`, import.meta.url));
const folder = process.env.HEADRACE_TRANSFORMERS ?? inTree('node');
const packages = join(folder, 'node_modules', '@huggingface', 'transformers');
const models = inTree('build/models/');

function whyNot() {
  if (!existsSync(packages))
    return `${packages} is not there: make test-transformers installs it, or HEADRACE_TRANSFORMERS names a folder that has it`;
  if (!existsSync(join(models, 'minilm', 'onnx', 'model.onnx')))
    return 'build/models/minilm is not there: python examples/node/export_minilm.py writes it';
  return false;
}
const skip = whyNot();

function vectors(...register) {
  const entry = createRequire(join(packages, 'package.json')).resolve('@huggingface/transformers');
  const program = inTree('tests/node/transformers.mjs');
  const { stdout, stderr, status } = spawnSync(process.execPath, [program, entry, models, ...register], {
    encoding: 'utf8',
    timeout: 300000,
  });
  assert.equal(status, 0, stderr);
  return JSON.parse(stdout);
}

test('transformers.js gives on Headrace what it gives on ONNX Runtime', { skip }, () => {
  const ours = vectors(inTree('node/onnxruntime-node/register.cjs'));
  const peer = vectors();
  assert.match(ours.session, /#handler/);
  assert.notEqual(ours.session, peer.session);
  assert.deepEqual(ours.dims, [2, 384]);
  assert.deepEqual(peer.dims, ours.dims);
  const difference = Math.max(...ours.data.map((value, i) => Math.abs(value - peer.data[i])));
  assert.ok(difference < 1e-5, `${difference}`);
});
