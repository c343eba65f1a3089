import { enums, greatestRank, operators } from './operators.js';

/** Members are made in the order of their names, as WebIDL makes them of a dictionary. */
const dictionary = (entries) => Object.fromEntries(entries.sort(([a], [b]) => (a < b ? -1 : 1)));
const tensorLimits = (types, [min, max]) => ({ dataTypes: [...types], rankRange: { max, min } });
const limitsOf = ({ operands, results }) =>
  dictionary(
    Object.entries({ ...operands, ...results }).map(([part, { types, ranks }]) => [
      part,
      tensorLimits(types, ranks),
    ]),
  );

/** MLOpSupportLimits, new at each call. */
export function supportLimits(maxTensorByteLength) {
  const any = () => tensorLimits(enums.MLOperandDataType, [0, greatestRank]);
  return dictionary([
    ['preferredInputLayout', 'nchw'],
    ['maxTensorByteLength', maxTensorByteLength],
    ...['input', 'constant', 'output'].map((name) => [name, any()]),
    ...operators.map((row) => [row.name, limitsOf(row)]),
  ]);
}
