#pragma once
#include <string>
#include <vector>

#include "doors/onnx/reading/operators.h"

namespace headrace::onnx {

/// An activation of a recurrent network.
struct CellFunction {
    std::string name;  ///< of an operator, or Affine or ScaledTanh
    double alpha = 0, beta = 0;

    bool operator==(const CellFunction&) const = default;
    Operand of(OpWriter& g, const Node& node, const Operand& x) const;
};

/// What the sums in a recurrent network's cells go through.
struct CellFunctions {
    std::vector<CellFunction> all;  ///< one direction's after the other's
    std::size_t each = 1;           ///< how many a direction has
    double limit = 0;               ///< sums are clipped to [-limit, limit]; 0: they are not

    const CellFunction& at(std::size_t direction, std::size_t i) const {
        return all[(direction * each + i) % all.size()];
    }
    /// In the catalog's words, "sigmoid,tanh"; "" for what its ops do not have.
    std::string in_catalog() const;
    /// The operand, clipped.
    Operand limited(OpWriter& g, const Operand& sum) const;
};

/// Reads the attributes activations, activation_alpha, activation_beta and clip. usual: a direction's own.
CellFunctions cell_functions(const Node& node, const std::vector<std::string>& usual);

}  // namespace headrace::onnx
