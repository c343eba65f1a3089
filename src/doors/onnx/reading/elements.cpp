#include "doors/onnx/reading/elements.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "base/half.h"
#include "doors/onnx/reading/refused.h"
#include "ir/constant.h"
#include "ops/arithmetic.h"

namespace headrace::onnx {
namespace {

/// Calls f with a zero of the type whose bytes the elements have; i4 and u4 have none.
template <class F>
auto with_type(DType type, F f) {
    switch (type) {
        case DType::f32: return f(float{});
        case DType::f64: return f(double{});
        case DType::i8: return f(std::int8_t{});
        case DType::i16: return f(std::int16_t{});
        case DType::i32: return f(std::int32_t{});
        case DType::u32: return f(std::uint32_t{});
        case DType::i64: return f(std::int64_t{});
        case DType::u64: return f(std::uint64_t{});
        case DType::f16:
        case DType::bf16: return f(std::uint16_t{});
        default: return f(std::uint8_t{});
    }
}

template <class T>
T load(const std::byte* data, std::int64_t i) {
    T value{};
    std::memcpy(&value, data + static_cast<std::size_t>(i) * sizeof(T), sizeof(T));
    return value;
}

template <class T>
void store(std::byte* data, std::int64_t i, T value) {
    std::memcpy(data + static_cast<std::size_t>(i) * sizeof(T), &value, sizeof(T));
}

bool is_nibble(DType type) { return type == DType::i4 || type == DType::u4; }

Number nibble_at(DType type, const std::byte* data, std::int64_t i) {
    const int byte = std::to_integer<int>(data[i / 2]), bits = i % 2 == 0 ? byte & 15 : byte >> 4;
    return std::int64_t{type == DType::i4 && bits >= 8 ? bits - 16 : bits};
}

void put_nibble(std::byte* data, std::int64_t i, std::int64_t value) {
    const auto bits = static_cast<unsigned>(value) & 15U;
    const auto byte = std::to_integer<unsigned>(data[i / 2]);
    data[i / 2] = std::byte(i % 2 == 0 ? (byte & 0xf0U) | bits : (byte & 0x0fU) | bits << 4);
}

/// Integers wrap, as everywhere.
template <class T>
T stored_number(const Number& number) {
    return std::visit(
        [](auto value) {
            if constexpr (std::is_integral_v<T> && std::is_floating_point_v<decltype(value)>)
                return ops::saturate<T>(value);
            else
                return static_cast<T>(value);
        },
        number);
}

template <class Get>
Elements filled_with(std::vector<std::int64_t> shape, ElementType type, Get get) {
    Elements elements{.shape = std::move(shape), .data = nullptr, .items = {}};
    const DType stored = stored_as(type);
    const std::int64_t count = elements.count();
    auto buffer = value_or_refuse(AlignedBuffer::allocate(bytes_of(stored, count), "known elements"));
    std::memset(buffer.data(), 0, buffer.bytes());
    if (is_nibble(stored) || stored == DType::f16 || stored == DType::bf16) {
        for (std::int64_t i = 0; i < count; ++i) put_number(stored, buffer.data(), i, get(i));
    } else {  // which type it is, is asked once
        with_type(stored, [&](auto zero) {
            for (std::int64_t i = 0; i < count; ++i)
                store(buffer.data(), i, stored_number<decltype(zero)>(get(i)));
        });
    }
    elements.data = own_constant(std::move(buffer));
    return elements;
}

Number as_number(const Item& item, ElementType type) {
    if (!onnx::is_float(type) || item.below.is(1)) return item.above.size();
    return static_cast<double>(item.above.size()) / static_cast<double>(item.below.size());
}

/// An integer, or a float that products with extents do not round: an integer or a fraction of a small power
/// of 2.
Item exact_item(double value) {
    constexpr double kMostWhole = 1 << 24, kMostBelow = 1 << 11;
    if (value == std::trunc(value) && std::abs(value) <= kMostWhole)
        return {static_cast<std::int64_t>(value)};
    for (double below = 2; below <= kMostBelow; below *= 2) {
        const double above = value * below;
        if (above == std::trunc(above) && std::abs(above) <= kMostBelow)
            return {static_cast<std::int64_t>(above), static_cast<std::int64_t>(below)};
    }
    throw Undecided(fmt::format("{} in arithmetic with extents", value));
}

}  // namespace

std::int64_t integer_of(const Number& number) { return stored_number<std::int64_t>(number); }

std::string Item::str() const {
    if (told) return "?";
    return below.is(1) ? above.str() : fmt::format("{}/{}", above.str(), below.str());
}

std::int64_t Elements::count() const {
    std::int64_t count = 1;
    for (std::int64_t extent : shape) count *= extent;
    return count;
}

bool OperandData::is_told() const {
    return !known || std::ranges::any_of(known->items, [](const Item& item) { return item.told != nullptr; });
}

Number OperandData::number(std::int64_t i) const {
    return number_at(stored_as(type), known->data->bytes.data(), i);
}

Item OperandData::item(std::int64_t i) const {
    if (!known->are_numbers()) return known->items[static_cast<std::size_t>(i)];
    const Number found = number(i);
    if (const auto* value = std::get_if<double>(&found)) return exact_item(*value);
    return {integer_of(found)};
}

Number number_at(DType type, const std::byte* data, std::int64_t i) {
    if (is_nibble(type)) return nibble_at(type, data, i);
    return with_type(type, [&](auto zero) -> Number {
        using T = decltype(zero);
        const T value = load<T>(data, i);
        if (type == DType::f16) return double{half_to_float(static_cast<std::uint16_t>(value))};
        if (type == DType::bf16) return double{bfloat_to_float(static_cast<std::uint16_t>(value))};
        if constexpr (std::is_floating_point_v<T>)
            return static_cast<double>(value);
        else if constexpr (std::is_same_v<T, std::uint64_t>)
            return value;
        else
            return static_cast<std::int64_t>(value);
    });
}

void put_number(DType type, std::byte* data, std::int64_t i, const Number& number) {
    if (is_nibble(type)) {
        put_nibble(data, i, integer_of(number));
        return;
    }
    with_type(type, [&](auto zero) {
        using T = decltype(zero);
        if (type == DType::f16)
            store<std::uint16_t>(data, i, float_to_half(number_as<float>(number)));
        else if (type == DType::bf16)
            store<std::uint16_t>(data, i, float_to_bfloat(number_as<float>(number)));
        else
            store<T>(data, i, stored_number<T>(number));
    });
}

Operand known(Elements elements, ElementType type) {
    auto value = std::make_shared<OperandData>();
    value->type = type;
    value->known = std::move(elements);
    return value;
}

Operand known(std::int64_t number, ElementType type) {
    return known(filled_with({}, type, [&](std::int64_t) -> Number { return number; }), type);
}
Operand known(int number, ElementType type) { return known(std::int64_t{number}, type); }
Operand known(double number, ElementType type) {
    return known(filled_with({}, type, [&](std::int64_t) -> Number { return number; }), type);
}

Operand known(const std::vector<std::int64_t>& numbers, ElementType type) {
    const auto get = [&](std::int64_t i) -> Number { return numbers[static_cast<std::size_t>(i)]; };
    return known(filled_with({static_cast<std::int64_t>(numbers.size())}, type, get), type);
}
Operand known(const std::vector<double>& numbers, ElementType type) {
    const auto get = [&](std::int64_t i) -> Number { return numbers[static_cast<std::size_t>(i)]; };
    return known(filled_with({static_cast<std::int64_t>(numbers.size())}, type, get), type);
}

Operand known(std::vector<Item> items, std::vector<std::int64_t> shape, ElementType type) {
    if (std::ranges::all_of(items, &Item::is_number)) {
        const auto get = [&](std::int64_t i) { return as_number(items[static_cast<std::size_t>(i)], type); };
        return known(filled_with(std::move(shape), type, get), type);
    }
    return known(Elements{.shape = std::move(shape), .data = nullptr, .items = std::move(items)}, type);
}

Operand known(const Shape& extents) {
    const auto count = static_cast<std::int64_t>(extents.size());
    return known(std::vector<Item>(extents.begin(), extents.end()), {count}, ElementType::i64);
}

}  // namespace headrace::onnx
