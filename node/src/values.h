#pragma once
#include <node_api.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "headrace/error.h"

namespace headrace::node {

/// A JavaScript exception is pending, or this environment runs no more JavaScript.
struct PendingException {};

void check(napi_status status);

napi_value text(napi_env env, std::string_view value);
napi_value number(napi_env env, double value);
napi_value boolean(napi_env env, bool value);
napi_value undefined(napi_env env);
napi_value list(napi_env env, std::span<const napi_value> items);
void set(napi_env env, napi_value object, const char* name, napi_value value);
napi_value property(napi_env env, napi_value object, const char* name);
/// The object's member; none where that is undefined.
std::optional<napi_value> member(napi_env env, napi_value object, const char* name);
napi_value shape_list(napi_env env, std::span<const std::int64_t> shape);
/// Numbers in an array of that type.
template <class T>
napi_value typed_array(napi_env env, napi_typedarray_type type, const std::vector<T>& numbers) {
    napi_value buffer, array;
    void* data = nullptr;
    check(napi_create_arraybuffer(env, numbers.size() * sizeof(T), &data, &buffer));
    if (!numbers.empty()) std::memcpy(data, numbers.data(), numbers.size() * sizeof(T));
    check(napi_create_typedarray(env, type, numbers.size(), buffer, 0, &array));
    return array;
}

/// An Error whose `code` is the failure's: "invalid_argument".
napi_value error_value(napi_env env, Code code, std::string_view message);

std::string to_text(napi_env env, napi_value value);
std::int64_t to_integer(napi_env env, napi_value value);
double to_double(napi_env env, napi_value value);
bool to_boolean(napi_env env, napi_value value);
std::vector<napi_value> to_list(napi_env env, napi_value value);
std::vector<std::int64_t> to_integers(napi_env env, napi_value value);
std::vector<std::string> to_texts(napi_env env, napi_value value);
/// The bytes of a Uint8Array, which may lie in a SharedArrayBuffer.
std::span<std::byte> to_bytes(napi_env env, napi_value value);

/// An object of JavaScript's under construction.
class Record {
public:
    explicit Record(napi_env env) : env_(env) { check(napi_create_object(env, &object_)); }
    operator napi_value() const { return object_; }

    Record& add(const char* name, napi_value value) {
        set(env_, object_, name, value);
        return *this;
    }
    Record& add(const char* name, std::string_view value) { return add(name, text(env_, value)); }
    Record& add(const char* name, const std::string& value) { return add(name, std::string_view(value)); }
    Record& add(const char* name, bool value) { return add(name, boolean(env_, value)); }
    template <class T>
    requires(std::is_arithmetic_v<T> && !std::is_same_v<T, bool>) Record& add(const char* name, T value) {
        return add(name, number(env_, static_cast<double>(value)));
    }
    template <class T>
    Record& add_list(const char* name, const std::vector<T>& items,
                     napi_value (*convert)(napi_env, const T&)) {
        std::vector<napi_value> values;
        for (const T& item : items) values.push_back(convert(env_, item));
        return add(name, list(env_, values));
    }

private:
    napi_env env_;
    napi_value object_;
};

/// What a JavaScript external of ours points to.
struct Handle {
    enum class Kind : std::uint8_t {
        context,
        tensor,
        graph,
        builder,
        model,
        tokenizer,
        language_model,
        conversation,
        generation,
        stop,
        bytes,
    };
    explicit Handle(Kind of) : kind(of) {}
    virtual ~Handle() = default;
    const Kind kind;

private:
    friend napi_value external(napi_env env, Handle* handle, std::size_t bytes);
    friend void hold(napi_env env, Handle& handle, std::size_t bytes);
    std::size_t held_ = 0;  ///< bytes of which the garbage collector is told
};

Handle& to_handle(napi_env env, napi_value value, Handle::Kind kind);
/// The external owns the handle. `bytes`: memory that goes with it, for the garbage collector.
napi_value external(napi_env env, Handle* handle, std::size_t bytes = 0);
/// As many bytes go with the handle from now on.
void hold(napi_env env, Handle& handle, std::size_t bytes);

/// Arguments of one call.
class Call {
public:
    Call(napi_env env, napi_callback_info info);
    napi_env env() const { return env_; }
    napi_value operator[](std::size_t i) const { return arguments_[i]; }
    std::string text(std::size_t i) const { return to_text(env_, arguments_[i]); }
    template <class T>
    T& handle(std::size_t i) const {
        return static_cast<T&>(to_handle(env_, arguments_[i], T::kKind));
    }

private:
    napi_env env_;
    napi_value arguments_[8] = {};  ///< undefined where fewer were given
};

void throw_error(napi_env env, Code code, std::string_view message);
/// Where Node-API refused a value without an exception of its own, throws one.
void throw_unless_pending(napi_env env);

/// A function as Node calls it: C++ exceptions become JavaScript's.
template <napi_value (*Function)(const Call&)>
napi_value entry(napi_env env, napi_callback_info info) {
    try {
        return Function(Call(env, info));
    } catch (const PendingException&) {
        throw_unless_pending(env);
    } catch (const Exception& error) {
        throw_error(env, error.code(), error.what());
    } catch (const std::bad_alloc&) {
        throw_error(env, Code::out_of_memory, "out of memory");
    } catch (const std::exception& error) {
        throw_error(env, Code::backend_failure, error.what());
    }
    return nullptr;
}

}  // namespace headrace::node
