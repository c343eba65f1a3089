#include "doors/wasi_nn/component_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <stdexcept>

#include "doors/wasi_nn/component_values.h"

namespace headrace::wasi_nn::component {
namespace {

struct NamedType {
    std::string_view name;
    DType type;
};
constexpr std::array kTensorTypes{
    NamedType{"FP16", DType::f16},  NamedType{"FP32", DType::f32}, NamedType{"FP64", DType::f64},
    NamedType{"BF16", DType::bf16}, NamedType{"U8", DType::u8},    NamedType{"I32", DType::i32},
    NamedType{"I64", DType::i64},
};

/// The metadata of an answer that was given up before its first piece.
constexpr std::string_view kNothingSaid = R"({"output_tokens": 0, "stop_reason": "cancelled"})";

/// As a guest chooses them: its tensors, and messages, which repeat its names.
std::size_t bytes_of(const Resource& resource) {
    if (const auto* tensor = std::get_if<Tensor>(&resource))
        return tensor->data.size() + tensor->dimensions.size() * sizeof(std::uint32_t);
    const auto* failure = std::get_if<Failure>(&resource);
    return failure ? failure->message.size() : 0;
}

}  // namespace

DType tensor_type_of(std::string_view name) {
    const auto found = std::ranges::find(kTensorTypes, name, &NamedType::name);
    if (found == kTensorTypes.end()) throw std::out_of_range(fmt::format("no tensor-type is {}", name));
    return found->type;
}

std::string_view name_of_tensor_type(DType type) {
    return std::ranges::find(kTensorTypes, type, &NamedType::type)->name;
}

void Reply::end(ContextTable& table) {
    const auto talk = context.lock();
    if (talk && has_begun && !is_over) static_cast<void>(table.end_pieces(talk->id()));
    is_over = true;
}

void Reply::finish(ContextTable& table) {
    const auto talk = context.lock();
    auto told =
        talk && has_begun ? table.output(talk->id(), 1) : Result<std::string>(std::string(kNothingSaid));
    metadata = told.ok() ? std::move(told).value() : std::string(kNothingSaid);
    is_over = true;
}

std::uint32_t Table::add(Resource resource) {
    if (resources_.size() >= kMostResources)
        throw GuestEnded(fmt::format("the guest holds {} resources, and may hold no more", kMostResources));
    const std::size_t size = bytes_of(resource);
    if (bytes_ + size > most_bytes_)
        throw GuestEnded(
            fmt::format("the guest's tensors and errors hold {} bytes, and {} more are beyond {}", bytes_,
                        size, most_bytes_));
    while (next_ == 0 || resources_.contains(next_)) ++next_;  // numbers begin anew after four billion
    resources_.emplace(next_, std::move(resource));
    bytes_ += size;
    return next_++;
}

Resource Table::remove(std::uint32_t number) {
    const auto found = resources_.find(number);
    if (found == resources_.end()) throw std::out_of_range(fmt::format("there is no resource {}", number));
    Resource resource = std::move(found->second);
    resources_.erase(found);
    bytes_ -= bytes_of(resource);
    return resource;
}

}  // namespace headrace::wasi_nn::component
