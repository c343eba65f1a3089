// One instance for both kinds of modules: what require() gave is what import gives.
import onnxruntime from './dist/onnxruntime-node.cjs';

export const { InferenceSession, Tensor, env, listSupportedBackends } = onnxruntime;
export default onnxruntime;
