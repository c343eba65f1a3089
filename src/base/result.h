#pragma once
#include <fmt/format.h>

#include <cassert>
#include <string>
#include <utility>
#include <variant>

#include "headrace/error.h"

namespace headrace {

struct Error {
    Code code = Code::invalid_argument;
    std::string message;
    std::string parameter = {};  ///< as Exception has it

    /// The same error, said of something larger: "conv2d (stem): " + message.
    [[nodiscard]] Error within(std::string_view where) const {
        return {code, fmt::format("{}: {}", where, message), parameter};
    }
    /// The same error, of that parameter.
    [[nodiscard]] Error of_parameter(std::string_view name) const {
        return {code, message, std::string(name)};
    }
};

template <class... Args>
Error invalid(fmt::format_string<Args...> format, Args&&... args) {
    return {Code::invalid_argument, fmt::format(format, std::forward<Args>(args)...)};
}

template <class... Args>
Error unsupported(fmt::format_string<Args...> format, Args&&... args) {
    return {Code::unsupported, fmt::format(format, std::forward<Args>(args)...)};
}

template <class... Args>
Error failure(Code code, fmt::format_string<Args...> format, Args&&... args) {
    return {code, fmt::format(format, std::forward<Args>(args)...)};
}

/// A value or the Error that kept it from being made. Never both, never neither.
template <class T>
class [[nodiscard]] Result {
public:
    Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
    Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

    bool ok() const { return state_.index() == 0; }
    explicit operator bool() const { return ok(); }

    T& value() & {
        assert(ok());
        return std::get<0>(state_);
    }
    const T& value() const& {
        assert(ok());
        return std::get<0>(state_);
    }
    T&& value() && {
        assert(ok());
        return std::get<0>(std::move(state_));
    }
    const Error& error() const {
        assert(!ok());
        return std::get<1>(state_);
    }

private:
    std::variant<T, Error> state_;
};

using Status = Result<std::monostate>;
inline Status success() { return std::monostate{}; }

/// The public functions throw; everything inside returns a Result.
template <class T>
T value_or_throw(Result<T> result) {
    if (!result.ok()) {
        const Error& error = result.error();
        throw Exception(error.code, error.message, error.parameter);
    }
    return std::move(result).value();
}

}  // namespace headrace

#define HR_CONCAT_(a, b) a##b
#define HR_CONCAT(a, b) HR_CONCAT_(a, b)

/// Returns the error of a Status or Result to the caller; discards the value.
#define HR_TRY(expr)                                                            \
    do {                                                                        \
        if (auto hr_status = (expr); !hr_status.ok()) return hr_status.error(); \
    } while (0)

/// `HR_ASSIGN(auto x, f())`: declares or assigns x from a Result, or returns its error.
#define HR_ASSIGN(target, expr) HR_ASSIGN_IMPL(HR_CONCAT(hr_result_, __LINE__), target, expr)
#define HR_ASSIGN_IMPL(tmp, target, expr) \
    auto tmp = (expr);                    \
    if (!tmp.ok()) return tmp.error();    \
    target = std::move(tmp).value()
