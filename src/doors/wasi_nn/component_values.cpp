#include "doors/wasi_nn/component_values.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/utf8.h"

namespace headrace::wasi_nn::component {

std::optional<Wasmtime> Wasmtime::found_by(void* (*function_of)(const char* name)) {
    Wasmtime found{};
    bool has_all = true;
    const auto find = [&]<class F>(F*& function, const char* name) {
        function = reinterpret_cast<F*>(function_of(name));
        has_all = has_all && function;
    };
    find(found.error_new, "wasmtime_error_new");
    find(found.error_message, "wasmtime_error_message");
    find(found.error_delete, "wasmtime_error_delete");
    find(found.byte_vec_new, "wasm_byte_vec_new");
    find(found.byte_vec_delete, "wasm_byte_vec_delete");
    find(found.val_new, "wasmtime_component_val_new");
    find(found.val_delete, "wasmtime_component_val_delete");
    find(found.list_new, "wasmtime_component_vallist_new_uninit");
    find(found.tuple_new, "wasmtime_component_valtuple_new_uninit");
    find(found.any_to_host, "wasmtime_component_resource_any_to_host");
    find(found.host_to_any, "wasmtime_component_resource_host_to_any");
    find(found.host_new, "wasmtime_component_resource_host_new");
    find(found.host_number, "wasmtime_component_resource_host_rep");
    find(found.host_delete, "wasmtime_component_resource_host_delete");
    find(found.type_new, "wasmtime_component_resource_type_new_host");
    find(found.type_delete, "wasmtime_component_resource_type_delete");
    find(found.linker_root, "wasmtime_component_linker_root");
    find(found.add_instance, "wasmtime_component_linker_instance_add_instance");
    find(found.add_function, "wasmtime_component_linker_instance_add_func");
    find(found.add_resource, "wasmtime_component_linker_instance_add_resource");
    find(found.instance_delete, "wasmtime_component_linker_instance_delete");
    return has_all ? std::optional(found) : std::nullopt;
}

namespace {

void check_kind(const Value& value, bool is_right) {
    if (!is_right)
        throw GuestEnded(
            fmt::format("a value of kind {} came where the interface has another type: import it as "
                        "its WIT file has it",
                        static_cast<int>(value.kind)));
}

}  // namespace

std::string_view text_of(const Value& value) {
    check_kind(value, value.kind == Kind::string || value.kind == Kind::enumeration);
    return {value.of.text.data, value.of.text.size};
}

std::span<const Value> items_of(const Value& value, std::size_t least) {
    check_kind(value, value.kind == Kind::list || value.kind == Kind::tuple);
    check_kind(value, value.of.values.size >= least);
    return {value.of.values.data, value.of.values.size};
}

const Value* option_of(const Value& value) {
    check_kind(value, value.kind == Kind::option);
    return value.of.option;
}

std::string bytes_of(const Value& list) {
    const auto items = items_of(list);
    std::string bytes(items.size(), '\0');
    std::ranges::transform(items, bytes.begin(), [](const Value& item) {
        check_kind(item, item.kind == Kind::u8);
        return static_cast<char>(item.of.u8);
    });
    return bytes;
}

std::uint32_t word_of(const Value& value) {
    check_kind(value, value.kind == Kind::u32);
    return value.of.u32;
}

std::uint64_t long_word_of(const Value& value) {
    check_kind(value, value.kind == Kind::u64);
    return value.of.u64;
}

std::vector<std::uint32_t> words_of(const Value& list) {
    std::vector<std::uint32_t> words;
    std::ranges::transform(items_of(list), std::back_inserter(words), word_of);
    return words;
}

void Store::check(void* error) const {
    if (!error) return;
    Text message{};
    wasmtime_.error_message(error, &message);
    GuestEnded ended(std::string(message.data, message.size));
    wasmtime_.byte_vec_delete(&message);
    wasmtime_.error_delete(error);
    throw std::move(ended);
}

std::uint32_t Store::number_of(const Value& resource) const {
    check_kind(resource, resource.kind == Kind::resource);
    void* host = nullptr;
    check(wasmtime_.any_to_host(context_, resource.of.resource, &host));
    const std::uint32_t number = wasmtime_.host_number(host);
    wasmtime_.host_delete(host);
    return number;
}

Made Store::resource(std::uint32_t number, std::uint32_t type) const {
    void* host = wasmtime_.host_new(true, number, type);
    void* any = nullptr;
    void* error = wasmtime_.host_to_any(context_, host, &any);
    wasmtime_.host_delete(host);
    check(error);
    return Made(wasmtime_, {Kind::resource, {.resource = any}});
}

Made Store::texts(Kind kind, std::string_view text) const {
    Value value{kind};
    wasmtime_.byte_vec_new(&value.of.text, text.size(), text.data());
    return Made(wasmtime_, value);
}

Made Store::text(std::string_view text) const {
    return find_invalid_utf8(text) ? texts(Kind::string, valid_utf8(text)) : texts(Kind::string, text);
}

Made Store::name(std::string_view name) const { return texts(Kind::enumeration, name); }

Made Store::bytes(std::string_view bytes) const {
    Value value{Kind::list};
    wasmtime_.list_new(&value.of.values, bytes.size());
    for (std::size_t i = 0; i < bytes.size(); ++i)
        value.of.values.data[i] = {Kind::u8, {.u8 = static_cast<std::uint8_t>(bytes[i])}};
    return Made(wasmtime_, value);
}

Made Store::words(std::span<const std::uint32_t> words) const {
    Value value{Kind::list};
    wasmtime_.list_new(&value.of.values, words.size());
    for (std::size_t i = 0; i < words.size(); ++i) value.of.values.data[i] = {Kind::u32, {.u32 = words[i]}};
    return Made(wasmtime_, value);
}

Made Store::list(std::vector<Made> items) const {
    Value value{Kind::list};
    wasmtime_.list_new(&value.of.values, items.size());
    for (std::size_t i = 0; i < items.size(); ++i) value.of.values.data[i] = items[i].release();
    return Made(wasmtime_, value);
}

Made Store::tuple(Made first, Made second) const {
    Value value{Kind::tuple};
    wasmtime_.tuple_new(&value.of.values, 2);
    value.of.values.data[0] = first.release();
    value.of.values.data[1] = second.release();
    return Made(wasmtime_, value);
}

Value* Store::boxed(Made content) const {
    Value value = content.release();
    return wasmtime_.val_new(&value);
}

Made Store::option(std::optional<Made> content) const {
    return Made(wasmtime_, {Kind::option, {.option = content ? boxed(std::move(*content)) : nullptr}});
}

Made Store::result(bool is_ok, Made content) const {
    return Made(wasmtime_, {Kind::result, {.result = {is_ok, boxed(std::move(content))}}});
}

}  // namespace headrace::wasi_nn::component
