// What JavaScript pays for small graphs: 1,000 dispatches of a 4x4 matmul and one readTensor, divided by 1,000, and a
// round trip of one dispatch and one readTensor. The medians of 50 of each.
import '../node/webnn.mjs';

const context = await navigator.ml.createContext({ accelerated: false });
const builder = new MLGraphBuilder(context);
const matrix = { dataType: 'float32', shape: [4, 4] };
const y = builder.matmul(builder.input('a', matrix), builder.input('b', matrix));
const graph = await builder.build({ y });
const [a, b, output] = await Promise.all([
  context.createTensor({ ...matrix, writable: true }),
  context.createTensor({ ...matrix, writable: true }),
  context.createTensor({ ...matrix, readable: true }),
]);
context.writeTensor(a, new Float32Array(16).fill(1));
context.writeTensor(b, new Float32Array(16).fill(2));

async function microseconds(dispatches) {
  const begin = performance.now();
  for (let i = 0; i < dispatches; i += 1) context.dispatch(graph, { a, b }, { y: output });
  const buffer = await context.readTensor(output);
  const end = performance.now();
  if (new Float32Array(buffer).some((value) => value !== 8)) throw new Error('a product is wrong');
  return ((end - begin) * 1000) / dispatches;
}

async function median(dispatches) {
  const times = [];
  for (let i = 0; i < 50; i += 1) times.push(await microseconds(dispatches));
  return times.sort((left, right) => left - right)[25].toFixed(1);
}

await median(1000); // compiled by then
console.log(`1,000 dispatches and a read: ${await median(1000)} us each`);
console.log(`one dispatch and a read: ${await median(1)} us`);
