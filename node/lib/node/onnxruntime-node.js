// `headrace/onnxruntime-node` in Node: that package's API on Headrace. scripts/bundle.mjs makes
// dist/onnxruntime-node.cjs of it.
import { settled } from '../models/error.js';
import { loader } from '../models/model.js';
import { env } from '../onnxruntime/env.js';
import { inferenceSessionOn } from '../onnxruntime/session.js';
import { Tensor } from '../onnxruntime/tensor.js';
import { native } from './native.js';

const addon = native('headrace');

export const InferenceSession = inferenceSessionOn(loader(addon), () => settled(addon.devices()));
/** What executionProviders may name. */
export const listSupportedBackends = () => [
  { name: 'cpu', bundled: true },
  { name: 'headrace', bundled: true },
];

export { Tensor, env };
