// What holds for every operator of the builder.
import assert from 'node:assert/strict';
import { test } from 'node:test';

import '../../node/webnn.mjs';
import { enums, operators } from '../../node/lib/webnn/operators.js';
import { calls, labeled, made, operandPaths, replaced } from './calls.mjs';

const context = await navigator.ml.createContext({ accelerated: false });
const other = new MLGraphBuilder(context);

const at = (call, path) => path.reduce((value, key) => value[key], call);
/** Calls with one operand exchanged; what is thrown. */
function thrownBy(name, call) {
  const builder = new MLGraphBuilder(context);
  const args = made(builder, call);
  try {
    builder[name](...args);
  } catch (error) {
    return error;
  }
  assert.fail(`${name}(${JSON.stringify(call)}) is taken`);
}

const limitsOf = (row, path) =>
  row.operands[path.length === 1 || row.name === 'concat' ? Object.keys(row.operands)[path[0]] : path.at(-1)];

test('every operator of the table has a call here', () => {
  assert.equal(operators.length, 95);
  assert.deepEqual(Object.keys(calls).sort(), operators.map(({ name }) => name).sort());
});

for (const row of operators) {
  const { name } = row;
  const call = calls[name];
  const paths = operandPaths(call);

  test(`${name} takes a valid call`, () => {
    const builder = new MLGraphBuilder(context);
    const result = builder[name](...made(builder, call));
    for (const operand of row.list ? result : [result]) assert.ok(operand instanceof MLOperand);
    assert.equal(Array.isArray(result), row.list);
  });

  test(`${name} refuses data types that it does not have`, () => {
    for (const path of paths) {
      const { types } = limitsOf(row, path);
      const { shape } = at(call, path);
      for (const dataType of enums.MLOperandDataType.filter((t) => !types.includes(t))) {
        const error = thrownBy(name, replaced(labeled(call, 'some label'), path, { dataType, shape }));
        assert.ok(error instanceof TypeError, `${path}: ${error}`);
        assert.ok(error.message.startsWith(`${name} (some label)`), error.message);
        assert.ok(error.message.includes(dataType), error.message);
      }
    }
  });

  test(`${name} refuses ranks that it does not have`, () => {
    for (const path of paths) {
      const {
        ranks: [least, most],
      } = limitsOf(row, path);
      const { dataType } = at(call, path);
      for (const rank of [least - 1, most + 1].filter((r) => r >= 0 && r <= 8)) {
        const error = thrownBy(
          name,
          replaced(labeled(call, 'a label'), path, {
            dataType,
            shape: new Array(rank).fill(1),
          }),
        );
        assert.ok(error instanceof TypeError, `${path}: ${error}`);
        assert.ok(error.message.startsWith(`${name} (a label)`), error.message);
      }
    }
  });

  test(`${name} refuses operands of different data types where they must agree`, () => {
    for (const path of paths.slice(1)) {
      const { types } = limitsOf(row, path);
      const { dataType, shape } = at(call, path);
      if (dataType !== 'float32' || !types.includes('float16') || at(call, paths[0]).dataType !== 'float32')
        continue;
      const error = thrownBy(name, replaced(call, path, { dataType: 'float16', shape }));
      assert.ok(error instanceof TypeError, `${path}: ${error}`);
    }
  });

  test(`${name} refuses what is no operand of its builder`, () => {
    for (const path of paths) {
      const foreign = made(other, at(call, path));
      const builder = new MLGraphBuilder(context);
      const args = replaced(made(builder, call), path, foreign);
      assert.throws(() => builder[name](...labeled(args, 'x')), {
        name: 'TypeError',
        message: /belongs to another builder/,
      });
      for (const wrong of [null, 5, {}, 'operand'])
        assert.throws(() => builder[name](...replaced(args, path, wrong)), TypeError, `${path}: ${wrong}`);
    }
  });

  test(`${name} needs all its parameters and says how many`, () => {
    const builder = new MLGraphBuilder(context);
    const needed = row.parameters.length;
    assert.equal(builder[name].length, needed);
    assert.throws(() => builder[name](...made(builder, call).slice(0, needed - 1)), TypeError);
    assert.throws(() => builder[name](), TypeError);
    assert.throws(() => MLGraphBuilder.prototype[name].call({}, ...made(builder, call)), TypeError);
  });

  test(`${name} is refused once its builder has built`, async () => {
    const builder = new MLGraphBuilder(context);
    const args = made(builder, call);
    const graph = await builder.build({
      y: builder.identity(builder.input('x', { dataType: 'float32', shape: [1] })),
    });
    assert.throws(() => builder[name](...args), { name: 'InvalidStateError' });
    graph.destroy();
  });
}

test('every operator is refused once the context is lost', async () => {
  const own = await navigator.ml.createContext({ accelerated: false });
  const builder = new MLGraphBuilder(own);
  const args = Object.entries(calls).map(([name, call]) => [name, made(builder, call)]);
  own.destroy();
  for (const [name, list] of args)
    assert.throws(() => builder[name](...list), { name: 'InvalidStateError' }, name);
});
