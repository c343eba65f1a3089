// One instance for both kinds of modules: what require() gave is what import gives.
import webnn from './webnn-extensions.cjs';

export const { ml, ML, MLContext, MLGraph, MLGraphBuilder, MLOperand, MLTensor } = webnn;
