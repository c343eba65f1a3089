#pragma once
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "doors/onnx/model/messages.h"
#include "doors/onnx/reading/op_writer.h"
#include "headrace/onnx.h"

namespace headrace::onnx {

/// A model's inputs and outputs, whose dimensions may be open or given. Errors: Refused without the model's
/// title.
class Interface {
public:
    /// inputs: those that a caller gives. perhaps_empty: names of dimensions that may be 0; others are at
    /// least 1.
    Interface(OpWriter& g, const std::vector<const ValueMessage*>& inputs, const OnnxOptions& given,
              std::set<std::string, std::less<>> perhaps_empty);

    Value input(const ValueMessage& value);
    /// That all dimensions that are given belong to an input.
    void check_dimensions() const;
    void output(std::string_view name, const Value& value);
    /// A graph has an output, also where the model's are empty sequences and optionals only.
    void finish();
    std::vector<OnnxOutput> take_outputs() { return std::move(outputs_); }
    std::map<std::string, std::string> take_declared() { return std::move(declared_); }

private:
    Value part(const std::string& name, const TypeMessage& type, const OnnxForm& form);
    Operand tensor_input(const std::string& name, const TypeMessage& type, const Shape& shape);
    OnnxOutput form_of(const std::string& name, const Value& value);
    std::string mark_output(const std::string& name, const Operand& value);
    Shape shape_of(const ValueMessage& value);
    Shape shape_of(const OnnxShape& given, std::string_view name, std::optional<std::int64_t> least = {});
    /// least: of one that is open; else what is known of that.
    Dim dimension(const std::string& name, std::optional<std::int64_t> least = {});
    bool is_sum(const std::vector<std::string>& parts) const;

    OpWriter& g_;
    const OnnxOptions& given_;
    std::set<std::string, std::less<>> perhaps_empty_, named_, used_;
    bool has_output_ = false;
    std::vector<OnnxOutput> outputs_;
    std::map<std::string, std::string> declared_;
};

/// Dimensions along which inputs are only joined with others, or cut apart: caches begin with nothing.
Result<std::set<std::string, std::less<>>> perhaps_empty(const GraphMessage& graph);

}  // namespace headrace::onnx
