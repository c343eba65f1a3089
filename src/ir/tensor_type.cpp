#include "ir/tensor_type.h"

#include <algorithm>
namespace headrace {

std::string str(const Shape& shape) {
    std::string text = "[";
    for (std::size_t i = 0; i < shape.size(); ++i) text.append(i ? ", " : "").append(shape[i].str());
    return text + "]";
}

std::string str(std::span<const std::int64_t> shape) { return str(Shape(shape.begin(), shape.end())); }

bool TensorType::is_concrete() const {
    return std::none_of(shape.begin(), shape.end(), [](const Dim& d) { return d.is_symbolic(); });
}

std::int64_t TensorType::elements() const {
    std::int64_t n = 1;
    for (const Dim& d : shape) n *= d.size();
    return n;
}

std::vector<std::int64_t> TensorType::sizes() const {
    std::vector<std::int64_t> sizes;
    sizes.reserve(shape.size());
    for (const Dim& d : shape) sizes.push_back(d.size());
    return sizes;
}

std::string TensorType::str() const {
    std::string text = std::string(name_of(dtype)) + headrace::str(shape);
    if (format != BlockFormat::plain) text.append(" as ").append(name_of(format));
    return text;
}

void ElementFactors::multiply(std::size_t first, std::span<float> elements) const {
    for (std::size_t i = 0; i < elements.size();) {
        const std::size_t at = first + i, run = std::min(elements.size() - i, within - at % within);
        const double factor = values[at / within % values.size()];
        for (float& x : elements.subspan(i, run)) x = static_cast<float>(x * factor);
        i += run;
    }
}

ContentHash ElementFactors::hash() const {
    const ContentHash hash = content_hash(values.data(), values.size() * sizeof(double));
    return {hash.low ^ within, hash.high};
}

Status TensorType::check() const {
    if (rank() > kMaxRank)
        return invalid("rank {} of shape {} exceeds {}", rank(), headrace::str(shape), kMaxRank);
    std::int64_t bits = bits_of(dtype);
    for (const Dim& d : shape) {
        if (d.max_size() < 0)
            return invalid("shape {} has the negative extent {}", headrace::str(shape), d.max_size());
        const std::int64_t size = std::max<std::int64_t>(0, d.min_size());
        if (size > 0 && (__builtin_mul_overflow(bits, size, &bits) || bits / 8 > PTRDIFF_MAX))
            return invalid("shape {} of {} elements is larger than the address space", headrace::str(shape),
                           name_of(dtype));
    }
    const bool is_plain = format == BlockFormat::plain;
    if (!is_plain && (dtype != DType::f32 || rank() == 0 || shape.back().is_symbolic() ||
                      shape.back().size() % block_elements(format) != 0))
        return invalid("{}: blocks hold f32 and need a last extent that is a multiple of {}", str(),
                       block_elements(format));
    return success();
}

namespace {

std::int64_t saturating_product(std::int64_t a, std::int64_t b) {
    std::int64_t result = 0;
    return __builtin_mul_overflow(a, b, &result) ? INT64_MAX : result;
}

}  // namespace

Dim product(const Shape& extents) {
    std::int64_t number = 1, least = 1, most = 1;
    Expression symbols = 1;
    bool is_open = false;
    for (const Dim& d : extents) {
        if (!d.is_symbolic()) {
            number = saturating_product(number, d.size());
            continue;
        }
        symbols = is_open ? symbols * d.expression() : d.expression();
        is_open = true;
        least = saturating_product(least, d.min_size());
        most = saturating_product(most, d.max_size());
    }
    if (!is_open) return Dim(number);
    return Dim::of(symbols * number, {saturating_product(least, number), saturating_product(most, number)});
}

}  // namespace headrace
