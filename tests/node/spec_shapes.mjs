// The specification's steps that decide on shapes, written from its text: what a call of each operator gives, or that it
// is refused. Operands are {dataType, shape}, as in calls.mjs.

class Refusal extends Error {}

function refuseIf(condition) {
  if (condition) throw new Refusal();
}
const isDimension = (size) => size >= 1 && size <= 0x7fffffff;
const equal = (a, b) => a.length === b.length && a.every((size, i) => size === b[i]);
const product = (sizes) => sizes.reduce((total, size) => total * size, 1);
const changed = (shape, axis, size) => shape.map((old, i) => (i === axis ? size : old));

function broadcast(a, b) {
  const rank = Math.max(a.length, b.length);
  const padded = (shape) => [...new Array(rank - shape.length).fill(1), ...shape];
  const [left, right] = [padded(a), padded(b)];
  return left.map((size, i) => {
    refuseIf(size !== right[i] && size !== 1 && right[i] !== 1);
    return Math.max(size, right[i]);
  });
}
/** Unidirectionally: `from` becomes `to`. */
const becomes = (from, to) => {
  refuseIf(from.length > to.length);
  from.forEach((size, i) => refuseIf(size !== 1 && size !== to[to.length - from.length + i]));
};

function checkAxes(axes, rank) {
  refuseIf(new Set(axes).size !== axes.length || axes.some((axis) => axis >= rank));
}

function reduced(shape, axes, keepDimensions) {
  checkAxes(axes, shape.length);
  if (keepDimensions) return shape.map((size, i) => (axes.includes(i) ? 1 : size));
  return shape.filter((_, i) => !axes.includes(i));
}
const every = (shape) => shape.map((_, i) => i);

const pair = (list, least = 1) => {
  refuseIf(list.length !== 2 || list.some((size) => size < least));
  return list;
};
const four = (list) => {
  refuseIf(list.length !== 4);
  return list;
};

/** {batches, channels, sizes} of an image, and its shape with other channels and sizes. */
function image(shape, layout = 'nchw') {
  const [batches, ...rest] = shape;
  const isFirst = layout === 'nchw';
  const channels = isFirst ? rest[0] : rest[2];
  const sizes = isFirst ? rest.slice(1) : rest.slice(0, 2);
  const of = (count, [height, width]) =>
    isFirst ? [batches, count, height, width] : [batches, height, width, count];
  return { channels, sizes, of };
}

/** By the letters of a layout: {i, o, h, w}. */
const filterOf = (shape, layout) => Object.fromEntries([...layout].map((letter, i) => [letter, shape[i]]));

const windowed = (sizes, filter, padding, strides, dilations) =>
  sizes.map(
    (size, i) =>
      (size - (filter[i] - 1) * dilations[i] - 1 + padding[2 * i] + padding[2 * i + 1]) / strides[i] + 1,
  );

function conv2d(input, filter, options = {}) {
  const { padding = [0, 0, 0, 0], strides = [1, 1], dilations = [1, 1], groups = 1 } = options;
  (four(padding), pair(strides), pair(dilations));
  refuseIf(groups === 0);
  const { channels, sizes, of } = image(input.shape, options.inputLayout);
  const { o, i, h, w } = filterOf(filter.shape, options.filterLayout ?? 'oihw');
  refuseIf(channels % groups !== 0 || channels / groups !== i);
  refuseIf(o % groups !== 0); // groups of different sizes compute nothing that is defined
  refuseIf(options.bias && !equal(options.bias.shape, [o]));
  const output = windowed(sizes, [h, w], padding, strides, dilations).map(Math.floor);
  refuseIf(!output.every(isDimension));
  return of(o, output);
}

function convTranspose2d(input, filter, options = {}) {
  const { padding = [0, 0, 0, 0], strides = [1, 1], dilations = [1, 1], outputPadding = [0, 0] } = options;
  const { groups = 1, outputSizes } = options;
  (four(padding), pair(strides), pair(dilations), pair(outputPadding, 0));
  refuseIf(outputSizes ? outputSizes.length !== 2 : outputPadding.some((size, i) => size >= strides[i]));
  refuseIf(groups === 0);
  const { channels, sizes, of } = image(input.shape, options.inputLayout);
  const { i, o, h, w } = filterOf(filter.shape, options.filterLayout ?? 'iohw');
  refuseIf(channels !== i);
  refuseIf(channels % groups !== 0); // as above
  refuseIf(options.bias && !equal(options.bias.shape, [o * groups]));
  const least = sizes.map(
    (size, d) =>
      (size - 1) * strides[d] + ([h, w][d] - 1) * dilations[d] + 1 - padding[2 * d] - padding[2 * d + 1],
  );
  const output = outputSizes ?? least.map((size, d) => size + outputPadding[d]);
  refuseIf(output.some((size, d) => outputSizes && (size < least[d] || size >= least[d] + strides[d])));
  refuseIf(!output.every(isDimension));
  return of(o * groups, output);
}

function pool2d(input, options = {}) {
  const { channels, sizes, of } = image(input.shape, options.layout);
  const { windowDimensions = sizes, strides = [1, 1], dilations = [1, 1], outputSizes } = options;
  const padding = options.padding ?? [0, 0, 0, 0]; // beside outputSizes, too: the conformance cases have both
  (pair(windowDimensions), four(padding), pair(strides), pair(dilations));
  refuseIf(outputSizes && outputSizes.length !== 2);
  const exact = windowed(sizes, windowDimensions, padding, strides, dilations);
  refuseIf(exact.some((size) => size < 1)); // a window that is larger than the padded image, also rounded up
  const [down, up] = [exact.map(Math.floor), exact.map(Math.ceil)];
  refuseIf(outputSizes && !equal(outputSizes, down) && !equal(outputSizes, up));
  const output = outputSizes ?? (options.outputShapeRounding === 'ceil' ? up : down);
  refuseIf(!output.every(isDimension));
  return of(channels, output);
}

function resample2d({ shape }, { scales = [1, 1], sizes, axes = [2, 3] } = {}) {
  refuseIf(scales.length !== 2 || scales.some((scale) => scale <= 0));
  refuseIf(sizes && (sizes.length !== 2 || sizes.includes(0)));
  refuseIf(axes.length !== 2);
  checkAxes(axes, 4);
  const output = [...shape];
  axes.forEach((axis, i) => {
    output[axis] = sizes ? sizes[i] : Math.floor(shape[axis] * Math.fround(scales[i]));
    refuseIf(!isDimension(output[axis]));
  });
  return output;
}

function recurrent(gates, input, weight, recurrentWeight, steps, hiddenSize, options) {
  const [length, batches, size] = input.shape;
  const directions = options.direction === 'both' ? 2 : 1;
  refuseIf(length !== steps);
  const wide = gates * hiddenSize;
  refuseIf(!equal(weight.shape, [directions, wide, size]));
  refuseIf(!equal(recurrentWeight.shape, [directions, wide, hiddenSize]));
  const last = [directions, batches, hiddenSize];
  const wanted = {
    bias: [directions, wide],
    recurrentBias: [directions, wide],
    peepholeWeight: [directions, 3 * hiddenSize],
    initialHiddenState: last,
    initialCellState: last,
  };
  for (const [name, shape] of Object.entries(wanted))
    refuseIf(options[name] && !equal(options[name].shape, shape));
  refuseIf(options.activations && options.activations.length !== gates - 1);
  return [last, [steps, ...last]];
}

function cell(gates, input, weight, recurrentWeight, states, hiddenSize, options) {
  const [batches, size] = input.shape;
  const wide = gates * hiddenSize;
  refuseIf(!equal(weight.shape, [wide, size]));
  refuseIf(!equal(recurrentWeight.shape, [wide, hiddenSize]));
  for (const state of states) refuseIf(!equal(state.shape, [batches, hiddenSize]));
  const wanted = { bias: [wide], recurrentBias: [wide], peepholeWeight: [3 * hiddenSize] };
  for (const [name, shape] of Object.entries(wanted))
    refuseIf(options[name] && !equal(options[name].shape, shape));
  refuseIf(options.activations && options.activations.length !== gates - 1);
  return [batches, hiddenSize];
}

function blockwise(input, scale, zeroPoint) {
  refuseIf(!equal(scale.shape, zeroPoint.shape) || scale.shape.length !== input.shape.length);
  scale.shape.forEach((size, i) => refuseIf(input.shape[i] % size !== 0));
  return input.shape;
}

function split({ shape }, splits, { axis = 0 } = {}) {
  refuseIf(axis >= shape.length);
  if (typeof splits === 'number') {
    refuseIf(splits === 0 || shape[axis] % splits !== 0);
    return new Array(splits).fill(changed(shape, axis, shape[axis] / splits));
  }
  refuseIf(splits.includes(0) || splits.reduce((sum, size) => sum + size, 0) !== shape[axis]);
  return splits.map((size) => changed(shape, axis, size));
}

function pad({ shape }, beginning, ending, { mode } = {}) {
  refuseIf(beginning.length !== shape.length || ending.length !== shape.length);
  return shape.map((size, i) => {
    refuseIf(mode === 'reflection' && (beginning[i] >= size || ending[i] >= size));
    refuseIf(!isDimension(size + beginning[i] + ending[i]));
    return size + beginning[i] + ending[i];
  });
}

function slice({ shape }, starts, sizes, { strides } = {}) {
  refuseIf(starts.length !== shape.length || sizes.length !== shape.length);
  refuseIf(strides && strides.length !== shape.length);
  return shape.map((size, i) => {
    const stride = strides ? strides[i] : 1;
    refuseIf(sizes[i] === 0 || stride < 1 || starts[i] + sizes[i] > size);
    return Math.ceil(sizes[i] / stride);
  });
}

function concat(inputs, axis) {
  refuseIf(inputs.length === 0 || axis >= inputs[0].shape.length);
  const [first, ...others] = inputs;
  let size = first.shape[axis];
  for (const { shape } of others) {
    refuseIf(shape.length !== first.shape.length);
    refuseIf(!equal(changed(shape, axis, 0), changed(first.shape, axis, 0)));
    size += shape[axis];
  }
  return changed(first.shape, axis, size);
}

function matmul(a, b) {
  const [m, k] = a.shape.slice(-2);
  const [rows, n] = b.shape.slice(-2);
  refuseIf(k !== rows);
  return [...broadcast(a.shape.slice(0, -2), b.shape.slice(0, -2)), m, n];
}

function gemm(a, b, { c, aTranspose, bTranspose } = {}) {
  const [m, k] = aTranspose ? [...a.shape].reverse() : a.shape;
  const [rows, n] = bTranspose ? [...b.shape].reverse() : b.shape;
  refuseIf(k !== rows);
  if (c) becomes(c.shape, [m, n]);
  return [m, n];
}

function gatherND({ shape }, indices) {
  const count = indices.shape.at(-1);
  refuseIf(count > shape.length);
  return [...indices.shape.slice(0, -1), ...shape.slice(count)];
}

function alongAxis({ shape }, indices, { axis = 0 } = {}) {
  refuseIf(axis >= shape.length || indices.shape.length !== shape.length);
  refuseIf(!equal(indices.shape, changed(shape, axis, indices.shape[axis])));
}

function scaled({ shape }, axis, { scale, bias }) {
  for (const part of [scale, bias]) refuseIf(part && !equal(part.shape, [shape[axis]]));
  return shape;
}

const rules = {
  argMax: ({ shape }, axis, { keepDimensions } = {}) => reduced(shape, [axis], keepDimensions),
  maxPool2d: pool2d,
  averagePool2d: pool2d,
  add: (a, b) => broadcast(a.shape, b.shape),
  equal: (a, b) => broadcast(a.shape, b.shape),
  prelu: (input, slope) => broadcast(input.shape, slope.shape),
  where: (condition, a, b) => broadcast(condition.shape, broadcast(a.shape, b.shape)),
  batchNormalization(input, mean, variance, { axis = 1, scale, bias } = {}) {
    refuseIf(axis >= input.shape.length);
    scaled(input, axis, { scale: mean, bias: variance });
    return scaled(input, axis, { scale, bias });
  },
  instanceNormalization: (input, { layout = 'nchw', scale, bias } = {}) =>
    scaled(input, layout === 'nchw' ? 1 : 3, { scale, bias }),
  layerNormalization({ shape }, { axes = every(shape).slice(1), scale, bias } = {}) {
    checkAxes(axes, shape.length);
    const wanted = axes.map((axis) => shape[axis]);
    for (const part of [scale, bias]) refuseIf(part && !equal(part.shape, wanted));
    return shape;
  },
  concat,
  conv2d,
  convTranspose2d,
  cumulativeSum({ shape }, axis) {
    refuseIf(axis >= shape.length);
    return shape;
  },
  softmax: (input, axis) => rules.cumulativeSum(input, axis),
  quantizeLinear: blockwise,
  expand({ shape }, newShape) {
    refuseIf(!newShape.every(isDimension));
    becomes(shape, newShape);
    return newShape;
  },
  gather({ shape }, indices, { axis = 0 } = {}) {
    refuseIf(axis >= shape.length);
    return [...shape.slice(0, axis), ...indices.shape, ...shape.slice(axis + 1)];
  },
  gatherElements(input, indices, options) {
    alongAxis(input, indices, options);
    return indices.shape;
  },
  gatherND,
  gemm,
  matmul,
  gru: (x, w, r, steps, size, options = {}) =>
    recurrent(3, x, w, r, steps, size, options).slice(0, options.returnSequence ? 2 : 1),
  lstm(x, w, r, steps, size, options = {}) {
    const [last, all] = recurrent(4, x, w, r, steps, size, options);
    return options.returnSequence ? [last, last, all] : [last, last];
  },
  gruCell: (x, w, r, state, size, options = {}) => cell(3, x, w, r, [state], size, options),
  lstmCell: (x, w, r, hidden, memory, size, options = {}) =>
    new Array(2).fill(cell(4, x, w, r, [hidden, memory], size, options)),
  pad,
  reduceSum: ({ shape }, { axes = every(shape), keepDimensions } = {}) =>
    reduced(shape, axes, keepDimensions),
  resample2d,
  reshape({ shape }, newShape) {
    refuseIf(!newShape.every(isDimension) || product(newShape) !== product(shape));
    return newShape;
  },
  reverse({ shape }, { axes = [] } = {}) {
    checkAxes(axes, shape.length);
    return shape;
  },
  scatterElements(input, indices, updates, options) {
    alongAxis(input, indices, options);
    refuseIf(!equal(updates.shape, indices.shape));
    return input.shape;
  },
  scatterND(input, indices, updates) {
    refuseIf(!equal(updates.shape, gatherND(input, indices)));
    return input.shape;
  },
  slice,
  split,
  tile({ shape }, repetitions) {
    refuseIf(repetitions.length !== shape.length || repetitions.includes(0));
    return shape.map((size, i) => size * repetitions[i]);
  },
  transpose({ shape }, { permutation = every(shape).reverse() } = {}) {
    refuseIf(permutation.length !== shape.length);
    checkAxes(permutation, shape.length);
    return permutation.map((axis) => shape[axis]);
  },
};

/** By operator: the shape that a call gives, or a list of them; null where the specification refuses the call. */
export const shapesBySpecification = Object.fromEntries(
  Object.entries(rules).map(([name, rule]) => [
    name,
    (...args) => {
      try {
        return rule(...args);
      } catch (error) {
        if (error instanceof Refusal) return null;
        throw error;
      }
    },
  ]),
);
