#pragma once
#include "headrace/headrace.h"
#include "headrace/webnn.h"
#include "timeline.h"
#include "values.h"

/// What lib/webnn calls a backend, on Headrace. Arguments are checked there; errors carry a `code`.
namespace headrace::node {

struct ContextHandle : Handle {
    static constexpr Kind kKind = Kind::context;
    ContextHandle(webnn::MLContext of, std::shared_ptr<Timeline> order)
        : Handle(kKind), context(std::move(of)), timeline(std::move(order)) {}
    const webnn::MLContext context;
    const std::shared_ptr<Timeline> timeline;
};

struct TensorHandle : Handle {
    static constexpr Kind kKind = Kind::tensor;
    explicit TensorHandle(webnn::MLTensor of) : Handle(kKind), tensor(std::move(of)) {}
    const webnn::MLTensor tensor;
};

struct GraphHandle : Handle {
    static constexpr Kind kKind = Kind::graph;
    explicit GraphHandle(webnn::MLGraph of) : Handle(kKind), graph(std::move(of)) {}
    const webnn::MLGraph graph;
};

/// Operands are numbers to JavaScript: their places here.
struct BuilderHandle : Handle {
    static constexpr Kind kKind = Kind::builder;
    explicit BuilderHandle(const webnn::MLContext& context) : Handle(kKind), builder(context) {}
    std::optional<webnn::MLGraphBuilder> builder;  ///< none once its graph is built
    std::vector<webnn::MLOperand> operands;
    std::size_t constant_bytes = 0;
};

/// (MLContextOptions as given, onLost) -> promise of {handle, accelerated, device}
napi_value create_context(const Call& call);
napi_value destroy_context(const Call& call);         // (context)
napi_value create_tensor(const Call& call);           // (context, type, shape, readable, writable) -> promise
napi_value create_constant_tensor(const Call& call);  // (context, type, shape, bytes) -> promise
napi_value destroy_tensor(const Call& call);          // (context, tensor)
napi_value write_tensor(const Call& call);            // (context, tensor, bytes)
napi_value read_tensor(const Call& call);             // (context, tensor, bytes to fill) -> promise
napi_value dispatch(const Call& call);       // (context, graph, inputs, outputs), in the graph's order
napi_value destroy_graph(const Call& call);  // (context, graph)

napi_value create_builder(const Call& call);   // (context) -> builder
napi_value input(const Call& call);            // (builder, name, type, shape) -> operand
napi_value constant(const Call& call);         // (builder, type, shape, bytes) -> operand
napi_value constant_tensor(const Call& call);  // (builder, tensor) -> operand
/// (builder, name, operands or null, [name, kind, value, ...], label) -> [{operand, dataType, shape}]
napi_value add_operator(const Call& call);
/// (graph, path, quantized) -> promise
napi_value save_graph(const Call& call);
/// (context, path) -> promise of {handle, inputs, outputs: [{name, dataType, shape}]}
napi_value load_graph(const Call& call);
/// (graph, [shape of an input in the graph's order]) -> [shape of an output]
napi_value output_shapes(const Call& call);
/// (builder, names, operands) -> promise of {graph, inputs: [name], outputs: [name]}
napi_value build(const Call& call);

}  // namespace headrace::node
