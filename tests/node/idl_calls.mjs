// The specification's IDL, which ../shared/facts has, and a valid call of every operation in it.
import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

import '../../node/webnn.mjs';
import { calls, made } from './calls.mjs';
import { parseIdl } from './webidl.mjs';

const facts = resolve(dirname(fileURLToPath(import.meta.url)), '../../../shared/facts');
export const skip = !existsSync(facts) && 'there is no copy of WebNN\'s IDL beside the checkout';
export const read = (name) => (skip ? '' : readFileSync(resolve(facts, name), 'utf8'));
export const idl = parseIdl(read('webnn.idl'));
const { NavigatorML, ...others } = idl.interfaces;
export { NavigatorML as mixin };
export const interfaces = others;

export const context = await navigator.ml.createContext({ accelerated: false });
export const vector = { dataType: 'float32', shape: [2] };
export const newBuilder = () => new MLGraphBuilder(context);
async function doubling() {
  const builder = newBuilder();
  const x = builder.input('x', vector);
  return builder.build({ y: builder.add(x, x) });
}
export const graph = await doubling();
export const [x, y] = await Promise.all(
  [0, 1].map(() => context.createTensor({ ...vector, readable: true, writable: true })),
);
export const constant = await context.createConstantTensor(vector, new Float32Array(2));

export const objects = {
  ML: navigator.ml,
  MLContext: context,
  MLGraph: graph,
  MLGraphBuilder: newBuilder(),
  MLOperand: newBuilder().input('x', vector),
  MLTensor: x,
};
export const operationsOf = (name) => {
  const overloads = new Map();
  for (const member of interfaces[name]?.members ?? []) {
    // Node has no GPUDevice, which tells the second overload of createContext.
    if (member.kind !== 'operation' || member.parameters[0]?.type.name === 'GPUDevice') continue;
    overloads.set(member.name, [...(overloads.get(member.name) ?? []), member]);
  }
  return overloads;
};
const needed = ({ parameters }) => parameters.filter(({ isOptional }) => !isOptional).length;
export const least = (overloads) => Math.min(...overloads.map(needed));
export const isPromise = ({ type }) => type.name === 'Promise';

/** What a call ends with: its value or what it throws; a call that returns promises must not throw. */
export async function outcome(call, returnsPromise) {
  let value;
  try {
    value = call();
  } catch (error) {
    assert.ok(!returnsPromise, `it throws ${error}`);
    return { error };
  }
  if (!returnsPromise) return { value };
  assert.ok(value instanceof Promise);
  return value.then(
    (result) => ({ value: result }),
    (error) => ({ error }),
  );
}
export async function assertTypeError(call, returnsPromise, what) {
  const { error } = await outcome(call, returnsPromise);
  assert.ok(error instanceof TypeError, `${what}: ${error ?? 'is taken'}`);
}

/** Arguments of a valid call, new for each. */
export function rightArguments(name, method) {
  if (name === 'MLGraphBuilder' && calls[method]) return made(newBuilder(), calls[method]);
  const output = () => {
    const builder = newBuilder();
    return { y: builder.abs(builder.input('x', vector)) };
  };
  const known = {
    createContext: [{ accelerated: false, powerPreference: 'default' }],
    createTensor: [{ ...vector, readable: true, writable: false }],
    createConstantTensor: [vector, new Float32Array(2)],
    readTensor: [x],
    writeTensor: [x, new Float32Array(2)],
    dispatch: [graph, { x }, { y }],
    input: ['x', vector],
    constant: [vector, new Float32Array(2)],
  };
  return method === 'build' ? [output()] : (known[method] ?? []);
}
