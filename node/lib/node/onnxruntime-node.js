// `headrace/onnxruntime-node` in Node: that package's API on Headrace. scripts/bundle.mjs makes
// dist/onnxruntime-node.cjs of it.
import { settled } from '../models/error.js';
import { loader } from '../models/model.js';
import { registerBackend } from '../onnxruntime/backends.js';
import { env } from '../onnxruntime/env.js';
import { inferenceSessionOn } from '../onnxruntime/session.js';
import { Tensor } from '../onnxruntime/tensor.js';
import {
  TRACE,
  TRACE_EVENT_BEGIN,
  TRACE_EVENT_END,
  TRACE_FUNC_BEGIN,
  TRACE_FUNC_END,
} from '../onnxruntime/trace.js';
import { native } from './native.js';

const addon = native('headrace');

export const InferenceSession = inferenceSessionOn(loader(addon), () => settled(addon.devices()));
/** What executionProviders may name. */
export const listSupportedBackends = () => [
  { name: 'cpu', bundled: true },
  { name: 'headrace', bundled: true },
];

export { Tensor, env, registerBackend };
export { TRACE, TRACE_EVENT_BEGIN, TRACE_EVENT_END, TRACE_FUNC_BEGIN, TRACE_FUNC_END };
