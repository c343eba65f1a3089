// node/*.d.ts, by TypeScript where `npm ci` in node/ has installed it.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

import * as webnn from '../../node/webnn.mjs';
import { operators } from '../../node/lib/webnn/operators.js';

const compiler = fileURLToPath(new URL('../../node/node_modules/typescript/bin/tsc', import.meta.url));
const typesOf = (name) => fileURLToPath(new URL(`../../node/${name}.js`, import.meta.url));
const skip = !existsSync(compiler) && 'TypeScript is not installed: make test-node installs it';

const head = `import * as webnn from '${typesOf('webnn')}';
import * as headrace from '${typesOf('headrace')}';
import * as web from '${typesOf('web')}';
import * as ort from '${typesOf('onnxruntime-node')}';
declare const context: webnn.MLContext;
`;
/** Declared in one program, they are for all of it. */
const extended = `import '${typesOf('webnn-extensions')}';`;

/** What the compiler says of a program. */
function messages(program) {
  const folder = mkdtempSync(join(tmpdir(), 'headrace-types-'));
  try {
    const file = join(folder, 'program.ts');
    writeFileSync(file, `${head}${program}\nexport {};\n`);
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

/** Each line alone is an error of types. */
function refused(lines) {
  const found = messages(lines.join('\n')).matchAll(/^\S*program\.ts\((\d+),\d+\): error TS2/gm);
  const first = head.split('\n').length;
  const wrong = new Set([...found].map(([, line]) => lines[line - first]));
  assert.deepEqual([...wrong], lines);
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
    navigator.ml.createContext({ powerPreference: 'low-power' });
    const other = new MLGraphBuilder(context).input('x', { dataType: 'int32', shape: [] });
    const isOperand: boolean = other instanceof MLOperand;
    const [global, tensor]: [MLContext, MLTensor] = [context, null! as MLTensor];
    const built: Promise<MLGraph> = new MLGraphBuilder(global).build({ y: other as MLOperand });`;
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
  refused(wrong);
});

test('shapes are numbers, operands are no tensors, and dictionaries have the names of the IDL', { skip }, () => {
  const program = `
    async function main(x: MLOperand, tensor: MLTensor): Promise<void> {
      const { dataType, shape } = x;
      await context.createTensor({ dataType, shape, readable: true });
      const count: number = shape.reduce((p, q) => p * q, 1) + shape[0] * tensor.shape[0];
      new MLGraphBuilder(context).slice(x, [0, 0], shape);
    }
    const reduce: webnn.MLReduceOptions = { axes: [0], keepDimensions: true };
    const pool: webnn.MLPool2dOptions = { windowDimensions: [2, 2] };
    const of: webnn.MLScatterOptions & webnn.MLArgMinMaxOptions = { axis: 0, keepDimensions: true };
    const single: webnn.MLSingleInputSupportLimits = context.opSupportLimits().relu;
    const binary: webnn.MLBinarySupportLimits = context.opSupportLimits().matmul;`;
  assert.equal(messages(program), '');
  refused([
    'new webnn.MLGraphBuilder(context).relu(null! as webnn.MLTensor);',
    "new webnn.MLGraphBuilder(context).relu({ dataType: 'float32', shape: [2] });",
    'new webnn.MLGraphBuilder(context).build({ y: context });',
  ]);
});

test('what the extensions add is declared by them alone', { skip }, () => {
  const added = [
    'navigator.ml.createContext({ threads: 2 });',
    "(null! as webnn.MLGraph).save('graph.hrg');",
    "context.loadGraph('graph.hrg');",
    'context.device.length;',
    "new webnn.MLGraphBuilder(context).input('x', { dataType: 'float32', shape: [{ name: 'n' }] });",
  ];
  refused(added);
  assert.equal(messages(`${extended}\n${added.join('\n')}`), '');
});

test('what the types declare is there', { skip }, () => {
  const names = ['ml', 'ML', 'MLContext', 'MLGraph', 'MLGraphBuilder', 'MLOperand', 'MLTensor'];
  assert.deepEqual(Object.keys(webnn).sort(), names.sort());
  const uses = operators.map(({ name }) => `builder.${name};`).join('\n');
  assert.equal(messages(`declare const builder: webnn.MLGraphBuilder;\n${uses}`), '');
});

test('programs with models compile', { skip }, () => {
  const program = `
    ${extended}
    async function main(): Promise<void> {
      const model = await headrace.load(new URL('file:///model.onnx'), { device: 'cpu', dimensions: { n: 1, x: [1, 'm'] } });
      const names: string[] = model.inputs.map(({ name }) => name);
      const { y } = await model.run({ x: BigInt64Array.of(1n), z: { data: new Float32Array(2), dims: [1, 2] } });
      if (y.type === 'int64') { const data: BigInt64Array = y.data; }
      const known = await model.run<{ z: headrace.TypedTensor<'float32'> }>({ x: BigInt64Array.of(1n) });
      const reals: Float32Array = known.z.data;
      const device: string = model.device + context.device;
      await headrace.load('model.onnx', { roundActivations: false, memory: 'low', tuning: 'off', cacheBytes: 0 });
      const { ids } = await (await headrace.Tokenizer.load('tokenizer.json')).encode('text', { pair: 'other' });
      const chat = await headrace.LanguageModel.load('model.gguf', { parameters: { n_ctx: 512, logging: { level: 'none' } } });
      for await (const piece of chat.stream([{ role: 'user', content: 'Hello' }], { signal: AbortSignal.timeout(5) }))
        piece.toUpperCase();
      const vectors: Float32Array[] = await chat.embed(['a', 'b'], { signal: AbortSignal.timeout(5) });
      const code: headrace.ErrorCode = new headrace.HeadraceError('busy', '').code;
      const session = await ort.InferenceSession.create(new Uint8Array(4), { executionProviders: ['cpu'] });
      const results = await session.run({ x: new ort.Tensor('int64', [1, 2], [2]) }, ['y']);
      const data: ort.Tensor.DataType = results.y.data;
      const typed: ort.TypedTensor<'float32'> = new ort.Tensor('float32', [1, 2], [2]);
      const numbers: Float32Array = typed.data;
      const feeds: ort.InferenceSession.OnnxValueMapType = { x: typed };
      const graph = await context.loadGraph('graph.hrg');
      await graph.save('other.webnn', { quantized: true });
      new webnn.MLGraphBuilder(context).input('x', { dataType: 'float32', shape: [{ name: 'n', maxSize: 4 }, 2] });
    }`;
  assert.equal(messages(program), '');
});

test('onnxruntime-node has a default in ES modules, and require() gives the module alone', { skip }, () => {
  const program = `
    import runtime from '${typesOf('onnxruntime-node')}';
    import * as required from '${typesOf('dist/onnxruntime-node').replace(/js$/, 'cjs')}';
    const tensor: runtime.Tensor = new runtime.Tensor('float32', [1, 2], [2]);
    const other: ort.TypedTensor<'int64'> = new runtime.Tensor('int64', [1n]);
    const third: ort.Tensor = new required.Tensor('bool', [true]);
    const session: Promise<ort.InferenceSession> = runtime.InferenceSession.create('model.onnx');`;
  assert.equal(messages(program), '');
  const types = readFileSync(typesOf('dist/onnxruntime-node').replace(/js$/, 'd.cts'), 'utf8');
  assert.doesNotMatch(types, /export default/);
});

test('programs of pages compile', { skip }, () => {
  const program = `
    async function main(): Promise<void> {
      const { ml, threads } = await web.install({ force: true, threads: 2 });
      await ml.createContext({ powerPreference: 'low-power' });
      const model = await web.load('/x.onnx', { progress: ({ loaded, total }) => loaded / total, weights: 'q8_0' });
      await model.run({ x: new Float32Array(1) });
      await web.loadTokenizer(new URL('https://example.com/tokenizer.json'), { cached: false });
      const count: number | undefined = threads;
    }`;
  assert.equal(messages(program), '');
});

test('wrong programs with models do not compile', { skip }, () => {
  const wrong = [
    'new headrace.Model();',
    "headrace.load('x.onnx', { thread: 1 });",
    'headrace.load(5);',
    "(null! as headrace.Model).run({ x: 'text' });",
    "(null! as headrace.LanguageModel).generate([{ role: 'robot', content: '' }]);",
    "(null! as headrace.LanguageModel).generate('x', { temperature: 0 });",
    "new ort.Tensor('float33', [1]);",
    "const ints: Int32Array = new ort.Tensor('float32', [1]).data;",
    '(null! as headrace.Model).run<{ y: string }>({});',
    '(null! as ort.InferenceSession).run({ x: new Float32Array(1) });',
  ];
  refused(wrong);
});

for (const name of ['headrace', 'onnxruntime-node'])
  test(`what the types of ${name} declare is there`, { skip }, async () => {
    const module = await import(`../../node/${name}.mjs`);
    const declared = readFileSync(typesOf(name).replace(/js$/, 'd.ts'), 'utf8');
    const values = [...declared.matchAll(/^export (?:class|const|function) (\w+)/gm)].map(
      ([, value]) => value,
    );
    const given = ['Conversation', 'Generation', 'Model']; // that others make
    const expected = [...new Set(values)].filter((value) => !given.includes(value));
    assert.deepEqual(
      Object.keys(module)
        .filter((key) => key !== 'default')
        .sort(),
      expected.sort(),
    );
  });
