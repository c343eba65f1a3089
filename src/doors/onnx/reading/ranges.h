#pragma once
#include <map>
#include <set>
#include <string>
#include <utility>

#include "ir/tensor_type.h"

namespace headrace::onnx {

/// What ops need of open dimensions: a filter of 7 rows needs images of at least 7, and so on backwards. A
/// model cannot be called with less, so whatever is read after the op may count on it: `(samples-10)//5` is
/// no negative quotient once a filter of 10 has been read.
class Ranges {
public:
    /// Results' extents, which are at least what their ops say.
    void learn(const Shape& extents);
    /// A run in which an extent is less fails.
    void needs(const Dim& extent, std::int64_t least);
    Dim narrowed(const Dim& extent) const;
    Shape narrowed(Shape shape) const;

private:
    std::map<std::string, std::int64_t> least_;  ///< of symbols
    std::set<std::pair<std::string, std::int64_t>> learned_;
    mutable std::map<std::string, Dim> known_;  ///< expressions with these ranges
};

}  // namespace headrace::onnx
