// A valid call of every operator. Operands are {dataType, shape}; `made` makes inputs of them.

export const float = (...shape) => ({ dataType: 'float32', shape });
export const int = (...shape) => ({ dataType: 'int32', shape });
export const byte = (...shape) => ({ dataType: 'uint8', shape });
export const isOperand = (value) =>
  typeof value === 'object' && value !== null && 'dataType' in value && 'shape' in value;

const unary = (operand) => [operand];
const binary = [float(2, 3), float(3)];
const image = float(1, 4, 6, 6);
const window = { windowDimensions: [2, 2], strides: [2, 2], padding: [0, 0, 0, 0], dilations: [1, 1] };
const direction = { bias: float(1, 12), recurrentBias: float(1, 12), initialHiddenState: float(1, 2, 4) };

export const calls = {
  ...Object.fromEntries(
    (
      'abs ceil cos elu erf exp floor gelu hardSigmoid hardSwish identity isInfinite isNaN leakyRelu linear log neg ' +
      'reciprocal relu reverse roundEven sigmoid sign sin softplus softsign sqrt tan tanh transpose triangular clamp ' +
      'reduceL1 reduceL2 reduceLogSum reduceLogSumExp reduceMax reduceMean reduceMin reduceProduct reduceSum ' +
      'reduceSumSquare layerNormalization'
    )
      .split(' ')
      .map((name) => [name, unary(float(2, 3))]),
  ),
  ...Object.fromEntries(
    'add sub mul div max min pow equal notEqual greater greaterOrEqual lesser lesserOrEqual prelu'
      .split(' ')
      .map((name) => [name, binary]),
  ),
  logicalNot: [byte(2, 3)],
  logicalAnd: [byte(2, 3), byte(3)],
  logicalOr: [byte(2, 3), byte(3)],
  logicalXor: [byte(2, 3), byte(3)],
  argMax: [float(2, 3), 1],
  argMin: [float(2, 3), 1],
  averagePool2d: [image, window],
  l2Pool2d: [image, window],
  maxPool2d: [image, window],
  batchNormalization: [float(2, 3), float(3), float(3), { scale: float(3), bias: float(3) }],
  cast: [float(2, 3), 'int32'],
  concat: [[float(2, 3), float(1, 3)], 0],
  conv2d: [image, float(8, 2, 3, 3), { groups: 2, bias: float(8) }],
  convTranspose2d: [image, float(4, 2, 3, 3), { groups: 2, bias: float(4) }],
  cumulativeSum: [float(2, 3), 1],
  dequantizeLinear: [byte(4, 2), float(2, 2), byte(2, 2)],
  quantizeLinear: [float(4, 2), float(2, 2), byte(2, 2)],
  expand: [float(1, 3), [2, 3]],
  gather: [float(2, 3), int(4), { axis: 1 }],
  gatherElements: [float(2, 3), int(2, 1), { axis: 1 }],
  gatherND: [float(2, 3), int(4, 1)],
  gemm: [float(2, 3), float(3, 4), { c: float(4) }],
  gru: [float(3, 2, 5), float(1, 12, 5), float(1, 12, 4), 3, 4, { ...direction, returnSequence: true }],
  gruCell: [
    float(2, 5),
    float(12, 5),
    float(12, 4),
    float(2, 4),
    4,
    { bias: float(12), recurrentBias: float(12) },
  ],
  instanceNormalization: [image, { scale: float(4), bias: float(4) }],
  lstm: [
    float(3, 2, 5),
    float(1, 16, 5),
    float(1, 16, 4),
    3,
    4,
    {
      bias: float(1, 16),
      recurrentBias: float(1, 16),
      peepholeWeight: float(1, 12),
      initialHiddenState: float(1, 2, 4),
      initialCellState: float(1, 2, 4),
    },
  ],
  lstmCell: [
    float(2, 5),
    float(16, 5),
    float(16, 4),
    float(2, 4),
    float(2, 4),
    4,
    { bias: float(16), recurrentBias: float(16), peepholeWeight: float(12) },
  ],
  matmul: [float(5, 2, 3), float(3, 4)],
  pad: [float(2, 3), [1, 0], [0, 2]],
  resample2d: [image, { scales: [2, 2] }],
  reshape: [float(2, 3), [3, 2]],
  scatterElements: [float(2, 3), int(1, 3), float(1, 3)],
  scatterND: [float(2, 3), int(4, 1), float(4, 3)],
  slice: [float(2, 3), [0, 1], [2, 2]],
  softmax: [float(2, 3), 1],
  split: [float(2, 3), 3, { axis: 1 }],
  tile: [float(2, 3), [2, 1]],
  where: [byte(2, 3), float(3), float(2, 1)],
};

let count = 0;

/** The same call with an input of the builder in place of every operand. */
export function made(builder, value) {
  if (isOperand(value)) return builder.input(`input ${(count += 1)}`, value);
  if (Array.isArray(value)) return value.map((item) => made(builder, item));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, made(builder, item)]));
}

/** Every operand of a call: its path, [0] or [2, "bias"]. */
export function operandPaths(call, path = []) {
  return Object.entries(call).flatMap(([key, value]) => {
    if (isOperand(value)) return [[...path, key]];
    return typeof value === 'object' && value !== null ? operandPaths(value, [...path, key]) : [];
  });
}

/** The call with another value at a path. */
export function replaced(call, [key, ...rest], value) {
  const copy = Array.isArray(call) ? [...call] : { ...call };
  copy[key] = rest.length > 0 ? replaced(call[key], rest, value) : value;
  return copy;
}

/** The call with a label among its options. */
export function labeled(call, label) {
  const last = call.at(-1);
  const hasOptions = typeof last === 'object' && !Array.isArray(last) && !isOperand(last);
  return hasOptions ? [...call.slice(0, -1), { ...last, label }] : [...call, { label }];
}
