// One instance for both kinds of modules: what require() gave is what import gives.
import onnxruntime from './dist/onnxruntime-node.cjs';

export const { InferenceSession, Tensor, env, listSupportedBackends, registerBackend } = onnxruntime;
export const { TRACE, TRACE_EVENT_BEGIN, TRACE_EVENT_END, TRACE_FUNC_BEGIN, TRACE_FUNC_END } = onnxruntime;
export default onnxruntime;
