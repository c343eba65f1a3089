// Prints the vectors of two texts as transformers.js computes them, with models of a folder. Arguments: the package,
// that folder, and what to register before.
import { pathToFileURL } from 'node:url';

const [entry, models, register] = process.argv.slice(2);
if (register) await import(pathToFileURL(register).href);
const { env, pipeline } = await import(pathToFileURL(entry).href);
Object.assign(env, { allowRemoteModels: false, localModelPath: models });
const extract = await pipeline('feature-extraction', 'minilm', { dtype: 'fp32' });
const { data, dims } = await extract(['a cat sat on the mat', 'it rains'], {
  pooling: 'mean',
  normalize: true,
});
console.log(
  JSON.stringify({
    session: `${Object.values(extract.model.sessions)[0].constructor}`.slice(0, 60),
    dims,
    data: [...data],
  }),
);
