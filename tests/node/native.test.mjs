// Where the package finds its addons: in the checkout, or in the package of this platform's binaries.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { after, test } from 'node:test';
import { fileURLToPath } from 'node:url';

import { product } from './onnx_models.mjs';

const inTree = (path) => fileURLToPath(new URL(`../../${path}`, import.meta.url));
const folder = mkdtempSync(join(tmpdir(), 'headrace-native-'));
after(() => rmSync(folder, { recursive: true }));
const platform = `headrace-${process.platform}-${process.arch}`;

/** The package as it is installed, without node/native: what its entry says. */
function required(name) {
  const dist = join(folder, name, 'node_modules', 'headrace', 'dist');
  mkdirSync(dist, { recursive: true });
  copyFileSync(inTree('node/dist/headrace.cjs'), join(dist, 'headrace.cjs'));
  const program = `require(${JSON.stringify(join(dist, 'headrace.cjs'))}).devices().then((d) => console.log(d[0].type))`;
  return spawnSync(process.execPath, ['-e', program], { encoding: 'utf8' });
}

test('without an addon the error names the place in the checkout and the package', () => {
  const { status, stderr } = required('bare');
  assert.equal(status, 1);
  assert.match(stderr, /neither .*native.headrace\.node \(make node builds it\) nor the package /);
  assert.ok(stderr.includes(platform), stderr);
});

test('the platform’s package gives the addon', () => {
  const carried = join(folder, 'installed', 'node_modules', platform);
  mkdirSync(carried, { recursive: true });
  symlinkSync(inTree('node/native/headrace.node'), join(carried, 'headrace.node'));
  const { stdout, stderr } = required('installed');
  assert.equal(stdout, 'cpu\n', stderr);
});

test('an addon that does not load says why', () => {
  const carried = join(folder, 'broken', 'node_modules', platform);
  mkdirSync(carried, { recursive: true });
  copyFileSync(inTree('node/package.json'), join(carried, 'headrace.node'));
  const { status, stderr } = required('broken');
  assert.equal(status, 1);
  assert.match(stderr, /headrace\.node: (invalid ELF header|file too short)/);
});

test('the package has every module that its modules for pages import', () => {
  const { files } = JSON.parse(readFileSync(inTree('node/package.json'), 'utf8'));
  const found = new Set();
  const add = (path) => {
    if (found.has(path)) return;
    found.add(path);
    for (const [, from] of readFileSync(path, 'utf8').matchAll(/\b(?:from|import\() ?'(\.[^']*\.js)'/g))
      add(resolve(dirname(path), from));
  };
  for (const name of ['index', 'worker']) add(inTree(`node/lib/web/${name}.js`));
  assert.ok(found.size > 20, `${found.size} modules`);
  for (const path of found)
    assert.ok(
      files.some((part) => path === inTree(`node/${part}`) || path.startsWith(inTree(`node/${part}/`))),
      `${path} is in none of package.json's files`,
    );
});

test('the addon reads no more of an input than is given', async () => {
  const addon = createRequire(import.meta.url)('../../node/native/headrace.node');
  const { handle } = await addon.openModel(product, true, { device: 'cpu' }, [], []);
  const run = (dims, bytes) => addon.runModel(handle, [dims, new Uint8Array(bytes)], undefined);
  for (const [dims, bytes] of [
    [[1000, 2], 8],
    [[2 ** 31, 2 ** 31], 8],
    [[2 ** 33, 2 ** 33], 8],
    [[2 ** 40, 2 ** 40, 0], 8],
    [[-1, 2], 8],
    [[1, 2], 0],
    [[1, 2], 9],
  ])
    assert.throws(() => run(dims, bytes), { code: 'invalid_argument' }, `${dims}, ${bytes} bytes`);
  assert.throws(() => addon.runModel(handle, [], undefined));
  assert.deepEqual((await run([1, 2], 8))[0].dims, [1, 2]);
});
