// Random calls of the operators whose shapes follow rules: the builder takes what the specification's steps take, gives
// the shapes that they give, and refuses the rest with a TypeError that names the operator and its label.
import assert from 'node:assert/strict';
import { test } from 'node:test';

import '../../node/webnn.mjs';
import { float, int, byte, labeled, made } from './calls.mjs';
import { shapesBySpecification } from './spec_shapes.mjs';

const context = await navigator.ml.createContext({ accelerated: false });
const callsOfEach = 400;

/** The same numbers in every run (xorshift). */
function generator(seed) {
  let state = seed;
  const below = (limit) => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) % limit;
  };
  const from = (least, most) => least + below(most - least + 1);
  const chance = (percent) => below(100) < percent;
  const pick = (list) => list[below(list.length)];
  const list = (count, make) => Array.from({ length: count }, (_, i) => make(i));
  const shape = (least, most, largest = 4) => list(from(least, most), () => from(1, largest));
  /** The value mostly, else one near it that may be wrong. */
  const nearly = (size) => (chance(92) ? size : Math.max(1, size + pick([-1, 1, 2])));
  const nearShape = (sizes) => (chance(3) ? [...sizes, 2] : sizes.map(nearly));
  /** Members that are undefined are left out. */
  const options = (members) =>
    Object.fromEntries(
      Object.entries(members).flatMap(([name, make]) => {
        const value = chance(50) ? make() : undefined;
        return value === undefined ? [] : [[name, value]];
      }),
    );
  const axes = (rank) => list(from(0, rank), (i) => (chance(85) ? i : from(0, rank)));
  const broadcastOf = (sizes) =>
    sizes.slice(chance(30) ? from(0, sizes.length) : 0).map((size) => (chance(30) ? 1 : nearly(size)));
  return { from, chance, pick, list, shape, nearly, nearShape, options, axes, broadcastOf };
}

const pairOf = (r, least, most) => () => r.list(r.chance(96) ? 2 : r.from(1, 3), () => r.from(least, most));
const fourOf = (r, most) => () => r.list(r.chance(96) ? 4 : r.from(2, 5), () => r.from(0, most));
const placed = (letters, sizes) => [...letters].map((letter) => sizes[letter]);
const imageOf = (r, layout = 'nchw') =>
  placed(layout, { n: r.from(1, 2), c: r.from(1, 6), h: r.from(1, 7), w: r.from(1, 7) });

function convolution(r, layouts, groupsDivide) {
  const inputLayout = r.pick(['nchw', 'nhwc']);
  const filterLayout = r.pick(layouts);
  const groups = r.from(1, 3);
  const [i, o] = [groups * r.from(1, 2), groups * r.from(1, 2)];
  const input = placed(inputLayout, { n: 1, c: r.nearly(i), h: r.from(1, 7), w: r.from(1, 7) });
  const narrow = groupsDivide ? { i: i / groups, o } : { i, o: o / groups };
  const filter = placed(filterLayout, { ...narrow, h: r.from(1, 3), w: r.from(1, 3) }).map((size) =>
    r.nearly(size),
  );
  const options = r.options({
    padding: fourOf(r, 2),
    strides: pairOf(r, r.chance(5) ? 0 : 1, 3),
    dilations: pairOf(r, r.chance(5) ? 0 : 1, 2),
    bias: () => float(r.nearly(o)),
  });
  return [
    float(...input),
    float(...filter),
    { ...options, inputLayout, filterLayout, groups: r.chance(97) ? groups : 0 },
  ];
}

function pooling(r) {
  const layout = r.pick(['nchw', 'nhwc']);
  const options = r.options({
    windowDimensions: pairOf(r, r.chance(5) ? 0 : 1, 3),
    padding: fourOf(r, 2),
    strides: pairOf(r, r.chance(5) ? 0 : 1, 3),
    dilations: pairOf(r, 1, 2),
    outputShapeRounding: () => r.pick(['floor', 'ceil']),
    outputSizes: () => (r.chance(40) ? r.list(2, () => r.from(1, 6)) : undefined),
  });
  return [float(...imageOf(r, layout)), { ...options, layout }];
}

function recurrence(r, gates) {
  const direction = r.pick(['forward', 'backward', 'both']);
  const directions = direction === 'both' ? 2 : 1;
  const [steps, batches, size, hidden] = r.list(4, () => r.from(1, 3));
  const near = (...sizes) => float(...r.nearShape(sizes).slice(0, sizes.length));
  const state = () => near(directions, batches, hidden);
  const bias = () => near(directions, gates * hidden);
  const options = r.options({
    bias,
    recurrentBias: bias,
    initialHiddenState: state,
    returnSequence: () => r.chance(50),
    activations: () =>
      r.list(r.chance(90) ? gates - 1 : r.from(0, 4), () => r.pick(['relu', 'tanh', 'sigmoid'])),
  });
  if (gates === 4)
    Object.assign(
      options,
      r.options({ peepholeWeight: () => near(directions, 3 * hidden), initialCellState: state }),
    );
  return [
    near(steps, batches, size),
    near(directions, gates * hidden, size),
    near(directions, gates * hidden, hidden),
    r.nearly(steps),
    r.nearly(hidden),
    { ...options, direction },
  ];
}

function recurrenceCell(r, gates) {
  const [batches, size, hidden] = r.list(3, () => r.from(1, 3));
  const near = (...sizes) => float(...r.nearShape(sizes).slice(0, sizes.length));
  const states = r.list(gates - 2, () => near(batches, hidden));
  const bias = () => near(gates * hidden);
  const options = r.options({
    bias,
    recurrentBias: bias,
    activations: () => r.list(r.chance(90) ? gates - 1 : r.from(0, 4), () => 'tanh'),
    ...(gates === 4 && { peepholeWeight: () => near(3 * hidden) }),
  });
  const weights = [near(gates * hidden, size), near(gates * hidden, hidden)];
  return [near(batches, size), ...weights, ...states, r.nearly(hidden), options];
}

const along = (r, shape) => {
  const axis = r.from(0, shape.length - (r.chance(90) ? 1 : 0));
  return [axis, r.nearShape(shape.map((size, i) => (i === axis ? r.from(1, 5) : size)))];
};

function binary(r) {
  const shape = r.shape(0, 4);
  return [float(...r.broadcastOf(shape)), float(...r.broadcastOf(shape))];
}

const makers = {
  add: binary,
  equal: binary,
  prelu: binary,
  where(r) {
    const shape = r.shape(0, 3);
    return [byte(...r.broadcastOf(shape)), float(...r.broadcastOf(shape)), float(...r.broadcastOf(shape))];
  },
  argMax: (r) => {
    const shape = r.shape(1, 4);
    return [float(...shape), r.from(0, shape.length), r.options({ keepDimensions: () => true })];
  },
  maxPool2d: pooling,
  averagePool2d: pooling,
  batchNormalization(r) {
    const shape = r.shape(1, 4);
    const axis = r.chance(90) ? r.from(0, shape.length - 1) : shape.length;
    const channel = () => float(r.nearly(shape[axis] ?? 1));
    return [float(...shape), channel(), channel(), { ...r.options({ scale: channel, bias: channel }), axis }];
  },
  instanceNormalization(r) {
    const layout = r.pick(['nchw', 'nhwc']);
    const shape = imageOf(r, layout);
    const channel = () => float(r.nearly(shape[layout.indexOf('c')]));
    return [float(...shape), { ...r.options({ scale: channel, bias: channel }), layout }];
  },
  layerNormalization(r) {
    const shape = r.shape(0, 4);
    const axes = r.chance(50) ? r.axes(shape.length) : undefined;
    const part = () =>
      float(...r.nearShape((axes ?? [1, 2, 3].slice(0, shape.length - 1)).map((axis) => shape[axis] ?? 1)));
    return [float(...shape), { ...(axes && { axes }), ...r.options({ scale: part, bias: part }) }];
  },
  concat(r) {
    const shape = r.shape(1, 4);
    const [axis] = along(r, shape);
    return [
      r.list(r.chance(97) ? r.from(1, 4) : 0, () =>
        float(...r.nearShape(shape.map((size, i) => (i === axis ? r.from(1, 4) : size)))),
      ),
      axis,
    ];
  },
  conv2d: (r) => convolution(r, ['oihw', 'hwio', 'ohwi', 'ihwo'], true),
  convTranspose2d(r) {
    const [input, filter, options] = convolution(r, ['iohw', 'hwoi', 'ohwi'], false);
    const more = r.options({
      outputPadding: pairOf(r, 0, 2),
      outputSizes: () => (r.chance(50) ? r.list(r.chance(95) ? 2 : 1, () => r.from(1, 12)) : undefined),
    });
    return [input, filter, { ...options, ...more }];
  },
  cumulativeSum: (r) => [float(...r.shape(1, 4)), r.from(0, 3)],
  softmax: (r) => [float(...r.shape(1, 4)), r.from(0, 3)],
  quantizeLinear(r) {
    const scale = r.shape(0, 3, 3);
    const shape = r.nearShape(scale.map((size) => size * r.from(1, 3)));
    return [float(...shape), float(...scale), byte(...r.nearShape(scale))];
  },
  expand(r) {
    const shape = r.shape(0, 4);
    return [float(...r.broadcastOf(shape)), r.chance(95) ? shape : shape.map(() => r.from(0, 3))];
  },
  gather(r) {
    const shape = r.shape(1, 4);
    return [float(...shape), int(...r.shape(0, 3)), r.options({ axis: () => r.from(0, shape.length) })];
  },
  gatherElements(r) {
    const [shape] = [r.shape(1, 4)];
    const [axis, indices] = along(r, shape);
    return [float(...shape), int(...indices), { axis }];
  },
  gatherND: (r) => [float(...r.shape(1, 4)), int(...r.shape(0, 2), r.from(1, 4))],
  gemm(r) {
    const [m, k, n] = r.list(3, () => r.from(1, 4));
    const [aTranspose, bTranspose] = [r.chance(50), r.chance(50)];
    const near = (sizes) => float(...sizes.map((size) => r.nearly(size)));
    const options = r.options({ c: () => float(...r.broadcastOf([m, n])) });
    return [
      near(aTranspose ? [k, m] : [m, k]),
      near(bTranspose ? [n, k] : [k, n]),
      { ...options, aTranspose, bTranspose },
    ];
  },
  matmul(r) {
    const [m, k, n] = r.list(3, () => r.from(1, 4));
    const batches = r.shape(0, 2);
    return [float(...r.broadcastOf(batches), m, k), float(...r.broadcastOf(batches), r.nearly(k), n)];
  },
  gru: (r) => recurrence(r, 3),
  lstm: (r) => recurrence(r, 4),
  gruCell: (r) => recurrenceCell(r, 3),
  lstmCell: (r) => recurrenceCell(r, 4),
  pad(r) {
    const shape = r.shape(0, 4);
    const sizes = () => r.list(r.chance(95) ? shape.length : r.from(0, 4), () => r.from(0, 3));
    return [
      float(...shape),
      sizes(),
      sizes(),
      r.options({ mode: () => r.pick(['constant', 'edge', 'reflection']) }),
    ];
  },
  reduceSum(r) {
    const shape = r.shape(0, 4);
    return [
      float(...shape),
      r.options({ axes: () => r.axes(shape.length), keepDimensions: () => r.chance(50) }),
    ];
  },
  resample2d: (r) => [
    float(...imageOf(r)),
    r.options({
      scales: () =>
        r.list(r.chance(95) ? 2 : 1, () => r.pick([0.1, 0.5, 1, 1.3, 2, 2.75, r.chance(90) ? 3 : 0])),
      sizes: () =>
        r.chance(60) ? r.list(r.chance(95) ? 2 : 3, () => r.from(r.chance(90) ? 1 : 0, 5)) : undefined,
      axes: () => r.pick([[0, 1], [1, 2], [2, 3], [3, 2], [0, 3], [1, 1], [2, 4], [1], []]),
    }),
  ],
  reshape(r) {
    const shape = r.shape(0, 4);
    const total = shape.reduce((count, size) => count * size, 1);
    return [
      float(...shape),
      r.pick([[total], [1, total], [...shape].reverse(), [total, 1, 1], [total + 1], [0, total], []]),
    ];
  },
  reverse(r) {
    const shape = r.shape(0, 4);
    return [float(...shape), r.options({ axes: () => r.axes(shape.length) })];
  },
  scatterElements(r) {
    const shape = r.shape(1, 4);
    const [axis, indices] = along(r, shape);
    return [float(...shape), int(...indices), float(...r.nearShape(indices)), { axis }];
  },
  scatterND(r) {
    const shape = r.shape(1, 3);
    const [count, rows] = [r.from(1, shape.length + (r.chance(10) ? 1 : 0)), r.shape(0, 2)];
    return [float(...shape), int(...rows, count), float(...r.nearShape([...rows, ...shape.slice(count)]))];
  },
  slice(r) {
    const shape = r.shape(0, 4, 6);
    const starts = shape.map((size) => r.from(0, r.chance(90) ? size - 1 : size));
    const sizes = shape.map((size, i) => r.from(r.chance(95) ? 1 : 0, Math.max(1, size - starts[i])));
    const list = (items) => (r.chance(97) ? items : [...items, 1]);
    return [
      float(...shape),
      list(starts),
      list(sizes),
      r.options({ strides: () => list(shape.map(() => r.from(r.chance(95) ? 1 : 0, 3))) }),
    ];
  },
  split(r) {
    const shape = r.shape(1, 3, 6);
    const axis = r.from(0, shape.length - (r.chance(95) ? 1 : 0));
    const size = shape[axis] ?? 1;
    const first = r.from(0, size);
    return [
      float(...shape),
      r.pick([r.from(0, size), [first, size - first], [size], [first, 1], []]),
      { axis },
    ];
  },
  tile(r) {
    const shape = r.shape(0, 4);
    return [
      float(...shape),
      r.list(r.chance(95) ? shape.length : r.from(0, 4), () => r.from(r.chance(97) ? 1 : 0, 3)),
    ];
  },
  transpose(r) {
    const shape = r.shape(0, 4);
    const turned = shape.map((_, i) => (i + 1) % shape.length);
    return [float(...shape), r.options({ permutation: () => r.pick([turned, r.axes(shape.length)]) })];
  },
};

/** What a call gives: a shape, or a list of them; null where it is refused. */
function shapesOf(name, call) {
  const builder = new MLGraphBuilder(context);
  try {
    const result = builder[name](...made(builder, labeled(call, 'some label')));
    return Array.isArray(result) ? result.map(({ shape }) => [...shape]) : [...result.shape];
  } catch (error) {
    assert.ok(error instanceof TypeError, `${name}(${JSON.stringify(call)}): ${error}`);
    assert.ok(error.message.startsWith(`${name} (some label): `), error.message);
    return null;
  }
}

test('every rule about shapes has its random calls', () => {
  assert.deepEqual(Object.keys(makers).sort(), Object.keys(shapesBySpecification).sort());
});

for (const [name, make] of Object.entries(makers))
  test(`${name} takes, refuses and gives what the specification's steps do`, () => {
    const r = generator(2463534242);
    let refused = 0;
    for (let i = 0; i < callsOfEach; i += 1) {
      const call = make(r);
      const wanted = shapesBySpecification[name](...call);
      assert.deepEqual(shapesOf(name, call), wanted, `${name}(${JSON.stringify(call)})`);
      if (wanted === null) refused += 1;
    }
    const taken = callsOfEach - refused;
    assert.ok(refused >= 8 && taken >= 40, `${refused} of ${callsOfEach} calls are refused`);
  });
