#pragma once
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"
#include "doors/onnx/reading/node.h"
#include "doors/onnx/reading/op_writer.h"
#include "doors/onnx/reading/scope.h"
#include "headrace/onnx.h"

namespace headrace::onnx {

/// Says already what of the model cannot be read, and why; Importer::run() returns it.
class Unreadable : public std::runtime_error {
public:
    explicit Unreadable(Error error) : std::runtime_error(error.message), error_(std::move(error)) {}

    /// A node's error, with the remedy; where extents are open, that may be to fix them.
    static Unreadable at(std::string_view title, const OpWriter& g, const Node& node, const Scope& scope,
                         const Refused& why);

    /// The same, which says that dimensions were given where they were.
    Unreadable with(const OnnxOptions& given) const;

    const Error& error() const { return error_; }

private:
    Error error_;
};

/// A Result's value, or its error, which says where.
template <class T>
T value_or_unreadable(Result<T> result) {
    if (!result.ok()) throw Unreadable(result.error());
    return std::move(result).value();
}
/// The same, of an error said of `where`.
template <class T>
T value_or_unreadable(Result<T> result, std::string_view where) {
    if (!result.ok()) throw Unreadable(result.error().within(where));
    return std::move(result).value();
}

/// What a function returns, whose errors are said of `where`.
template <class F>
auto said_of(std::string_view where, F function) {
    try {
        return function();
    } catch (const Undecided& error) {
        throw Unreadable(unsupported("{}: it depends on whether {}", where, error.what()));
    } catch (const Refused& error) {
        const std::string_view between = error.remedy().empty() ? "" : ". ";
        throw Unreadable(
            {error.code(), fmt::format("{}: {}{}{}", where, error.what(), between, error.remedy())});
    }
}

/// Texts of attributes may be anything; what is no UTF-8 in them is replaced.
std::string valid_text(Bytes bytes);

}  // namespace headrace::onnx
