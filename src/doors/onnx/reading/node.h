#pragma once
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "doors/onnx/model/messages.h"
#include "doors/onnx/reading/values.h"

namespace headrace::onnx {

struct Scope;

/// A graph that is an attribute, with the names that it sees.
struct Branch {
    GraphMessage graph;
    const Scope* scope = nullptr;
};

using AttributeValue =
    std::variant<std::int64_t, double, std::string, std::vector<std::int64_t>, std::vector<double>,
                 std::vector<std::string>, Operand, std::shared_ptr<const Branch>, TypeMessage>;

/// A node as operators' functions see it. Attributes of a type that the operator does not have are Invalid.
struct Node {
    std::string op, domain;  ///< domain: "" is ai.onnx
    std::int64_t opset = 0;
    std::string name;
    std::vector<Operand> inputs;       ///< null where one is left out, or is no tensor
    Values values;                     ///< all inputs, where some are no tensors; else empty
    std::vector<std::string> outputs;  ///< names, "" for one that is not wanted
    std::vector<std::pair<std::string, AttributeValue>> attributes;

    /// "node 'halves' (Split, ai.onnx opset 21)", and "Split 'halves'".
    std::string title() const;
    std::string short_title() const;

    // --- inputs and outputs ---
    /// Whether somebody reads an optional output.
    bool wants(std::size_t index) const { return index < outputs.size() && !outputs[index].empty(); }
    /// Null where it is left out. Throws Invalid for what is no tensor.
    Operand optional(std::size_t index) const;
    /// Throws Invalid where it is missing.
    Operand operand(std::size_t index) const;
    Operand x() const { return operand(0); }
    /// An input of any kind, or one that is left out.
    Value value(std::size_t index) const;
    /// An input whose elements are known; Refused names it `what` where only a run knows them.
    Operand known_operand(std::size_t index, std::string_view what) const;
    /// A list of extents that is an input and known; Refused names it `what` where only a run knows it.
    Shape dims(std::size_t index, std::string_view what) const;
    /// A list of numbers that is an input.
    std::vector<std::int64_t> integers(std::size_t index, std::string_view what) const;
    /// A scalar that is an input.
    Number number(std::size_t index, std::string_view what) const;
    std::int64_t integer_at(std::size_t index, std::string_view what) const {
        return integer_of(number(index, what));
    }
    /// What older operator sets have as an attribute and newer ones as an input; none without both.
    std::optional<std::vector<std::int64_t>> list_at(std::string_view attribute, std::size_t index,
                                                     std::string_view what) const;

    // --- attributes ---
    const AttributeValue* attribute(std::string_view name) const;
    bool has(std::string_view name) const { return attribute(name) != nullptr; }
    void set(std::string_view name, AttributeValue value);
    void remove(std::string_view name);
    std::int64_t integer(std::string_view name, std::int64_t otherwise) const;
    /// One that the operator must have.
    std::int64_t integer(std::string_view name) const;
    /// Any number but 0 is yes, as ONNX Runtime reads most flags; of some only 1 is.
    bool flag(std::string_view name, bool otherwise) const { return integer(name, otherwise ? 1 : 0) != 0; }
    bool is_one(std::string_view name, bool otherwise) const { return integer(name, otherwise ? 1 : 0) == 1; }
    double real(std::string_view name, double otherwise) const;
    std::string text(std::string_view name, std::string_view otherwise) const;
    std::optional<std::vector<std::int64_t>> integer_list(std::string_view name) const;
    std::optional<std::vector<double>> real_list(std::string_view name) const;
    std::optional<std::vector<std::string>> text_list(std::string_view name) const;
    /// Null where there is none.
    Operand tensor(std::string_view name) const;
    std::shared_ptr<const Branch> branch(std::string_view name) const;
};

/// Axes counted from the front, none of them twice.
std::vector<std::int64_t> axes_of(const std::vector<std::int64_t>& axes, std::int64_t rank);

/// The type that an attribute or a tensor names by ONNX's number for it. Throws Refused for one that is not
/// read.
ElementType type_named(std::int64_t number, std::string_view what);

}  // namespace headrace::onnx
