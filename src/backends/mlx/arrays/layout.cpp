#include "backends/mlx/arrays/layout.h"

#include <mlx/primitives.h>

#include <algorithm>
#include <string_view>

namespace headrace::mlx {
namespace {

template <std::size_t count>
bool is_one_of(const std::string_view (&names)[count], const mx::Primitive& primitive) {
    return std::find(std::begin(names), std::end(names), primitive.name()) != std::end(names);
}

bool is_in_row_order(const array& x) {
    static constexpr std::string_view kAlways[] = {
        "AddMM", "AttentionLoop", "CheckedNumbers", "Contiguous", "Dequantise",
        "Gemv",  "HostLoop",      "InPlaceWrite",   "Matmul",     "QuantizedMatmul"};
    static constexpr std::string_view kAsTheirInput[] = {"AsType",    "ExpandDims", "Flatten", "Reshape",
                                                         "Unflatten", "Softmax",    "Squeeze"};
    // Primitives whose operands have one shape, so that these lie alike; a repeated number would be a
    // Broadcast.
    static constexpr std::string_view kAsAnyInput[] = {"Add", "Divide", "Multiply", "Subtract"};
    if (!x.has_primitive()) return x.is_available() && x.flags().row_contiguous;
    if (is_one_of(kAlways, x.primitive())) return true;
    if (is_one_of(kAsAnyInput, x.primitive())) return std::ranges::any_of(x.inputs(), is_in_row_order);
    return is_one_of(kAsTheirInput, x.primitive()) && is_in_row_order(x.inputs()[0]);
}

}  // namespace

array in_row_order(const array& x) { return is_in_row_order(x) ? x : mx::contiguous(x); }

}  // namespace headrace::mlx
