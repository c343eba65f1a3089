#pragma once
#include <functional>
#include <span>
#include <string_view>
#include <type_traits>
#include <vector>

#include "doors/onnx/model/source.h"
#include "doors/onnx/reading/node.h"
#include "doors/onnx/reading/op_writer.h"

/// How operators are read. A family, src/doors/onnx/ops/<stem>.cpp, has a function for each operator, and
/// ends with
///
///     std::span<const Operator> <stem>_operators() {
///         static const Operator kOperators[] = {{"Gather", 1, gather, "2 -> 1, axis int"}, ...};
///         return kOperators;
///     }
///
/// by which CMake finds it (cmake/families.cmake).
namespace headrace::onnx {

using Results = std::vector<Operand>;

/// A function `Operand f(OpWriter& g, const Node& node)`, or one that returns Results. It throws what
/// refused.h has. One that returns a Value or Values takes sequences and optionals, too (Node::value).
class Read {
public:
    template <class F>
    requires(!std::is_same_v<std::remove_cvref_t<F>, Read>) Read(F function) {
        using Found = std::invoke_result_t<F, OpWriter&, const Node&>;
        takes_values_ = std::is_same_v<Found, Value> || std::is_same_v<Found, Values>;
        call_ = [function](OpWriter& g, const Node& node) -> Values {
            if constexpr (std::is_same_v<Found, Values>)
                return function(g, node);
            else if constexpr (std::is_same_v<Found, Results>)
                return values_of(function(g, node));
            else
                return {function(g, node)};
        };
    }
    Values operator()(OpWriter& g, const Node& node) const { return call_(g, node); }
    bool takes_values() const { return takes_values_; }

private:
    std::function<Values(OpWriter&, const Node&)> call_;
    bool takes_values_ = false;
};

struct Operator {
    std::string_view name;
    std::int64_t since;  ///< the first operator set that has it
    Read read;
    std::string_view signature;  ///< what it takes and gives: signature.h
    std::string_view domain = "";
    std::int64_t until = kNewestSet;  ///< the last one
};

/// All that are read, by domain and name.
std::span<const Operator* const> all_operators();
/// Null where none of that name is read.
const Operator* find_operator(std::string_view domain, std::string_view name);

}  // namespace headrace::onnx
