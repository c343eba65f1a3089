#pragma once
#include <map>
#include <set>
#include <string>
#include <vector>

#include "doors/onnx/reading/op_writer.h"

namespace headrace::onnx {

/// A graph that is the body of a node: the branches of an If, what a Loop repeats. Values of the graph around
/// it become inputs where an op needs them.
class Body : public OpWriter {
public:
    /// One within `outer`, which lives as long as the model is read.
    static Body& within(OpWriter& outer);
    explicit Body(OpWriter& outer);

    using OpWriter::ops;
    ValueId declare(const std::string& name, DType stored, const Shape& shape) override;
    std::vector<Operand> ops(std::string_view name, std::vector<Operand> operands,
                             const NamedAttrs& attrs) override;
    /// The outer graph's values that are the last inputs, in order.
    const std::vector<Operand>& captured() const { return captured_; }
    /// The whole graph. Extents that it names and that no input has become inputs without elements.
    GraphPtr finish(const std::vector<Operand>& results);

protected:
    ValueId capture(const Operand& x) override;

private:
    OpWriter& outer_;
    std::vector<Operand> captured_;
    std::map<ValueId, ValueId> captures_;  ///< inputs by the outer graph's values
    std::map<std::string, Dim> named_;     ///< symbols that ops name
    std::set<std::string> told_by_shapes_;
};

/// Extents of a node's results, in the graph around its bodies.
class ResultExtents {
public:
    /// own: symbols that mean something in the bodies only.
    ResultExtents(OpWriter& outer, std::set<std::string> own) : outer_(outer), own_(std::move(own)) {}

    /// A result that has one of these shapes, of one rank: extents are counted where they are not the same in
    /// all.
    void add(const std::vector<Shape>& candidates);
    void add(const Dim& extent) { results_.push_back(extent); }
    Dim count();
    const Shape& results() const { return results_; }
    const Shape& counts() const { return counts_; }

private:
    OpWriter& outer_;
    std::set<std::string> own_;
    Shape results_, counts_;
};

/// One truth value.
Operand truth_of(OpWriter& g, const Operand& x, std::string_view what);

}  // namespace headrace::onnx
