#include <cstring>

#include "model.h"

namespace headrace::node {

ModelBytes to_model_bytes(const Call& call, std::size_t argument) {
    napi_valuetype type{};
    check(napi_typeof(call.env(), call[argument], &type));
    if (type != napi_external) {
        const auto from = to_bytes(call.env(), call[argument]);
        Memory memory = memory_of(from.size());
        if (!from.empty()) std::memcpy(memory.get(), from.data(), from.size());
        return {std::move(memory), from.size()};
    }
    auto& handle = call.handle<BytesHandle>(argument);
    if (handle.filled != handle.size)
        throw Exception(Code::invalid_argument, "the model's bytes are not all there");
    hold(call.env(), handle, 0);
    return {std::move(handle.memory), std::exchange(handle.filled, 0)};
}

napi_value new_bytes(const Call& call) {
    const auto size = static_cast<std::size_t>(to_integer(call.env(), call[0]));
    return external(call.env(), new BytesHandle(size), size);
}

napi_value add_bytes(const Call& call) {
    auto& handle = call.handle<BytesHandle>(0);
    const auto from = to_bytes(call.env(), call[1]);
    if (!handle.memory || from.size() > handle.size - handle.filled)
        throw Exception(Code::invalid_argument, "there are more bytes than were announced");
    if (!from.empty()) std::memcpy(handle.memory.get() + handle.filled, from.data(), from.size());
    handle.filled += from.size();
    return nullptr;
}

}  // namespace headrace::node
