// An ONNX model of the visitor's: what it takes and gives, with inputs that are made up, and how long a run takes.
import { load } from '../../node/lib/web/index.js';

const arrays = {
  float32: Float32Array,
  float64: Float64Array,
  float16: Uint16Array,
  bfloat16: Float32Array,
  int8: Int8Array,
  uint8: Uint8Array,
  bool: Uint8Array,
  int16: Int16Array,
  uint16: Uint16Array,
  int32: Int32Array,
  uint32: Uint32Array,
  int64: BigInt64Array,
  uint64: BigUint64Array,
};
/** What an open extent is: a batch of one, and some of everything else. */
const openExtent = (name) => (/batch|^n$/i.test(name) ? 1 : 16);

function madeUp({ type, shape }) {
  const dims = shape.map((extent) => (typeof extent === 'string' ? openExtent(extent) : extent));
  const array = arrays[type];
  if (!array) throw new Error(`no input of ${type} is made up here`);
  const data = new array(dims.reduce((a, b) => a * b, 1));
  for (let i = 0; i < data.length; i += 1) {
    if (type === 'float32' || type === 'float64') data[i] = Math.sin(i);
    else data[i] = array === BigInt64Array || array === BigUint64Array ? BigInt(i % 2) : i % 2;
  }
  return { data, dims };
}

const text = (values) => Array.from(values.subarray(0, 4), (v) => Number(v).toPrecision(4)).join(', ');

export function runModels() {
  const note = document.querySelector('#model-note');
  const table = document.querySelector('#model-table');
  const drop = document.querySelector('#drop');
  const row = (...cells) => {
    const line = table.tBodies[0].insertRow();
    for (const cell of cells) line.insertCell().textContent = cell;
  };

  async function run(file) {
    table.hidden = true;
    table.tBodies[0].replaceChildren();
    note.textContent = `Loading ${file.name} …`;
    const begin = performance.now();
    const model = await load(await file.arrayBuffer());
    const loaded = performance.now() - begin;
    try {
      const inputs = Object.fromEntries(model.inputs.map((input) => [input.name, madeUp(input)]));
      for (const { name, type } of model.inputs)
        row(name, type, `[${inputs[name].dims.join(', ')}]`, `${text(inputs[name].data)} (made up)`);
      const times = [];
      let outputs;
      while (times.length < 10 && times.reduce((a, b) => a + b, 0) < 3000) {
        const start = performance.now();
        outputs = await model.run(inputs);
        times.push(performance.now() - start);
      }
      for (const [name, { type, dims, data }] of Object.entries(outputs))
        row(name, type, `[${dims.join(', ')}]`, text(data));
      table.hidden = false;
      const best = Math.min(...times).toFixed(1);
      note.textContent = `${file.name}: loaded in ${loaded.toFixed(0)} ms; the best of ${times.length} runs took ${best} ms.`;
    } finally {
      model.dispose();
    }
  }
  const start = (file) =>
    file && run(file).catch((error) => (note.textContent = `${file.name}: ${error.message}`));

  document.querySelector('#file').addEventListener('change', (event) => start(event.target.files[0]));
  drop.addEventListener('dragover', (event) => event.preventDefault());
  drop.addEventListener('drop', (event) => {
    event.preventDefault();
    start(event.dataTransfer.files[0]);
  });
}
