#pragma once
#include <node_api.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
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
napi_value shape_list(napi_env env, std::span<const std::int64_t> shape);
/// An Error whose `code` is the failure's: "invalid_argument".
napi_value error_value(napi_env env, Code code, std::string_view message);

std::string to_text(napi_env env, napi_value value);
std::int64_t to_integer(napi_env env, napi_value value);
double to_double(napi_env env, napi_value value);
bool to_boolean(napi_env env, napi_value value);
std::vector<napi_value> to_list(napi_env env, napi_value value);
std::vector<std::int64_t> to_integers(napi_env env, napi_value value);
/// The bytes of a Uint8Array, which may lie in a SharedArrayBuffer.
std::span<std::byte> to_bytes(napi_env env, napi_value value);

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
    };
    explicit Handle(Kind of) : kind(of) {}
    virtual ~Handle() = default;
    const Kind kind;
};

Handle& to_handle(napi_env env, napi_value value, Handle::Kind kind);
/// The external owns the handle. `bytes`: memory that goes with it, for the garbage collector.
napi_value external(napi_env env, Handle* handle, std::size_t bytes = 0);

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

/// A function as Node calls it: C++ exceptions become JavaScript's.
template <napi_value (*Function)(const Call&)>
napi_value entry(napi_env env, napi_callback_info info) {
    try {
        return Function(Call(env, info));
    } catch (const PendingException&) {
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
