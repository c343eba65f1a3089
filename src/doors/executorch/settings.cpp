#include "doors/executorch/settings.h"

#include <executorch/runtime/platform/log.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>

#include "headrace/option_names.h"

namespace headrace::executorch_door {
namespace {

namespace et = executorch::runtime;
using Text = std::array<char, et::kMaxOptionValueLength>;

std::string_view name_of(const et::BackendOption& option) {
    return {option.key, strnlen(option.key, sizeof(option.key))};
}

Text text_of(const std::string& value) {
    Text text{};
    std::copy_n(value.begin(), std::min(value.size(), text.size() - 1), text.begin());
    return text;
}

et::Error refuse(const et::BackendOption& option, const char* wanted) {
    const std::string name(name_of(option));
    ET_LOG(Error, "GgmlBackend: option '%s' must be %s", name.c_str(), wanted);
    return et::Error::InvalidArgument;
}

et::Error unknown(const et::BackendOption& option) {
    const std::string name(name_of(option));
    ET_LOG(Error,
           "GgmlBackend: there is no option '%s'; there are num_threads, device, host_timeout_ms, "
           "packed_kernels, packed_cache and precision",
           name.c_str());
    return et::Error::InvalidArgument;
}

}  // namespace

et::Error Settings::set(et::Span<const et::BackendOption> options) {
    Settings changed = *this;
    for (const et::BackendOption& option : options) {
        if (name_of(option) == "num_threads") {
            const int* threads = std::get_if<int>(&option.value);
            if (!threads || *threads < 0) return refuse(option, "an int of at least 0");
            changed.threads_ = *threads;
        } else if (name_of(option) == "device") {
            const Text* text = std::get_if<Text>(&option.value);
            if (!text || text->front() == 0) return refuse(option, "the name of a device, such as \"cpu\"");
            changed.device_.assign(text->data(), strnlen(text->data(), text->size()));
        } else if (name_of(option) == "host_timeout_ms") {
            const int* time = std::get_if<int>(&option.value);
            if (!time || *time < 100) return refuse(option, "an int of at least 100");
            changed.host_timeout_ms_ = *time;
        } else if (name_of(option) == "packed_kernels") {
            const bool* packed = std::get_if<bool>(&option.value);
            if (!packed) return refuse(option, "a bool");
            changed.packed_kernels_ = *packed;
        } else if (name_of(option) == "packed_cache") {
            const Text* text = std::get_if<Text>(&option.value);
            if (!text) return refuse(option, "a text: \"on\", \"off\" or a folder");
            changed.packed_cache_.assign(text->data(), strnlen(text->data(), text->size()));
        } else if (name_of(option) == "precision") {
            const Text* text = std::get_if<Text>(&option.value);
            const std::string name =
                text ? std::string(text->data(), strnlen(text->data(), text->size())) : "";
            if (!find_precision(name)) return refuse(option, "\"exact\" or \"fast\"");
            changed.precision_ = name;
        } else {
            return unknown(option);
        }
    }
    *this = std::move(changed);
    return et::Error::Ok;
}

et::Error Settings::get(et::Span<et::BackendOption> options) const {
    for (et::BackendOption& option : options) {
        if (name_of(option) == "num_threads") {
            option.value = threads_;
        } else if (name_of(option) == "device") {
            option.value = text_of(device_);
        } else if (name_of(option) == "host_timeout_ms") {
            option.value = host_timeout_ms_;
        } else if (name_of(option) == "packed_kernels") {
            option.value = packed_kernels_;
        } else if (name_of(option) == "packed_cache") {
            option.value = text_of(packed_cache_);
        } else if (name_of(option) == "precision") {
            option.value = text_of(precision_);
        } else {
            return unknown(option);
        }
    }
    return et::Error::Ok;
}

CompileOptions Settings::compile_options() const {
    return {.device = device_,
            .host_timeout_ms = host_timeout_ms_,
            .threads = threads_,
            .packed_kernels = packed_kernels_,
            .precision = *find_precision(precision_),
            .packed_cache = packed_cache_};
}

}  // namespace headrace::executorch_door

int headrace_executorch_set_option(const char* name, char type, int number, const char* text) {
    namespace et = executorch::runtime;
    et::BackendOption option;
    std::strncpy(option.key, name, sizeof(option.key) - 1);
    option.value = number;
    if (type == 'b') option.value = number != 0;
    if (type == 's') {
        std::array<char, et::kMaxOptionValueLength> value{};
        std::strncpy(value.data(), text, value.size() - 1);
        option.value = value;
    }
    return static_cast<int>(et::set_option("GgmlBackend", {&option, 1}));
}
