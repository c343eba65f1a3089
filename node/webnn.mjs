// One instance for both kinds of modules: what require() gave is what import gives.
import webnn from './dist/webnn.cjs';

export const { ml, ML, MLContext, MLGraph, MLGraphBuilder, MLOperand, MLTensor } = webnn;
