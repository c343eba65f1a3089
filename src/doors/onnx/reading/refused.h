#pragma once
#include <stdexcept>
#include <string>
#include <utility>

#include "base/result.h"

namespace headrace::onnx {

/// Why a node cannot be expressed. Operators' functions throw it, since each of their lines may be where it
/// shows; Importer::read_node() catches it, adds the node's title and makes it an Error (docs/decisions/022).
class Refused : public std::runtime_error {
public:
    /// The ways round any node.
    static constexpr const char* kOtherwise =
        "Export the model without this, compute this part outside the model, or run the model with ONNX "
        "Runtime";

    explicit Refused(const std::string& reason, std::string remedy = kOtherwise,
                     Code code = Code::unsupported)
        : std::runtime_error(reason), remedy_(std::move(remedy)), code_(code) {}

    const std::string& remedy() const { return remedy_; }
    Code code() const { return code_; }

private:
    std::string remedy_;
    Code code_;
};

/// What a node has that its operator does not allow.
class Invalid : public Refused {
public:
    explicit Invalid(const std::string& reason)
        : Refused(reason,
                  "ONNX's rules for the operator do not allow this; what wrote the model has to correct it",
                  Code::invalid_argument) {}
};

/// What depends on values that are open until the model is called.
class Undecided : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

/// `invalid_if(axis < 0, "axis is {}", axis)`
template <class... Args>
void invalid_if(bool condition, fmt::format_string<Args...> format, Args&&... args) {
    if (condition) throw Invalid(fmt::format(format, std::forward<Args>(args)...));
}

template <class... Args>
void refuse_if(bool condition, fmt::format_string<Args...> format, Args&&... args) {
    if (condition) throw Refused(fmt::format(format, std::forward<Args>(args)...));
}

/// For messages.
std::string shortened_text(std::string text);

/// A Result's value, where its error refuses the node.
template <class T>
T value_or_refuse(Result<T> result) {
    if (!result.ok()) throw Refused(result.error().message, Refused::kOtherwise, result.error().code);
    return std::move(result).value();
}

}  // namespace headrace::onnx
