// Written by tools/node_tables.py from the table of the WebNN door (make docs).
// The Web Neural Network API (https://www.w3.org/TR/webnn/) as `headrace/webnn` has it.

export type MLConv2dFilterOperandLayout = "oihw" | "hwio" | "ohwi" | "ihwo";
export type MLConvTranspose2dFilterOperandLayout = "iohw" | "hwoi" | "ohwi";
export type MLGruWeightLayout = "zrn" | "rzn";
export type MLInputOperandLayout = "nchw" | "nhwc";
export type MLInterpolationMode = "nearest-neighbor" | "linear";
export type MLLstmWeightLayout = "iofg" | "ifgo";
export type MLOperandDataType = "float32" | "float16" | "int32" | "uint32" | "int64" | "uint64" | "int8" | "uint8" | "int4" | "uint4";
export type MLPaddingMode = "constant" | "edge" | "reflection";
export type MLPowerPreference = "default" | "high-performance" | "low-power";
export type MLRecurrentNetworkActivation = "relu" | "sigmoid" | "tanh";
export type MLRecurrentNetworkDirection = "forward" | "backward" | "both";
export type MLRoundingType = "floor" | "ceil";

/** What an extent may be: headrace/webnn/extensions adds to it. */
export interface MLDimensionKinds {
  number: number;
}
export type MLDimension = MLDimensionKinds[keyof MLDimensionKinds];
export type MLNumber = number | bigint;
export type MLBufferSource = ArrayBufferView | ArrayBuffer | SharedArrayBuffer;
export type MLNamedTensors = Record<string, MLTensor>;
export type MLNamedOperands = Record<string, MLOperand>;

export interface MLContextOptions {
  powerPreference?: MLPowerPreference;
  accelerated?: boolean;
}
export interface MLContextLostInfo {
  message: string;
}
export interface MLOperandDescriptor {
  dataType: MLOperandDataType;
  shape: Iterable<number>;
}
export interface MLInputDescriptor {
  dataType: MLOperandDataType;
  shape: Iterable<MLDimension>;
}
export interface MLTensorDescriptor extends MLOperandDescriptor {
  readable?: boolean;
  writable?: boolean;
}
export interface MLOperatorOptions {
  label?: string;
}
export interface MLRankRange {
  min: number;
  max: number;
}
export interface MLTensorLimits {
  dataTypes: MLOperandDataType[];
  rankRange: MLRankRange;
}
export interface MLArgMaxOptions extends MLOperatorOptions {
  keepDimensions?: boolean;
  outputDataType?: MLOperandDataType;
}
export interface MLArgMinOptions extends MLOperatorOptions {
  keepDimensions?: boolean;
  outputDataType?: MLOperandDataType;
}
export interface MLAveragePool2dOptions extends MLOperatorOptions {
  dilations?: Iterable<number>;
  layout?: MLInputOperandLayout;
  outputShapeRounding?: MLRoundingType;
  outputSizes?: Iterable<number>;
  padding?: Iterable<number>;
  strides?: Iterable<number>;
  windowDimensions?: Iterable<number>;
}
export interface MLBatchNormalizationOptions extends MLOperatorOptions {
  axis?: number;
  bias?: MLOperand;
  epsilon?: number;
  scale?: MLOperand;
}
export interface MLClampOptions extends MLOperatorOptions {
  maxValue?: MLNumber;
  minValue?: MLNumber;
}
export interface MLConv2dOptions extends MLOperatorOptions {
  bias?: MLOperand;
  dilations?: Iterable<number>;
  filterLayout?: MLConv2dFilterOperandLayout;
  groups?: number;
  inputLayout?: MLInputOperandLayout;
  padding?: Iterable<number>;
  strides?: Iterable<number>;
}
export interface MLConvTranspose2dOptions extends MLOperatorOptions {
  bias?: MLOperand;
  dilations?: Iterable<number>;
  filterLayout?: MLConvTranspose2dFilterOperandLayout;
  groups?: number;
  inputLayout?: MLInputOperandLayout;
  outputPadding?: Iterable<number>;
  outputSizes?: Iterable<number>;
  padding?: Iterable<number>;
  strides?: Iterable<number>;
}
export interface MLCumulativeSumOptions extends MLOperatorOptions {
  exclusive?: boolean;
  reversed?: boolean;
}
export interface MLEluOptions extends MLOperatorOptions {
  alpha?: number;
}
export interface MLGatherOptions extends MLOperatorOptions {
  axis?: number;
}
export interface MLGatherElementsOptions extends MLOperatorOptions {
  axis?: number;
}
export interface MLGemmOptions extends MLOperatorOptions {
  aTranspose?: boolean;
  alpha?: number;
  bTranspose?: boolean;
  beta?: number;
  c?: MLOperand;
}
export interface MLGruOptions extends MLOperatorOptions {
  activations?: Iterable<MLRecurrentNetworkActivation>;
  bias?: MLOperand;
  direction?: MLRecurrentNetworkDirection;
  initialHiddenState?: MLOperand;
  layout?: MLGruWeightLayout;
  recurrentBias?: MLOperand;
  resetAfter?: boolean;
  returnSequence?: boolean;
}
export interface MLGruCellOptions extends MLOperatorOptions {
  activations?: Iterable<MLRecurrentNetworkActivation>;
  bias?: MLOperand;
  layout?: MLGruWeightLayout;
  recurrentBias?: MLOperand;
  resetAfter?: boolean;
}
export interface MLHardSigmoidOptions extends MLOperatorOptions {
  alpha?: number;
  beta?: number;
}
export interface MLInstanceNormalizationOptions extends MLOperatorOptions {
  bias?: MLOperand;
  epsilon?: number;
  layout?: MLInputOperandLayout;
  scale?: MLOperand;
}
export interface MLL2Pool2dOptions extends MLOperatorOptions {
  dilations?: Iterable<number>;
  layout?: MLInputOperandLayout;
  outputShapeRounding?: MLRoundingType;
  outputSizes?: Iterable<number>;
  padding?: Iterable<number>;
  strides?: Iterable<number>;
  windowDimensions?: Iterable<number>;
}
export interface MLLayerNormalizationOptions extends MLOperatorOptions {
  axes?: Iterable<number>;
  bias?: MLOperand;
  epsilon?: number;
  scale?: MLOperand;
}
export interface MLLeakyReluOptions extends MLOperatorOptions {
  alpha?: number;
}
export interface MLLinearOptions extends MLOperatorOptions {
  alpha?: number;
  beta?: number;
}
export interface MLLstmOptions extends MLOperatorOptions {
  activations?: Iterable<MLRecurrentNetworkActivation>;
  bias?: MLOperand;
  direction?: MLRecurrentNetworkDirection;
  initialCellState?: MLOperand;
  initialHiddenState?: MLOperand;
  layout?: MLLstmWeightLayout;
  peepholeWeight?: MLOperand;
  recurrentBias?: MLOperand;
  returnSequence?: boolean;
}
export interface MLLstmCellOptions extends MLOperatorOptions {
  activations?: Iterable<MLRecurrentNetworkActivation>;
  bias?: MLOperand;
  layout?: MLLstmWeightLayout;
  peepholeWeight?: MLOperand;
  recurrentBias?: MLOperand;
}
export interface MLMaxPool2dOptions extends MLOperatorOptions {
  dilations?: Iterable<number>;
  layout?: MLInputOperandLayout;
  outputShapeRounding?: MLRoundingType;
  outputSizes?: Iterable<number>;
  padding?: Iterable<number>;
  strides?: Iterable<number>;
  windowDimensions?: Iterable<number>;
}
export interface MLPadOptions extends MLOperatorOptions {
  mode?: MLPaddingMode;
  value?: MLNumber;
}
export interface MLReduceL1Options extends MLOperatorOptions {
  axes?: Iterable<number>;
  keepDimensions?: boolean;
}
export interface MLReduceL2Options extends MLOperatorOptions {
  axes?: Iterable<number>;
  keepDimensions?: boolean;
}
export interface MLReduceLogSumOptions extends MLOperatorOptions {
  axes?: Iterable<number>;
  keepDimensions?: boolean;
}
export interface MLReduceLogSumExpOptions extends MLOperatorOptions {
  axes?: Iterable<number>;
  keepDimensions?: boolean;
}
export interface MLReduceMaxOptions extends MLOperatorOptions {
  axes?: Iterable<number>;
  keepDimensions?: boolean;
}
export interface MLReduceMeanOptions extends MLOperatorOptions {
  axes?: Iterable<number>;
  keepDimensions?: boolean;
}
export interface MLReduceMinOptions extends MLOperatorOptions {
  axes?: Iterable<number>;
  keepDimensions?: boolean;
}
export interface MLReduceProductOptions extends MLOperatorOptions {
  axes?: Iterable<number>;
  keepDimensions?: boolean;
}
export interface MLReduceSumOptions extends MLOperatorOptions {
  axes?: Iterable<number>;
  keepDimensions?: boolean;
}
export interface MLReduceSumSquareOptions extends MLOperatorOptions {
  axes?: Iterable<number>;
  keepDimensions?: boolean;
}
export interface MLResample2dOptions extends MLOperatorOptions {
  axes?: Iterable<number>;
  mode?: MLInterpolationMode;
  scales?: Iterable<number>;
  sizes?: Iterable<number>;
}
export interface MLReverseOptions extends MLOperatorOptions {
  axes?: Iterable<number>;
}
export interface MLScatterElementsOptions extends MLOperatorOptions {
  axis?: number;
}
export interface MLSliceOptions extends MLOperatorOptions {
  strides?: Iterable<number>;
}
export interface MLSplitOptions extends MLOperatorOptions {
  axis?: number;
}
export interface MLTransposeOptions extends MLOperatorOptions {
  permutation?: Iterable<number>;
}
export interface MLTriangularOptions extends MLOperatorOptions {
  diagonal?: number;
  upper?: boolean;
}
export interface MLOpSupportLimits {
  preferredInputLayout: MLInputOperandLayout;
  maxTensorByteLength: number;
  input: MLTensorLimits;
  constant: MLTensorLimits;
  output: MLTensorLimits;
  abs: { input: MLTensorLimits; output: MLTensorLimits; };
  add: { a: MLTensorLimits; b: MLTensorLimits; output: MLTensorLimits; };
  argMax: { input: MLTensorLimits; output: MLTensorLimits; };
  argMin: { input: MLTensorLimits; output: MLTensorLimits; };
  averagePool2d: { input: MLTensorLimits; output: MLTensorLimits; };
  batchNormalization: { input: MLTensorLimits; mean: MLTensorLimits; variance: MLTensorLimits; scale: MLTensorLimits; bias: MLTensorLimits; output: MLTensorLimits; };
  cast: { input: MLTensorLimits; output: MLTensorLimits; };
  ceil: { input: MLTensorLimits; output: MLTensorLimits; };
  clamp: { input: MLTensorLimits; output: MLTensorLimits; };
  concat: { inputs: MLTensorLimits; output: MLTensorLimits; };
  conv2d: { input: MLTensorLimits; filter: MLTensorLimits; bias: MLTensorLimits; output: MLTensorLimits; };
  convTranspose2d: { input: MLTensorLimits; filter: MLTensorLimits; bias: MLTensorLimits; output: MLTensorLimits; };
  cos: { input: MLTensorLimits; output: MLTensorLimits; };
  cumulativeSum: { input: MLTensorLimits; output: MLTensorLimits; };
  dequantizeLinear: { input: MLTensorLimits; scale: MLTensorLimits; zeroPoint: MLTensorLimits; output: MLTensorLimits; };
  div: { a: MLTensorLimits; b: MLTensorLimits; output: MLTensorLimits; };
  elu: { input: MLTensorLimits; output: MLTensorLimits; };
  equal: { a: MLTensorLimits; b: MLTensorLimits; output: MLTensorLimits; };
  erf: { input: MLTensorLimits; output: MLTensorLimits; };
  exp: { input: MLTensorLimits; output: MLTensorLimits; };
  expand: { input: MLTensorLimits; output: MLTensorLimits; };
  floor: { input: MLTensorLimits; output: MLTensorLimits; };
  gather: { input: MLTensorLimits; indices: MLTensorLimits; output: MLTensorLimits; };
  gatherElements: { input: MLTensorLimits; indices: MLTensorLimits; output: MLTensorLimits; };
  gatherND: { input: MLTensorLimits; indices: MLTensorLimits; output: MLTensorLimits; };
  gelu: { input: MLTensorLimits; output: MLTensorLimits; };
  gemm: { a: MLTensorLimits; b: MLTensorLimits; c: MLTensorLimits; output: MLTensorLimits; };
  greater: { a: MLTensorLimits; b: MLTensorLimits; output: MLTensorLimits; };
  greaterOrEqual: { a: MLTensorLimits; b: MLTensorLimits; output: MLTensorLimits; };
  gru: { input: MLTensorLimits; weight: MLTensorLimits; recurrentWeight: MLTensorLimits; bias: MLTensorLimits; recurrentBias: MLTensorLimits; initialHiddenState: MLTensorLimits; output0: MLTensorLimits; output1: MLTensorLimits; };
  gruCell: { input: MLTensorLimits; weight: MLTensorLimits; recurrentWeight: MLTensorLimits; hiddenState: MLTensorLimits; bias: MLTensorLimits; recurrentBias: MLTensorLimits; output: MLTensorLimits; };
  hardSigmoid: { input: MLTensorLimits; output: MLTensorLimits; };
  hardSwish: { input: MLTensorLimits; output: MLTensorLimits; };
  identity: { input: MLTensorLimits; output: MLTensorLimits; };
  instanceNormalization: { input: MLTensorLimits; scale: MLTensorLimits; bias: MLTensorLimits; output: MLTensorLimits; };
  isInfinite: { a: MLTensorLimits; output: MLTensorLimits; };
  isNaN: { a: MLTensorLimits; output: MLTensorLimits; };
  l2Pool2d: { input: MLTensorLimits; output: MLTensorLimits; };
  layerNormalization: { input: MLTensorLimits; scale: MLTensorLimits; bias: MLTensorLimits; output: MLTensorLimits; };
  leakyRelu: { input: MLTensorLimits; output: MLTensorLimits; };
  lesser: { a: MLTensorLimits; b: MLTensorLimits; output: MLTensorLimits; };
  lesserOrEqual: { a: MLTensorLimits; b: MLTensorLimits; output: MLTensorLimits; };
  linear: { input: MLTensorLimits; output: MLTensorLimits; };
  log: { input: MLTensorLimits; output: MLTensorLimits; };
  logicalAnd: { a: MLTensorLimits; b: MLTensorLimits; output: MLTensorLimits; };
  logicalNot: { a: MLTensorLimits; output: MLTensorLimits; };
  logicalOr: { a: MLTensorLimits; b: MLTensorLimits; output: MLTensorLimits; };
  logicalXor: { a: MLTensorLimits; b: MLTensorLimits; output: MLTensorLimits; };
  lstm: { input: MLTensorLimits; weight: MLTensorLimits; recurrentWeight: MLTensorLimits; bias: MLTensorLimits; recurrentBias: MLTensorLimits; peepholeWeight: MLTensorLimits; initialHiddenState: MLTensorLimits; initialCellState: MLTensorLimits; output0: MLTensorLimits; output1: MLTensorLimits; output2: MLTensorLimits; };
  lstmCell: { input: MLTensorLimits; weight: MLTensorLimits; recurrentWeight: MLTensorLimits; hiddenState: MLTensorLimits; cellState: MLTensorLimits; bias: MLTensorLimits; recurrentBias: MLTensorLimits; peepholeWeight: MLTensorLimits; output0: MLTensorLimits; output1: MLTensorLimits; };
  matmul: { a: MLTensorLimits; b: MLTensorLimits; output: MLTensorLimits; };
  max: { a: MLTensorLimits; b: MLTensorLimits; output: MLTensorLimits; };
  maxPool2d: { input: MLTensorLimits; output: MLTensorLimits; };
  min: { a: MLTensorLimits; b: MLTensorLimits; output: MLTensorLimits; };
  mul: { a: MLTensorLimits; b: MLTensorLimits; output: MLTensorLimits; };
  neg: { input: MLTensorLimits; output: MLTensorLimits; };
  notEqual: { a: MLTensorLimits; b: MLTensorLimits; output: MLTensorLimits; };
  pad: { input: MLTensorLimits; output: MLTensorLimits; };
  pow: { a: MLTensorLimits; b: MLTensorLimits; output: MLTensorLimits; };
  prelu: { input: MLTensorLimits; slope: MLTensorLimits; output: MLTensorLimits; };
  quantizeLinear: { input: MLTensorLimits; scale: MLTensorLimits; zeroPoint: MLTensorLimits; output: MLTensorLimits; };
  reciprocal: { input: MLTensorLimits; output: MLTensorLimits; };
  reduceL1: { input: MLTensorLimits; output: MLTensorLimits; };
  reduceL2: { input: MLTensorLimits; output: MLTensorLimits; };
  reduceLogSum: { input: MLTensorLimits; output: MLTensorLimits; };
  reduceLogSumExp: { input: MLTensorLimits; output: MLTensorLimits; };
  reduceMax: { input: MLTensorLimits; output: MLTensorLimits; };
  reduceMean: { input: MLTensorLimits; output: MLTensorLimits; };
  reduceMin: { input: MLTensorLimits; output: MLTensorLimits; };
  reduceProduct: { input: MLTensorLimits; output: MLTensorLimits; };
  reduceSum: { input: MLTensorLimits; output: MLTensorLimits; };
  reduceSumSquare: { input: MLTensorLimits; output: MLTensorLimits; };
  relu: { input: MLTensorLimits; output: MLTensorLimits; };
  resample2d: { input: MLTensorLimits; output: MLTensorLimits; };
  reshape: { input: MLTensorLimits; output: MLTensorLimits; };
  reverse: { input: MLTensorLimits; output: MLTensorLimits; };
  roundEven: { input: MLTensorLimits; output: MLTensorLimits; };
  scatterElements: { input: MLTensorLimits; indices: MLTensorLimits; updates: MLTensorLimits; output: MLTensorLimits; };
  scatterND: { input: MLTensorLimits; indices: MLTensorLimits; updates: MLTensorLimits; output: MLTensorLimits; };
  sigmoid: { input: MLTensorLimits; output: MLTensorLimits; };
  sign: { input: MLTensorLimits; output: MLTensorLimits; };
  sin: { input: MLTensorLimits; output: MLTensorLimits; };
  slice: { input: MLTensorLimits; output: MLTensorLimits; };
  softmax: { input: MLTensorLimits; output: MLTensorLimits; };
  softplus: { input: MLTensorLimits; output: MLTensorLimits; };
  softsign: { input: MLTensorLimits; output: MLTensorLimits; };
  split: { input: MLTensorLimits; outputs: MLTensorLimits; };
  sqrt: { input: MLTensorLimits; output: MLTensorLimits; };
  sub: { a: MLTensorLimits; b: MLTensorLimits; output: MLTensorLimits; };
  tan: { input: MLTensorLimits; output: MLTensorLimits; };
  tanh: { input: MLTensorLimits; output: MLTensorLimits; };
  tile: { input: MLTensorLimits; output: MLTensorLimits; };
  transpose: { input: MLTensorLimits; output: MLTensorLimits; };
  triangular: { input: MLTensorLimits; output: MLTensorLimits; };
  where: { condition: MLTensorLimits; trueValue: MLTensorLimits; falseValue: MLTensorLimits; output: MLTensorLimits; };
}

// The IDL's names of dictionaries that several operators share.
export type MLArgMinMaxOptions = MLArgMaxOptions;
export type MLPool2dOptions = MLMaxPool2dOptions;
export type MLReduceOptions = MLReduceSumOptions;
export type MLScatterOptions = MLScatterElementsOptions;
export type MLBatchNormalizationSupportLimits = MLOpSupportLimits['batchNormalization'];
export type MLBinarySupportLimits = MLOpSupportLimits['add'];
export type MLConcatSupportLimits = MLOpSupportLimits['concat'];
export type MLConv2dSupportLimits = MLOpSupportLimits['conv2d'];
export type MLGatherSupportLimits = MLOpSupportLimits['gather'];
export type MLGemmSupportLimits = MLOpSupportLimits['gemm'];
export type MLGruCellSupportLimits = MLOpSupportLimits['gruCell'];
export type MLGruSupportLimits = MLOpSupportLimits['gru'];
export type MLLogicalNotSupportLimits = MLOpSupportLimits['logicalNot'];
export type MLLstmCellSupportLimits = MLOpSupportLimits['lstmCell'];
export type MLLstmSupportLimits = MLOpSupportLimits['lstm'];
export type MLNormalizationSupportLimits = MLOpSupportLimits['layerNormalization'];
export type MLPreluSupportLimits = MLOpSupportLimits['prelu'];
export type MLQuantizeDequantizeLinearSupportLimits = MLOpSupportLimits['quantizeLinear'];
export type MLScatterSupportLimits = MLOpSupportLimits['scatterElements'];
export type MLSingleInputSupportLimits = MLOpSupportLimits['relu'];
export type MLSplitSupportLimits = MLOpSupportLimits['split'];
export type MLWhereSupportLimits = MLOpSupportLimits['where'];

export class ML {
  readonly [Symbol.toStringTag]: 'ML';
  private constructor();
  createContext(options?: MLContextOptions): Promise<MLContext>;
}

export class MLContext {
  readonly [Symbol.toStringTag]: 'MLContext';
  private constructor();
  readonly accelerated: boolean;
  readonly lost: Promise<MLContextLostInfo>;
  createTensor(descriptor: MLTensorDescriptor): Promise<MLTensor>;
  createConstantTensor(descriptor: MLOperandDescriptor, inputData: MLBufferSource): Promise<MLTensor>;
  readTensor(tensor: MLTensor): Promise<ArrayBuffer>;
  readTensor(tensor: MLTensor, outputData: MLBufferSource): Promise<undefined>;
  writeTensor(tensor: MLTensor, inputData: MLBufferSource): undefined;
  dispatch(graph: MLGraph, inputs: MLNamedTensors, outputs: MLNamedTensors): undefined;
  opSupportLimits(): MLOpSupportLimits;
  destroy(): undefined;
}

export class MLGraph {
  readonly [Symbol.toStringTag]: 'MLGraph';
  private constructor();
  destroy(): undefined;
}

export class MLOperand {
  readonly [Symbol.toStringTag]: 'MLOperand';
  private constructor();
  readonly dataType: MLOperandDataType;
  readonly shape: readonly MLDimension[];
}

export class MLTensor {
  readonly [Symbol.toStringTag]: 'MLTensor';
  private constructor();
  readonly dataType: MLOperandDataType;
  readonly shape: readonly number[];
  readonly readable: boolean;
  readonly writable: boolean;
  readonly constant: boolean;
  destroy(): undefined;
}

export class MLGraphBuilder {
  readonly [Symbol.toStringTag]: 'MLGraphBuilder';
  constructor(context: MLContext);
  input(name: string, descriptor: MLInputDescriptor): MLOperand;
  constant(descriptor: MLOperandDescriptor, buffer: MLBufferSource): MLOperand;
  constant(dataType: MLOperandDataType, value: MLNumber): MLOperand;
  constant(tensor: MLTensor): MLOperand;
  build(outputs: MLNamedOperands): Promise<MLGraph>;
  abs(input: MLOperand, options?: MLOperatorOptions): MLOperand;
  add(a: MLOperand, b: MLOperand, options?: MLOperatorOptions): MLOperand;
  argMax(input: MLOperand, axis: number, options?: MLArgMaxOptions): MLOperand;
  argMin(input: MLOperand, axis: number, options?: MLArgMinOptions): MLOperand;
  averagePool2d(input: MLOperand, options?: MLAveragePool2dOptions): MLOperand;
  batchNormalization(input: MLOperand, mean: MLOperand, variance: MLOperand, options?: MLBatchNormalizationOptions): MLOperand;
  cast(input: MLOperand, dataType: MLOperandDataType, options?: MLOperatorOptions): MLOperand;
  ceil(input: MLOperand, options?: MLOperatorOptions): MLOperand;
  clamp(input: MLOperand, options?: MLClampOptions): MLOperand;
  concat(inputs: Iterable<MLOperand>, axis: number, options?: MLOperatorOptions): MLOperand;
  conv2d(input: MLOperand, filter: MLOperand, options?: MLConv2dOptions): MLOperand;
  convTranspose2d(input: MLOperand, filter: MLOperand, options?: MLConvTranspose2dOptions): MLOperand;
  cos(input: MLOperand, options?: MLOperatorOptions): MLOperand;
  cumulativeSum(input: MLOperand, axis: number, options?: MLCumulativeSumOptions): MLOperand;
  dequantizeLinear(input: MLOperand, scale: MLOperand, zeroPoint: MLOperand, options?: MLOperatorOptions): MLOperand;
  div(a: MLOperand, b: MLOperand, options?: MLOperatorOptions): MLOperand;
  elu(input: MLOperand, options?: MLEluOptions): MLOperand;
  equal(a: MLOperand, b: MLOperand, options?: MLOperatorOptions): MLOperand;
  erf(input: MLOperand, options?: MLOperatorOptions): MLOperand;
  exp(input: MLOperand, options?: MLOperatorOptions): MLOperand;
  expand(input: MLOperand, newShape: Iterable<MLDimension>, options?: MLOperatorOptions): MLOperand;
  floor(input: MLOperand, options?: MLOperatorOptions): MLOperand;
  gather(input: MLOperand, indices: MLOperand, options?: MLGatherOptions): MLOperand;
  gatherElements(input: MLOperand, indices: MLOperand, options?: MLGatherElementsOptions): MLOperand;
  gatherND(input: MLOperand, indices: MLOperand, options?: MLOperatorOptions): MLOperand;
  gelu(input: MLOperand, options?: MLOperatorOptions): MLOperand;
  gemm(a: MLOperand, b: MLOperand, options?: MLGemmOptions): MLOperand;
  greater(a: MLOperand, b: MLOperand, options?: MLOperatorOptions): MLOperand;
  greaterOrEqual(a: MLOperand, b: MLOperand, options?: MLOperatorOptions): MLOperand;
  gru(input: MLOperand, weight: MLOperand, recurrentWeight: MLOperand, steps: number, hiddenSize: number, options?: MLGruOptions): MLOperand[];
  gruCell(input: MLOperand, weight: MLOperand, recurrentWeight: MLOperand, hiddenState: MLOperand, hiddenSize: number, options?: MLGruCellOptions): MLOperand;
  hardSigmoid(input: MLOperand, options?: MLHardSigmoidOptions): MLOperand;
  hardSwish(input: MLOperand, options?: MLOperatorOptions): MLOperand;
  identity(input: MLOperand, options?: MLOperatorOptions): MLOperand;
  instanceNormalization(input: MLOperand, options?: MLInstanceNormalizationOptions): MLOperand;
  isInfinite(a: MLOperand, options?: MLOperatorOptions): MLOperand;
  isNaN(a: MLOperand, options?: MLOperatorOptions): MLOperand;
  l2Pool2d(input: MLOperand, options?: MLL2Pool2dOptions): MLOperand;
  layerNormalization(input: MLOperand, options?: MLLayerNormalizationOptions): MLOperand;
  leakyRelu(input: MLOperand, options?: MLLeakyReluOptions): MLOperand;
  lesser(a: MLOperand, b: MLOperand, options?: MLOperatorOptions): MLOperand;
  lesserOrEqual(a: MLOperand, b: MLOperand, options?: MLOperatorOptions): MLOperand;
  linear(input: MLOperand, options?: MLLinearOptions): MLOperand;
  log(input: MLOperand, options?: MLOperatorOptions): MLOperand;
  logicalAnd(a: MLOperand, b: MLOperand, options?: MLOperatorOptions): MLOperand;
  logicalNot(a: MLOperand, options?: MLOperatorOptions): MLOperand;
  logicalOr(a: MLOperand, b: MLOperand, options?: MLOperatorOptions): MLOperand;
  logicalXor(a: MLOperand, b: MLOperand, options?: MLOperatorOptions): MLOperand;
  lstm(input: MLOperand, weight: MLOperand, recurrentWeight: MLOperand, steps: number, hiddenSize: number, options?: MLLstmOptions): MLOperand[];
  lstmCell(input: MLOperand, weight: MLOperand, recurrentWeight: MLOperand, hiddenState: MLOperand, cellState: MLOperand, hiddenSize: number, options?: MLLstmCellOptions): MLOperand[];
  matmul(a: MLOperand, b: MLOperand, options?: MLOperatorOptions): MLOperand;
  max(a: MLOperand, b: MLOperand, options?: MLOperatorOptions): MLOperand;
  maxPool2d(input: MLOperand, options?: MLMaxPool2dOptions): MLOperand;
  min(a: MLOperand, b: MLOperand, options?: MLOperatorOptions): MLOperand;
  mul(a: MLOperand, b: MLOperand, options?: MLOperatorOptions): MLOperand;
  neg(input: MLOperand, options?: MLOperatorOptions): MLOperand;
  notEqual(a: MLOperand, b: MLOperand, options?: MLOperatorOptions): MLOperand;
  pad(input: MLOperand, beginningPadding: Iterable<number>, endingPadding: Iterable<number>, options?: MLPadOptions): MLOperand;
  pow(a: MLOperand, b: MLOperand, options?: MLOperatorOptions): MLOperand;
  prelu(input: MLOperand, slope: MLOperand, options?: MLOperatorOptions): MLOperand;
  quantizeLinear(input: MLOperand, scale: MLOperand, zeroPoint: MLOperand, options?: MLOperatorOptions): MLOperand;
  reciprocal(input: MLOperand, options?: MLOperatorOptions): MLOperand;
  reduceL1(input: MLOperand, options?: MLReduceL1Options): MLOperand;
  reduceL2(input: MLOperand, options?: MLReduceL2Options): MLOperand;
  reduceLogSum(input: MLOperand, options?: MLReduceLogSumOptions): MLOperand;
  reduceLogSumExp(input: MLOperand, options?: MLReduceLogSumExpOptions): MLOperand;
  reduceMax(input: MLOperand, options?: MLReduceMaxOptions): MLOperand;
  reduceMean(input: MLOperand, options?: MLReduceMeanOptions): MLOperand;
  reduceMin(input: MLOperand, options?: MLReduceMinOptions): MLOperand;
  reduceProduct(input: MLOperand, options?: MLReduceProductOptions): MLOperand;
  reduceSum(input: MLOperand, options?: MLReduceSumOptions): MLOperand;
  reduceSumSquare(input: MLOperand, options?: MLReduceSumSquareOptions): MLOperand;
  relu(input: MLOperand, options?: MLOperatorOptions): MLOperand;
  resample2d(input: MLOperand, options?: MLResample2dOptions): MLOperand;
  reshape(input: MLOperand, newShape: Iterable<MLDimension>, options?: MLOperatorOptions): MLOperand;
  reverse(input: MLOperand, options?: MLReverseOptions): MLOperand;
  roundEven(input: MLOperand, options?: MLOperatorOptions): MLOperand;
  scatterElements(input: MLOperand, indices: MLOperand, updates: MLOperand, options?: MLScatterElementsOptions): MLOperand;
  scatterND(input: MLOperand, indices: MLOperand, updates: MLOperand, options?: MLOperatorOptions): MLOperand;
  sigmoid(input: MLOperand, options?: MLOperatorOptions): MLOperand;
  sign(input: MLOperand, options?: MLOperatorOptions): MLOperand;
  sin(input: MLOperand, options?: MLOperatorOptions): MLOperand;
  slice(input: MLOperand, starts: Iterable<number>, sizes: Iterable<number>, options?: MLSliceOptions): MLOperand;
  softmax(input: MLOperand, axis: number, options?: MLOperatorOptions): MLOperand;
  softplus(input: MLOperand, options?: MLOperatorOptions): MLOperand;
  softsign(input: MLOperand, options?: MLOperatorOptions): MLOperand;
  split(input: MLOperand, splits: number | Iterable<number>, options?: MLSplitOptions): MLOperand[];
  sqrt(input: MLOperand, options?: MLOperatorOptions): MLOperand;
  sub(a: MLOperand, b: MLOperand, options?: MLOperatorOptions): MLOperand;
  tan(input: MLOperand, options?: MLOperatorOptions): MLOperand;
  tanh(input: MLOperand, options?: MLOperatorOptions): MLOperand;
  tile(input: MLOperand, repetitions: Iterable<number>, options?: MLOperatorOptions): MLOperand;
  transpose(input: MLOperand, options?: MLTransposeOptions): MLOperand;
  triangular(input: MLOperand, options?: MLTriangularOptions): MLOperand;
  where(condition: MLOperand, trueValue: MLOperand, falseValue: MLOperand, options?: MLOperatorOptions): MLOperand;
}

/** What `navigator.ml` is. */
export const ml: ML;

// Names for the globals below, which have those of the classes: their constructors, and their objects.
type MLClass = typeof ML;
type MLContextClass = typeof MLContext;
type MLGraphClass = typeof MLGraph;
type MLGraphBuilderClass = typeof MLGraphBuilder;
type MLOperandClass = typeof MLOperand;
type MLTensorClass = typeof MLTensor;
type MLObject = ML;
type MLContextObject = MLContext;
type MLGraphObject = MLGraph;
type MLGraphBuilderObject = MLGraphBuilder;
type MLOperandObject = MLOperand;
type MLTensorObject = MLTensor;

declare global {
  interface Navigator {
    readonly ml: ML;
  }
  var ML: MLClass;
  var MLContext: MLContextClass;
  var MLGraph: MLGraphClass;
  var MLGraphBuilder: MLGraphBuilderClass;
  var MLOperand: MLOperandClass;
  var MLTensor: MLTensorClass;
  interface ML extends MLObject {}
  interface MLContext extends MLContextObject {}
  interface MLGraph extends MLGraphObject {}
  interface MLGraphBuilder extends MLGraphBuilderObject {}
  interface MLOperand extends MLOperandObject {}
  interface MLTensor extends MLTensorObject {}
}
