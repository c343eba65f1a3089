#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "doors/onnx/model/element_type.h"
#include "ir/graph.h"

namespace headrace::onnx {

/// Elements of a carried type, as files have them, in the type that carries them.
Result<std::shared_ptr<const Constant>> carried_elements(ElementType type, std::span<const std::byte> bytes,
                                                         std::int64_t count);

/// The bits of element i of those that share bytes, the low ones first; 16 lie in two bytes.
std::uint32_t bits_at(const std::byte* bytes, std::int64_t i, std::int64_t bits);

/// The value of a small float's bits.
float small_float(ElementType type, std::uint32_t bits);

}  // namespace headrace::onnx
