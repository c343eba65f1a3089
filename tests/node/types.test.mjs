// node/webnn.d.ts, by TypeScript where `npm ci` in node/ has installed it.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

import * as webnn from '../../node/webnn.mjs';
import { operators } from '../../node/lib/webnn/operators.js';

const compiler = fileURLToPath(new URL('../../node/node_modules/typescript/bin/tsc', import.meta.url));
const types = fileURLToPath(new URL('../../node/webnn.js', import.meta.url));
const skip = !existsSync(compiler) && 'TypeScript is not installed: make test-node installs it';

/** What the compiler says of a program. */
function messages(program) {
  const folder = mkdtempSync(join(tmpdir(), 'headrace-types-'));
  try {
    const file = join(folder, 'program.ts');
    writeFileSync(
      file,
      `import * as webnn from '${types}';\ndeclare const context: webnn.MLContext;\n${program}\nexport {};\n`,
    );
    const options = [
      '--noEmit',
      '--strict',
      '--target',
      'es2022',
      '--lib',
      'es2022,dom',
      '--module',
      'nodenext',
    ];
    return spawnSync(process.execPath, [compiler, ...options, file], { encoding: 'utf8' }).stdout;
  } finally {
    rmSync(folder, { recursive: true });
  }
}

test('a program that uses the API compiles', { skip }, () => {
  const program = `
    const builder = new webnn.MLGraphBuilder(context);
    const x = builder.input('x', { dataType: 'float32', shape: new Set([1, 4, 4, 4]) });
    const parts: webnn.MLOperand[] = builder.split(x, 2, { axis: 1, label: 'parts' });
    const y = builder.conv2d(x, builder.constant('float16', 5n), { inputLayout: 'nhwc', bias: parts[0], padding: [0, 0, 0, 0] });
    const graph: Promise<webnn.MLGraph> = builder.build({ y: builder.clamp(y, { minValue: 0, maxValue: 6n }) });
    const buffer: Promise<ArrayBuffer> = context.readTensor(null! as webnn.MLTensor);
    const nothing: Promise<undefined> = context.readTensor(null! as webnn.MLTensor, new Float32Array(2));
    const most: number = context.opSupportLimits().conv2d.bias.rankRange.max;
    navigator.ml.createContext({ powerPreference: 'low-power' });`;
  assert.equal(messages(program), '');
});

test('wrong programs do not compile', { skip }, () => {
  const wrong = [
    'new webnn.MLContext();',
    "new webnn.MLGraphBuilder(context).input('x', { dataType: 'float64', shape: [] });",
    'new webnn.MLGraphBuilder(context).abs(5);',
    "new webnn.MLGraphBuilder(context).softmax(null! as webnn.MLOperand, { label: '' });",
    "new webnn.MLGraphBuilder(context).pad(null! as webnn.MLOperand, [1], [1], { mode: 'symmetric' });",
  ];
  for (const line of wrong) assert.match(messages(line), /error TS2/, line);
});

test('what the types declare is there', { skip }, () => {
  const names = ['ml', 'ML', 'MLContext', 'MLGraph', 'MLGraphBuilder', 'MLOperand', 'MLTensor'];
  assert.deepEqual(Object.keys(webnn).sort(), names.sort());
  const uses = operators.map(({ name }) => `builder.${name};`).join('\n');
  assert.equal(messages(`declare const builder: webnn.MLGraphBuilder;\n${uses}`), '');
});
