#pragma once
#include <memory>
#include <string>
#include <tuple>

#include "doors/onnx/model/source.h"
#include "doors/onnx/reading/interface.h"
#include "doors/onnx/reading/node.h"
#include "doors/onnx/reading/op_writer.h"
#include "doors/onnx/reading/scope.h"

namespace headrace::onnx {

/// What a model is once it is read (OnnxReading).
struct ImportedModel {
    Graph graph;
    std::vector<OnnxOutput> outputs;
    std::map<std::string, std::string> declared;
};

/// One model on its way into one graph: walks the nodes and gives each to the function that reads its
/// operator.
class Importer : private BranchReader {
public:
    Importer(Source& source, const OnnxOptions& options, Patience patience);

    /// The graph, before any pass.
    Result<ImportedModel> run();
    const Patience& patience() const { return shared_.patience; }

private:
    Values read_branch(OpWriter& into, const Branch& branch, const Values& inputs) override;
    ImportedModel read_content();
    void read_constants(std::span<const Bytes> tensors, Scope& scope);
    void refuse_sparse(const GraphMessage& graph) const;
    void read_nodes(std::span<const Bytes> nodes, Scope& scope);
    void bind(const NodeMessage& message, const Node& node, const Values& results, Scope& scope);
    Node node_of(const NodeMessage& message, const Scope& scope);
    AttributeValue attribute_of(const Node& node, const AttributeMessage& attribute, const Scope& scope);
    Values checked_results(const Node& node, const NodeMessage& message, const Scope& scope);
    Values results_of(const Node& node, const NodeMessage& message, const Scope& scope);
    Values called(const FunctionMessage& function, const Node& node, const NodeMessage& message,
                  const Scope& scope);
    const FunctionMessage* function_of(const NodeMessage& message) const;
    Operand constant(Bytes tensor, const std::string& what, const Scope& scope);
    Operand constant(const TensorMessage& tensor, const std::string& what, const Scope& scope);

    Source& source_;
    const OnnxOptions& options_;
    Shared shared_;
    OpWriter model_graph_;
    OpWriter* graph_ = &model_graph_;  ///< whose ops nodes become now
    std::map<std::tuple<std::string_view, std::string_view, std::string_view>, const FunctionMessage*>
        functions_;
    std::set<const char*> read_;  ///< where the lists of nodes begin that were read already
};

/// A model as a graph. Errors: load_onnx()'s.
Result<ImportedModel> read_model(Source& source, const OnnxOptions& options);

}  // namespace headrace::onnx
