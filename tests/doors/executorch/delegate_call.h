#pragma once
#include <executorch/extension/tensor/tensor.h>
#include <executorch/runtime/backend/interface.h>
#include <executorch/runtime/core/memory_allocator.h>
#include <executorch/runtime/core/named_data_map.h>
#include <executorch/runtime/platform/platform.h>

#include <functional>
#include <map>
#include <mutex>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace headrace::testing {

namespace et = executorch::runtime;
using executorch::extension::TensorPtr;

/// The weights of a program by their keys.
class Weights final : public et::NamedDataMap {
public:
    std::map<std::string, std::string, std::less<>> contents;

    et::Result<et::FreeableBuffer> get_data(std::string_view key) const override {
        const auto found = contents.find(key);
        if (found == contents.end()) return et::Error::NotFound;
        return et::FreeableBuffer(found->second.data(), found->second.size(), nullptr);
    }
    // The delegate asks for data alone.
    et::Result<const et::TensorLayout> get_tensor_layout(std::string_view) const override {
        return et::Error::NotSupported;
    }
    et::Error load_data_into(std::string_view, void*, std::size_t) const override {
        return et::Error::NotSupported;
    }
    et::Result<std::uint32_t> get_num_keys() const override {
        return static_cast<std::uint32_t>(contents.size());
    }
    et::Result<const char*> get_key(std::uint32_t) const override { return et::Error::NotSupported; }
};

/// The delegate called as ExecuTorch's runtime does, without a program around its blob.
class Delegate {
public:
    Delegate(const std::string& blob, const et::NamedDataMap* weights, const char* method = "forward",
             et::Span<const et::BackendOption> options = {}) {
        et::BackendInitContext context(&allocator_, nullptr, method, weights, options);
        et::FreeableBuffer buffer(blob.data(), blob.size(), nullptr);
        const auto handle = backend().init(context, &buffer, {});
        error_ = handle.error();
        if (handle.ok()) handle_ = handle.get();
    }
    Delegate(const Delegate&) = delete;
    Delegate& operator=(const Delegate&) = delete;
    ~Delegate() {
        if (handle_) backend().destroy(handle_);
    }

    /// The load's error.
    et::Error error() const { return error_; }

    /// Inputs, then outputs. A value does not keep its tensor alive.
    et::Error run(const std::vector<et::EValue>& arguments) const {
        std::vector<et::EValue> values = arguments;
        std::vector<et::EValue*> pointers;
        for (et::EValue& value : values) pointers.push_back(&value);
        et::BackendExecutionContext context;
        return backend().execute(context, handle_, {pointers.data(), pointers.size()});
    }

private:
    static et::BackendInterface& backend() {
        et::BackendInterface* const found = et::get_backend_class("GgmlBackend");
        if (!found) throw std::logic_error("the delegate has not registered itself");
        return *found;
    }

    et::MemoryAllocator allocator_{0, nullptr};
    et::Error error_ = et::Error::Internal;
    et::DelegateHandle* handle_ = nullptr;
};

template <class T>
TensorPtr tensor(std::vector<executorch::aten::SizesType> sizes, std::vector<T> values) {
    return executorch::extension::make_tensor_ptr(std::move(sizes), std::move(values));
}

/// A tensor for a result of at most these sizes.
inline TensorPtr room(std::vector<executorch::aten::SizesType> sizes) {
    std::size_t count = 1;
    for (const auto size : sizes) count *= static_cast<std::size_t>(size);
    return tensor(std::move(sizes), std::vector<float>(count));
}

/// The lines that are logged while f runs.
inline std::vector<std::string> logged(const std::function<void()>& f) {
    static std::mutex mutex;
    static std::vector<std::string> lines;
    static const bool registered = et::register_pal(et::PalImpl::create(
        [](et_timestamp_t, et_pal_log_level_t, const char*, const char*, std::size_t, const char* message,
           std::size_t length) {
            const std::lock_guard lock(mutex);
            lines.emplace_back(message, length);
        },
        __FILE__));
    if (!registered) throw std::logic_error("the log cannot be watched");
    lines.clear();
    f();
    return lines;
}

}  // namespace headrace::testing
