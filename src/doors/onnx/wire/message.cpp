#include "doors/onnx/wire/message.h"

#include <cstring>

namespace headrace::onnx::wire {
namespace {

constexpr int kGroupBegins = 3, kGroupEnds = 4;
constexpr int kMostGroups = 100;  // within one another, as Protocol Buffers have it

/// Takes a varint off the front: at most ten bytes, of which the last bits beyond 64 are lost.
bool take_varint(Bytes& rest, std::uint64_t& value) {
    value = 0;
    for (std::size_t i = 0; i < 10 && i < rest.size(); ++i) {
        const auto byte = static_cast<std::uint8_t>(rest[i]);
        value |= static_cast<std::uint64_t>(byte & 0x7f) << (7 * i);
        if (byte < 0x80) {
            rest.remove_prefix(i + 1);
            return true;
        }
    }
    return false;
}

}  // namespace

bool Message::next() {
    while (!rest_.empty()) {
        std::uint64_t key = 0;
        if (!read_varint(key) || key > UINT32_MAX || key >> 3 == 0) {
            is_damaged_ = true;
            return false;
        }
        field_.key = static_cast<std::uint32_t>(key);
        const std::uint32_t form = field_.key & 7;
        if (form == kGroupBegins) {  // groups: no field of ONNX is one
            if (skip_group(field_.key >> 3)) continue;
            is_damaged_ = true;
            return false;
        }
        if (read_value(form)) return true;
        is_damaged_ = true;
        return false;
    }
    return false;
}

Status Message::status() const {
    return is_damaged_ ? Status(invalid("a message is damaged or cut off")) : success();
}

bool Message::read_value(std::uint32_t form) {
    switch (form) {
        case static_cast<std::uint32_t>(Form::varint): return read_varint(field_.bits);
        case static_cast<std::uint32_t>(Form::fixed64): return read_fixed(8);
        case static_cast<std::uint32_t>(Form::bytes): return read_bytes();
        case static_cast<std::uint32_t>(Form::fixed32): return read_fixed(4);
        default: return false;
    }
}

bool Message::read_varint(std::uint64_t& value) { return take_varint(rest_, value); }

bool Message::read_fixed(std::size_t size) {
    if (rest_.size() < size) return false;
    field_.bits = 0;
    std::memcpy(&field_.bits, rest_.data(), size);
    rest_.remove_prefix(size);
    return true;
}

bool Message::read_bytes() {
    std::uint64_t size = 0;
    if (!read_varint(size) || size > rest_.size()) return false;
    field_.bytes = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return true;
}

bool Message::skip_group(std::uint32_t number) {
    std::uint32_t open[kMostGroups] = {number};
    int depth = 1;
    while (depth > 0) {
        std::uint64_t key = 0;
        if (!read_varint(key) || key > UINT32_MAX || key >> 3 == 0) return false;
        const auto inner = static_cast<std::uint32_t>(key >> 3);
        const auto form = static_cast<std::uint32_t>(key & 7);
        if (form == kGroupBegins) {
            if (depth == kMostGroups) return false;
            open[depth++] = inner;
        } else if (form == kGroupEnds) {
            if (open[--depth] != inner) return false;
        } else if (!read_value(form)) {
            return false;
        }
    }
    return true;
}

bool Varints::next(std::uint64_t& value) {
    if (rest_.empty()) return false;
    is_damaged_ = !take_varint(rest_, value);
    return !is_damaged_;
}

}  // namespace headrace::onnx::wire
