#include "doors/onnx/ops/few_bits.h"

#include <algorithm>
#include <cstring>
#include <numeric>

namespace headrace::onnx {

void check_bits(std::int64_t bits, std::string_view what) {
    if (bits != 2 && bits != 4 && bits != 8)
        throw Refused(fmt::format("{} is {}; 2, 4 and 8 are read", what, bits),
                      "Quantise the model with one of these");
}

Operand known_codes(std::int64_t rows, std::int64_t columns, std::int64_t bits,
                    const std::vector<std::uint8_t>& codes) {
    if (bits == 8) return known_elements<std::uint8_t>({rows, columns}, codes, ElementType::u8);
    std::vector<std::uint8_t> pairs((codes.size() + 1) / 2);
    for (std::size_t i = 0; i < codes.size(); ++i)
        pairs[i / 2] = static_cast<std::uint8_t>(pairs[i / 2] | codes[i] << (i % 2 * 4));
    return known_elements<std::uint8_t>({rows, columns}, pairs, ElementType::u4);
}

std::vector<std::int64_t> own_order(std::int64_t rows) {
    std::vector<std::int64_t> order(static_cast<std::size_t>(rows));
    std::iota(order.begin(), order.end(), 0);
    return order;
}

Operand codes_of_rows(OpWriter& g, const Operand& packed, std::span<const std::int64_t> order,
                      std::int64_t columns, std::int64_t bits) {
    const auto rows = static_cast<std::int64_t>(order.size());
    const std::int64_t row_bytes = columns * bits / 8;
    const std::byte* from = packed->known->data->bytes.data();
    const ElementType type = bits == 8 ? ElementType::u8 : ElementType::u4;
    if (bits != 2 && std::ranges::is_sorted(order))
        return known(Elements{.shape = {rows, columns}, .data = packed->known->data, .items = {}}, type);
    g.budget().constant(static_cast<std::size_t>(rows * columns));
    if (bits == 2) {
        std::vector<std::uint8_t> codes;
        codes.reserve(static_cast<std::size_t>(rows * columns));
        for (const std::int64_t row : order)
            for (std::int64_t i = 0; i < columns; ++i)
                codes.push_back(static_cast<std::uint8_t>(bits_at(from + row * row_bytes, i, bits)));
        return known_codes(rows, columns, bits, codes);
    }
    auto buffer = value_or_refuse(
        AlignedBuffer::allocate(static_cast<std::size_t>(rows * row_bytes), "a matrix of few bits"));
    for (std::size_t i = 0; i < order.size(); ++i)
        std::memcpy(buffer.data() + static_cast<std::int64_t>(i) * row_bytes, from + order[i] * row_bytes,
                    static_cast<std::size_t>(row_bytes));
    return known(Elements{.shape = {rows, columns}, .data = own_constant(std::move(buffer)), .items = {}},
                 type);
}

}  // namespace headrace::onnx
