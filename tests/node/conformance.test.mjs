// WebNN's conformance cases through navigator.ml, where ../shared/wpt has them.
import assert from 'node:assert/strict';
import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

import '../../node/webnn.mjs';
import { failureOf, mismatch, parseCases } from './conformance.mjs';

const folder = resolve(dirname(fileURLToPath(import.meta.url)), '../../../shared/wpt');
const files = existsSync(folder)
  ? readdirSync(folder)
      .filter((name) => name.endsWith('.json'))
      .sort()
  : [];
const casesOf = (file) => parseCases(readFileSync(join(folder, file), 'utf8')).cases;
const context = await navigator.ml.createContext({ accelerated: false });

test('there are conformance cases', { skip: files.length === 0 && `${folder} is not there` }, () => {
  const cases = files.flatMap(casesOf);
  assert.ok(cases.length >= 1000, `${cases.length} cases`);
});

for (const file of files)
  test(`the cases of ${file} pass`, async () => {
    const cases = casesOf(file);
    const failures = [];
    for (const one of cases) {
      const reason = await failureOf(context, one).catch((error) => `${error.name}: ${error.message}`);
      if (reason) failures.push(`${one.name}: ${reason}`);
    }
    assert.ok(cases.length > 0);
    assert.equal(failures.length, 0, `${failures.length} of ${cases.length} fail:\n${failures.join('\n')}`);
  });

test('values that differ by more than the tolerance are told', () => {
  const spec = { dtype: 'float32', shape: [2] };
  const [a, b] = [Float32Array.of(1, NaN), Float32Array.of(1 + 2 ** -23, NaN)];
  assert.equal(mismatch(a, b, spec, { type: 'ULP', value: 1 }), undefined);
  assert.match(mismatch(a, b, spec, { type: 'ULP', value: 0 }), /^\[0\] is 1, expected/);
  assert.match(mismatch(a, Float32Array.of(1, 2), spec, { type: 'ULP', value: 9 }), /^\[1\] is NaN/);
  assert.match(
    mismatch(a, Float32Array.of(1.5, NaN), spec, { type: 'ATOL', value: 0.25 }),
    /ATOL 0.5 > 0.25/,
  );
});
