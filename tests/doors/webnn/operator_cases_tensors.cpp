#include "doors/webnn/operator_cases.h"

namespace headrace::webnn::testing {
namespace {

constexpr DType kI32 = DType::i32, kI64 = DType::i64, kI8 = DType::i8, kU8 = DType::u8;

/// [[1, 2, 3], [4, 5, 6]]
MLOperand matrix(Call& c) { return c.input({2, 3}, {1, 2, 3, 4, 5, 6}); }

std::vector<OperatorCase> moving_cases() {
    return {
        {"cast",
         [](Call& c) {
             return c.builder.cast(c.input({3}, {-1.5, 0, 2.75}), kI32);
         },
         {{kI32, {3}, {-1, 0, 2}}}},
        {"concat",
         [](Call& c) {
             return c.builder.concat({matrix(c), c.input({2, 1}, {7, 8})}, 1);
         },
         {{kF32, {2, 4}, {1, 2, 3, 7, 4, 5, 6, 8}}}},
        {"expand",
         [](Call& c) {
             return c.builder.expand(c.input({1, 2}, {1, 2}), {3, 2});
         },
         {{kF32, {3, 2}, {1, 2, 1, 2, 1, 2}}}},
        {"pad",
         [](Call& c) {
             return c.builder.pad(matrix(c), {0, 1}, {1, 1}, {{"mode", std::string("edge")}});
         },
         {{kF32, {3, 5}, {1, 1, 2, 3, 3, 4, 4, 5, 6, 6, 4, 4, 5, 6, 6}}}},
        {"resample2d",
         [](Call& c) {
             return c.builder.resample2d(c.input({1, 1, 1, 2}, {1, 2}),
                                         {{"mode", std::string("nearest-neighbor")}, {"sizes", Ints{2, 4}}});
         },
         {{kF32, {1, 1, 2, 4}, {1, 1, 2, 2, 1, 1, 2, 2}}}},
        {"reshape",
         [](Call& c) {
             return c.builder.reshape(matrix(c), {3, 2});
         },
         {{kF32, {3, 2}, {1, 2, 3, 4, 5, 6}}}},
        {"reverse",
         [](Call& c) {
             return c.builder.reverse(matrix(c), {{"axes", Ints{1}}});
         },
         {{kF32, {2, 3}, {3, 2, 1, 6, 5, 4}}}},
        {"slice",
         [](Call& c) {
             return c.builder.slice(matrix(c), {0, 0}, {2, 3}, {{"strides", Ints{1, 2}}});
         },
         {{kF32, {2, 2}, {1, 3, 4, 6}}}},
        {"split",
         [](Call& c) {
             return c.builder.split(matrix(c), {1, 2}, {{"axis", std::int64_t{1}}});
         },
         {{kF32, {2, 1}, {1, 4}}, {kF32, {2, 2}, {2, 3, 5, 6}}}},
        {"tile",
         [](Call& c) {
             return c.builder.tile(c.input({1, 2}, {1, 2}), {2, 2});
         },
         {{kF32, {2, 4}, {1, 2, 1, 2, 1, 2, 1, 2}}}},
        {"transpose",
         [](Call& c) {
             return c.builder.transpose(matrix(c), {{"permutation", Ints{1, 0}}});
         },
         {{kF32, {3, 2}, {1, 4, 2, 5, 3, 6}}}},
        {"triangular",
         [](Call& c) {
             return c.builder.triangular(matrix(c), {{"upper", false}});
         },
         {{kF32, {2, 3}, {1, 0, 0, 4, 5, 0}}}},
        {"where",
         [](Call& c) {
             const MLOperand condition = c.input({2, 3}, {1, 0, 1, 0, 1, 0}, kU8);
             return c.builder.where(condition, matrix(c), c.input({1}, {-1}));
         },
         {{kF32, {2, 3}, {1, -1, 3, -1, 5, -1}}}},
    };
}

std::vector<OperatorCase> indexing_cases() {
    return {
        {"argMax",
         [](Call& c) {
             return c.builder.argMax(matrix(c), 0, {{"outputDataType", kI64}});
         },
         {{kI64, {3}, {1, 1, 1}}}},
        {"argMin",
         [](Call& c) {
             return c.builder.argMin(matrix(c), 1, {{"keepDimensions", true}});
         },
         {{kI32, {2, 1}, {0, 0}}}},
        {"gather",
         [](Call& c) {
             return c.builder.gather(matrix(c), c.input({2}, {1, 0}, kI32));
         },
         {{kF32, {2, 3}, {4, 5, 6, 1, 2, 3}}}},
        {"gatherElements",
         [](Call& c) {
             return c.builder.gatherElements(matrix(c), c.input({1, 3}, {1, 0, 1}, kI32));
         },
         {{kF32, {1, 3}, {4, 2, 6}}}},
        {"gatherND",
         [](Call& c) {
             return c.builder.gatherND(matrix(c), c.input({2, 2}, {0, 2, 1, 1}, kI32));
         },
         {{kF32, {2}, {3, 5}}}},
        {"scatterElements",
         [](Call& c) {
             return c.builder.scatterElements(matrix(c), c.input({1, 3}, {1, 0, 1}, kI32),
                                              c.input({1, 3}, {7, 8, 9}));
         },
         {{kF32, {2, 3}, {1, 8, 3, 7, 5, 9}}}},
        {"scatterND",
         [](Call& c) {
             return c.builder.scatterND(matrix(c), c.input({1, 1}, {1}, kI32), c.input({1, 3}, {7, 8, 9}));
         },
         {{kF32, {2, 3}, {1, 2, 3, 7, 8, 9}}}},
    };
}

std::vector<OperatorCase> number_cases() {
    return {
        {"cumulativeSum",
         [](Call& c) {
             return c.builder.cumulativeSum(matrix(c), 1, {{"exclusive", true}});
         },
         {{kF32, {2, 3}, {0, 1, 3, 0, 4, 9}}}},
        {"dequantizeLinear",
         [](Call& c) {
             return c.builder.dequantizeLinear(c.input({3}, {-1, 2, 6}, kI8), c.input({1}, {0.5}),
                                               c.input({1}, {1}, kI8));
         },
         {{kF32, {3}, {-1, 0.5, 2.5}}}},
        {"quantizeLinear",
         [](Call& c) {
             return c.builder.quantizeLinear(c.input({4}, {-1, 0.5, 2.6, 100}), c.input({1}, {0.5}),
                                             c.input({1}, {1}, kI8));
         },
         {{kI8, {4}, {-1, 2, 6, 127}}}},
    };
}

}  // namespace

std::vector<OperatorCase> tensor_cases() {
    std::vector<OperatorCase> all;
    for (auto* cases : {moving_cases, indexing_cases, number_cases})
        for (OperatorCase& one : cases()) all.push_back(std::move(one));
    return all;
}

}  // namespace headrace::webnn::testing
