#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "headrace/webnn.h"

namespace headrace::webnn::testing {

using Ints = std::vector<std::int64_t>;
constexpr DType kF32 = DType::f32;  // of most operands

/// A tensor's type, and its elements as doubles whatever that is.
struct Elements {
    DType dtype = DType::f32;
    Ints shape;
    std::vector<double> values;
};

/// What an operator gave: one operand, or several.
struct Results : std::vector<MLOperand> {
    Results(MLOperand one) : std::vector<MLOperand>{std::move(one)} {}
    Results(std::vector<MLOperand> list) : std::vector<MLOperand>(std::move(list)) {}
};

/// One call of a builder's method, on the CPU.
class Call {
public:
    MLGraphBuilder builder{MLContext({.accelerated = false})};

    /// An input with the values that compute() runs with.
    MLOperand input(Ints shape, std::vector<double> values, DType dtype = DType::f32);
    /// Builds the graph of the results and runs it.
    std::vector<Elements> compute(const Results& results);
    /// The specification's names of the operators in the graph that compute() built.
    const std::vector<std::string>& operators() const { return operators_; }

private:
    std::vector<Elements> inputs_;
    std::vector<std::string> operators_;
};

/// An operator of the specification by its name there, a call of the method and what that gives.
struct OperatorCase {
    std::string name;
    std::function<Results(Call&)> call;
    std::vector<Elements> expected;

    friend void PrintTo(const OperatorCase& one, std::ostream* out) { *out << one.name; }
};

/// Element-wise operators and reductions.
std::vector<OperatorCase> element_cases();
/// Operators that move, look up, quantise or rearrange elements.
std::vector<OperatorCase> tensor_cases();
/// Products, convolutions, pooling, normalisations and recurrent networks.
std::vector<OperatorCase> network_cases();

}  // namespace headrace::webnn::testing
