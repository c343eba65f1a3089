#include "cli/array_conversion.h"

#include <cmath>
#include <limits>
#include <optional>
#include <type_traits>
#include <utility>

#include "ir/dtype.h"

namespace headrace::cli {
namespace {

/// Whether an integer type holds a number; the limits of 64 bits are no doubles, what lies beyond them is.
template <class To, class From>
bool holds(From value) {
    if constexpr (std::is_integral_v<From>) {
        return std::in_range<To>(value);
    } else {
        const double number = value;
        const double end = std::ldexp(1.0, std::numeric_limits<To>::digits);
        return std::trunc(number) == number && number < end && number >= (std::is_signed_v<To> ? -end : 0.0);
    }
}

/// The first element that To does not hold, or none. is_truth: To holds 0 and 1 alone.
template <class From, class To>
std::optional<double> convert(const Array& from, Array& to, bool is_truth) {
    const auto* read = reinterpret_cast<const From*>(from.bytes.data());
    auto* written = reinterpret_cast<To*>(to.bytes.data());
    const std::size_t count = from.bytes.size() / sizeof(From);
    for (std::size_t i = 0; i < count; ++i) {
        const auto value = static_cast<compute_t<From>>(read[i]);
        if constexpr (std::is_integral_v<To>)
            if (!holds<To>(value) || (is_truth && value != 0 && value != 1))
                return static_cast<double>(value);
        written[i] = static_cast<To>(static_cast<compute_t<To>>(value));
    }
    return std::nullopt;
}

}  // namespace

Result<Array> with_dtype(Array array, DType wanted, std::string_view what) {
    if (array.dtype == wanted) return array;
    if (bits_of(wanted) == 4 || bits_of(array.dtype) == 4)
        return invalid("{} is {}; it must be {}", what, name_of(array.dtype), name_of(wanted));
    Array converted{.dtype = wanted, .shape = array.shape};
    const std::size_t count = array.bytes.size() * 8 / static_cast<std::size_t>(bits_of(array.dtype));
    converted.bytes.resize(bytes_of(wanted, static_cast<std::int64_t>(count)));
    const auto lost = visit_dtype(array.dtype, [&]<class From>() {
        return visit_dtype(wanted, [&]<class To>() {
            return convert<From, To>(array, converted, wanted == DType::boolean);
        });
    });
    if (lost)
        return invalid("{} is {} and has {}, which {} does not hold", what, name_of(array.dtype), *lost,
                       name_of(wanted));
    return converted;
}

}  // namespace headrace::cli
