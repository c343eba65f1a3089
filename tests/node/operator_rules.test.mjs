// The specification's rules about shapes and options, operator by operator: calls that it refuses.
import assert from 'node:assert/strict';
import { test } from 'node:test';

import '../../node/webnn.mjs';
import { operators } from '../../node/lib/webnn/operators.js';
import { byte, calls, float, int, labeled, made } from './calls.mjs';

const context = await navigator.ml.createContext({ accelerated: false });
const image = float(1, 4, 6, 6);
const filter = float(8, 4, 3, 3);
const transposed = float(4, 2, 3, 3);
const gru = (...changes) => Object.assign([...calls.gru], ...changes);
const lstm = (...changes) => Object.assign([...calls.lstm], ...changes);
const indexOptions = [
  { axis: -1 },
  { axis: 2 ** 32 },
  { axis: NaN },
  { axis: Infinity },
  { axis: 5n },
  { axis: 'one' },
];

const refused = {
  add: [
    [float(2, 3), float(2)],
    [float(2, 3), int(2, 3)],
  ],
  argMax: [
    [float(2, 3), 2],
    [float(2, 3), -1],
    [float(2, 3), 1n],
    [float(2, 3), 0, { outputDataType: 'float32' }],
    [float(2, 3), 0, { outputDataType: 'bfloat16' }],
    [float(2, 3), 0, 7],
  ],
  averagePool2d: [
    [image, { windowDimensions: [7, 1] }],
    [image, { windowDimensions: [2] }],
    [image, { windowDimensions: [0, 2] }],
    [image, { strides: [0, 1] }],
    [image, { strides: [1] }],
    [image, { padding: [1, 1] }],
    [image, { dilations: [0, 1] }],
    [image, { layout: 'chwn' }],
    [image, { outputSizes: [1] }],
    [image, { windowDimensions: [2, 2], outputSizes: [9, 9] }],
    [image, { windowDimensions: [3, 3], strides: [2, 2], outputSizes: [2, 3] }],
    [image, { outputShapeRounding: 'round' }],
  ],
  batchNormalization: [
    [float(2, 3), float(2), float(3)],
    [float(2, 3), float(3), float(2)],
    [float(2, 3), float(3), float(3), { scale: float(2) }],
    [float(2, 3), float(3), float(3), { bias: float(4) }],
    [float(2, 3), float(3), float(3), { axis: 2 }],
    [float(2, 3), float(3), float(3), { epsilon: NaN }],
  ],
  cast: [
    [float(2), 'float64'],
    [float(2), undefined],
  ],
  clamp: [
    [float(2), { minValue: 2, maxValue: 1 }],
    [int(2), { minValue: 2n, maxValue: 1n }],
  ],
  concat: [
    [[], 0],
    [[float(2, 3), float(2, 4)], 0],
    [[float(2, 3), int(2, 3)], 0],
    [[float(2, 3), float(2)], 0],
    [[float(2, 3)], 2],
    [float(2, 3), 0],
    [[float()], 0],
  ],
  conv2d: [
    [image, filter, { padding: [1, 1] }],
    [image, filter, { strides: [1] }],
    [image, filter, { strides: [0, 1] }],
    [image, filter, { dilations: [1, 0] }],
    [image, filter, { dilations: [1, 1, 1] }],
    [image, filter, { groups: 0 }],
    [image, filter, { groups: 3 }],
    [image, filter, { groups: 2 }],
    [image, filter, { bias: float(7) }],
    [image, filter, { filterLayout: 'iohw' }],
    [image, float(8, 3, 3, 3)],
    [image, float(8, 4, 7, 7)],
    [image, filter, { inputLayout: 'nhwc' }],
    [image, float(7, 2, 3, 3), { groups: 2 }],
    [image, filter, { groups: -1 }],
  ],
  convTranspose2d: [
    [image, transposed, { padding: [1] }],
    [image, transposed, { strides: [1, 0] }],
    [image, transposed, { outputPadding: [1, 1] }],
    [image, transposed, { outputPadding: [0] }],
    [image, transposed, { outputSizes: [1] }],
    [image, transposed, { outputSizes: [1, 1] }],
    [image, transposed, { outputSizes: [99, 99] }],
    [image, transposed, { groups: 0 }],
    [image, transposed, { groups: 3 }],
    [image, transposed, { bias: float(3) }],
    [image, float(3, 2, 3, 3)],
    [image, transposed, { filterLayout: 'oihw' }],
  ],
  cumulativeSum: [[float(2, 3), 2]],
  dequantizeLinear: [
    [byte(4, 2), float(3, 2), byte(3, 2)],
    [byte(4, 2), float(2, 2), byte(2, 1)],
    [byte(4, 2), float(1, 4, 2), byte(1, 4, 2)],
    [byte(4), float(4), { dataType: 'int8', shape: [4] }],
  ],
  quantizeLinear: [
    [float(4, 2), float(3, 2), byte(3, 2)],
    [float(4, 2), float(2, 2), byte(2, 1)],
    [float(4, 2), float(2), byte(2)],
  ],
  elu: [
    [float(2), { alpha: Infinity }],
    [float(2), { alpha: 1n }],
  ],
  expand: [
    [float(2, 3), [2, 4]],
    [float(2, 3), [3]],
    [float(3), [0, 3]],
    [float(3), [-1, 3]],
    [float(3), 3],
  ],
  gather: [
    [float(2, 3), int(4), { axis: 2 }],
    ...indexOptions.map((options) => [float(2, 3), int(4), options]),
  ],
  gatherElements: [
    [float(2, 3), int(2)],
    [float(2, 3), int(3, 1), { axis: 1 }],
    [float(2, 3), int(1, 1), { axis: 1 }],
    [float(2, 3), int(2, 1), { axis: 2 }],
  ],
  gatherND: [
    [float(2, 3), int(4, 3)],
    [float(2, 3), int()],
  ],
  gemm: [
    [float(2, 3), float(4, 3)],
    [float(2, 3), float(3, 4), { aTranspose: true }],
    [float(2, 3), float(3, 4), { c: float(3) }],
    [float(2, 3), float(3, 4), { c: float(1, 2, 4) }],
  ],
  gru: [
    gru({ 3: 4 }),
    gru({ 3: 0 }),
    gru({ 4: 5 }),
    gru({ 4: 0 }),
    gru({ 1: float(1, 11, 5) }),
    gru({ 2: float(1, 12, 5) }),
    gru({ 5: { bias: float(1, 11) } }),
    gru({ 5: { initialHiddenState: float(1, 2, 5) } }),
    gru({ 5: { direction: 'both' } }),
    gru({ 5: { activations: ['relu'] } }),
    gru({ 5: { activations: ['relu', 'gelu'] } }),
    gru({ 5: { layout: 'zzz' } }),
  ],
  lstm: [
    lstm({ 3: 4 }),
    lstm({ 4: 0 }),
    lstm({ 1: float(1, 15, 5) }),
    lstm({ 2: float(1, 16, 5) }),
    lstm({ 5: { peepholeWeight: float(1, 16) } }),
    lstm({ 5: { initialCellState: float(2, 2, 4) } }),
    lstm({ 5: { activations: ['tanh', 'tanh'] } }),
    lstm({ 5: { direction: 'up' } }),
  ],
  gruCell: [
    [float(2, 5), float(12, 5), float(12, 4), float(3, 4), 4],
    [float(2, 5), float(12, 5), float(12, 4), float(2, 4), 3],
    [float(2, 5), float(12, 4), float(12, 4), float(2, 4), 4],
  ],
  lstmCell: [
    [float(2, 5), float(16, 5), float(16, 4), float(2, 4), float(2, 3), 4],
    [float(2, 5), float(16, 5), float(16, 4), float(2, 4), float(2, 4), 0],
  ],
  instanceNormalization: [
    [image, { scale: float(6) }],
    [image, { bias: float(3) }],
    [image, { layout: 'nhwc', scale: float(4) }],
  ],
  layerNormalization: [
    [float(2, 3), { axes: [2] }],
    [float(2, 3), { axes: [1, 1] }],
    [float(2, 3), { axes: [1], scale: float(2) }],
    [float(2, 3), { axes: [1], bias: float(2, 3) }],
  ],
  matmul: [
    [float(2, 3), float(2, 3)],
    [float(2, 2, 3), float(3, 3, 4)],
    [float(3), float(3, 3)],
  ],
  pad: [
    [float(2, 3), [1], [1]],
    [float(2, 3), [1, 1], [1]],
    [float(2, 3), [1, 1], [1, 1], { mode: 'symmetric' }],
    [float(2, 3), [2, 0], [0, 0], { mode: 'reflection' }],
    [float(2, 3), [-1, 0], [0, 0]],
  ],
  prelu: [
    [float(2, 3), float(2)],
    [float(2, 3), int(2, 3)],
  ],
  reduceSum: [
    [float(2, 3), { axes: [2] }],
    [float(2, 3), { axes: [1, 1] }],
    [float(2, 3), { axes: 1 }],
  ],
  resample2d: [
    [image, { scales: [2] }],
    [image, { scales: [0, 1] }],
    [image, { scales: [-1, 1] }],
    [image, { scales: [NaN, 1] }],
    [image, { sizes: [3] }],
    [image, { sizes: [3, 3], scales: [0, 1] }],
    [image, { sizes: [3, 3], scales: [2] }],
    [image, { sizes: [0, 3] }],
    [image, { axes: [1] }],
    [image, { axes: [1, 4] }],
    [image, { axes: [1, 1] }],
    [image, { mode: 'cubic' }],
    [image, { scales: [0.01, 1] }],
  ],
  reshape: [
    [float(2, 3), [4]],
    [float(2, 3), [0, 6]],
    [float(2, 3), [-1, 3]],
    [float(2, 3), new Array(9).fill(1)],
    [float(2, 3), null],
  ],
  reverse: [
    [float(2, 3), { axes: [2] }],
    [float(2, 3), { axes: [1, 1] }],
  ],
  scatterElements: [
    [float(2, 3), int(1, 3), float(1, 2)],
    [float(2, 3), int(1, 4), float(1, 4)],
    [float(2, 3), int(1, 2), float(1, 2)],
    [float(2, 3), int(1, 3), float(1, 3), { axis: 2 }],
    [float(2, 3), int(3), float(3)],
    [float(2, 3), int(1, 3), int(1, 3)],
  ],
  scatterND: [
    [float(2, 3), int(4, 3), float(4)],
    [float(2, 3), int(4, 1), float(4, 2)],
    [float(2, 3), int(4, 1), int(4, 3)],
  ],
  slice: [
    [float(2, 3), [0], [2]],
    [float(2, 3), [0, 0], [2]],
    [float(2, 3), [0, 0], [2, 0]],
    [float(2, 3), [0, 2], [2, 2]],
    [float(2, 3), [0, 0], [2, 2], { strides: [1] }],
    [float(2, 3), [0, 0], [2, 2], { strides: [0, 1] }],
    [float(2, 3), [0, 4294967295], [2, 4294967295]],
  ],
  softmax: [
    [float(2, 3), 2],
    [float(2, 3), 2 ** 32],
  ],
  split: [
    [float(2, 3), 2, { axis: 1 }],
    [float(2, 3), 0],
    [float(2, 3), [1, 1], { axis: 1 }],
    [float(2, 3), [2, 2], { axis: 1 }],
    [float(2, 3), [3, 0], { axis: 1 }],
    [float(2, 3), [], { axis: 1 }],
    [float(2, 3), 1, { axis: 2 }],
    [float(2, 3), [1, 1], { axis: 2 }],
    [float(2, 3), 'two'],
    [float(2, 3), {}],
  ],
  tile: [
    [float(2, 3), [2]],
    [float(2, 3), [0, 1]],
    [float(2, 3), [2147483648, 1]],
  ],
  transpose: [
    [float(2, 3), { permutation: [0] }],
    [float(2, 3), { permutation: [0, 0] }],
    [float(2, 3), { permutation: [0, 2] }],
  ],
  triangular: [
    [float(2, 3), { diagonal: 2 ** 31 }],
    [float(2, 3), { diagonal: NaN }],
  ],
  where: [
    [byte(2, 3), float(2), float(3)],
    [byte(2, 3), float(3), int(3)],
    [byte(4), float(3), float(3)],
  ],
};

/** What is wrong with a parameter or an option names that; what is wrong with the operands says what they are. */
function aboutPart({ parameters, options, operands }) {
  const begins = [
    ...parameters.map(([name]) => name),
    ...options.map(([name]) => `options\\.${name}`),
    'options',
  ];
  const shown = Object.keys(operands).map((name) => `${name}(?:\\[\\d\\])? is u?(?:int|float)\\d+\\[`);
  return new RegExp(`^(?:${begins.join('|')})(?:\\[\\d\\])* (?:is|are) |(?:^|[;,] )(?:${shown.join('|')})`);
}

for (const [name, list] of Object.entries(refused))
  test(`${name} refuses what the specification refuses, and says which part of which call`, () => {
    const taken = [];
    const row = operators.find((one) => one.name === name);
    for (const call of list) {
      const builder = new MLGraphBuilder(context);
      const args = made(builder, labeled(call, 'some label'));
      const text = JSON.stringify(call, (_, value) => (typeof value === 'bigint' ? `${value}n` : value));
      try {
        builder[name](...args);
        taken.push(text);
      } catch (error) {
        assert.ok(error instanceof TypeError, `${text}: ${error.name}: ${error.message}`);
        const hasLabel = args[row.parameters.length]?.label === 'some label';
        const lead = `${name}${hasLabel ? ' (some label)' : ''}: `;
        assert.ok(error.message.startsWith(lead), `${text}: ${error.message}`);
        const said = error.message.slice(lead.length);
        assert.match(said, aboutPart(row), text);
        assert.doesNotMatch(said, /\b[fiu](?:8|16|32|64)\b|[a-z]_[a-z]/, text); // the catalog's words
      }
    }
    assert.deepEqual(taken, []);
  });

const { int8, int32, int64, uint8 } = Object.fromEntries(
  ['int8', 'int32', 'int64', 'uint8'].map((dataType) => [dataType, { dataType, shape: [2] }]),
);
const taken = {
  clamp: [
    [int8, { minValue: 200, maxValue: 0 }], // 200 is -56 there
    [int32, { minValue: 2.7, maxValue: 2.3 }],
    [int64, { minValue: 2n ** 70n, maxValue: 0 }],
    [int32, { minValue: 0, maxValue: Infinity }],
    [float(2), { minValue: -Infinity, maxValue: NaN }],
    [float(2), { minValue: 2n ** 70n }],
  ],
  concat: [[[float(2)], 0]],
  expand: [[float(), [2, 3]]],
  gather: [[float(3), int()]],
  gatherND: [[float(2, 3), int(2)]],
  gemm: [
    [float(2, 3), float(3, 4), { c: float() }],
    [float(2, 3), float(3, 4), { c: float(2, 1) }],
  ],
  layerNormalization: [
    [float()],
    [float(2, 3), { axes: [] }],
    [float(2, 3, 4), { axes: [2, 0], scale: float(4, 2) }],
  ],
  pad: [
    [int8, [1], [1], { value: 300 }],
    [float(2, 3), [5, 5], [5, 5], { mode: 'edge' }],
    [float(), [], []],
  ],
  prelu: [[float(3), float(2, 1)]],
  reduceSum: [[float()], [float(2, 3), { axes: [] }]],
  resample2d: [
    [image, { axes: [0, 1], scales: [2, 2] }],
    [image, { axes: [3, 0], scales: [2, 3] }],
    [image, { sizes: [3, 3], scales: [9, 9] }],
  ],
  reshape: [[float(1), []]],
  slice: [
    [float(5), [0], [5], { strides: [9] }],
    [float(), [], []],
  ],
  transpose: [[float(), { permutation: [] }]],
  triangular: [[float(2, 3), { diagonal: -5 }]],
  where: [[byte(), float(2), float(3, 1)]],
};
for (const [name, list] of Object.entries(taken))
  test(`${name} takes what lies at the edges of the specification's rules`, () => {
    for (const call of list) {
      const builder = new MLGraphBuilder(context);
      assert.ok(builder[name](...made(builder, call)) instanceof MLOperand);
    }
  });

test('numbers are cast to the type of the operand before they are compared', () => {
  const builder = new MLGraphBuilder(context);
  const [x] = made(builder, [uint8]);
  assert.throws(() => builder.clamp(x, { minValue: -1, maxValue: 254 }), {
    name: 'TypeError',
    message: 'clamp: minValue 255 is greater than maxValue 254; input is uint8[2]',
  });
});
