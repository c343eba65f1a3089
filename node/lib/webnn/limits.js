import { enums, greatestRank, operators } from './operators.js';

const tensorLimits = (types, [min, max]) => ({ dataTypes: [...types], rankRange: { min, max } });

/** MLOpSupportLimits, new at each call. */
export function supportLimits(maxTensorByteLength) {
  const any = () => tensorLimits(enums.MLOperandDataType, [0, greatestRank]);
  const limits = {
    preferredInputLayout: 'nchw',
    maxTensorByteLength,
    input: any(),
    constant: any(),
    output: any(),
  };
  for (const { name, operands, results } of operators) {
    limits[name] = {};
    for (const [part, { types, ranks }] of Object.entries({ ...operands, ...results }))
      limits[name][part] = tensorLimits(types, ranks);
  }
  return limits;
}
