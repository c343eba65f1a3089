#pragma once
#include <condition_variable>
#include <memory>
#include <mutex>
#include <set>
#include <shared_mutex>
#include <string>
#include <vector>

#include "base/buffer_pool.h"
#include "doors/webnn/op_table.h"
#include "engine/convert.h"
#include "engine/executable.h"
#include "headrace/webnn.h"
#include "ir/graph_builder.h"
#include "run/tensor_memory.h"

namespace headrace::webnn {

[[noreturn]] inline void fail(Error error) { throw Exception(error.code, error.message); }

struct BuilderState {
    std::mutex mutex;
    GraphBuilder builder;
    std::optional<MLContext> context;
    bool built = false;
    std::size_t first_node = 0;  ///< that no graph of buildNext() could have
};

struct MLGraph::State {
    State(std::shared_ptr<const Graph> built, Executable compiled, bool keep_built, const void* owner)
        : operands(built->values.size()),
          operations(built->nodes.size()),
          graph(keep_built ? std::move(built) : std::make_shared<const Graph>(compiled.graph())),
          executable(std::move(compiled)),
          inputs(executable.inputs()),
          outputs(executable.outputs()),
          has_states(!executable.states().empty()),
          context(owner) {}

    const std::size_t operands, operations;  ///< of the graph as built
    /// For save(): as built. Where weights are quantised the optimised graph, so that no others are held.
    const std::shared_ptr<const Graph> graph;
    const Executable executable;
    const std::vector<TensorInfo> inputs, outputs;
    const bool has_states;
    const void* context = nullptr;              ///< whose it is, only compared; null: any context may run it
    std::set<std::string, std::less<>> unread;  ///< inputs of the builder that the graph does not have
    std::mutex mutex;
    std::vector<std::unique_ptr<Session>> idle;  ///< sessions that no dispatch uses now
    std::condition_variable returned;            ///< the one session of a graph with states is idle again
    bool destroyed = false;
};

struct MLTensor::State {
    MLTensorDescriptor descriptor;
    const void* context = nullptr;  ///< whose it is; only compared
    /// A context's operations on one tensor happen one after the other: reads share, writes exclude.
    mutable std::shared_mutex content;
    mutable std::mutex mutex;
    /// A dispatch holds it while it runs and may put another in its place; null once destroyed.
    std::shared_ptr<TensorMemory> memory;
    /// What a dispatch that read the tensor and wrote it, too, has left, for the next such one.
    std::shared_ptr<TensorMemory> spare;

    /// The memory, or an invalid_state error that names the call.
    std::shared_ptr<TensorMemory> live(std::string_view what) const {
        const std::lock_guard lock(mutex);
        if (!memory) fail(failure(Code::invalid_state, "{}: the tensor has been destroyed", what));
        return memory;
    }
};

/// Throws invalid_argument, naming `what`, when the tensor belongs to another context.
void check_owner(const MLTensor::State& tensor, const void* context, std::string_view what);

/// Appends an operator. Unlike our graphs, WebNN has no empty tensors: such a result is an error.
Result<std::vector<ValueId>> add_op(GraphBuilder& builder, const OpDef& def, std::vector<ValueId> operands,
                                    const NamedAttrs& attrs, const std::string& label);

/// One element of a constant. Integers keep 64 bits; conversion to an integer type truncates, to f16 rounds
/// once. A 4-bit element comes in both halves of its byte.
std::vector<std::byte> scalar_bytes(DType type, const Number& value);

/// "keepDimensions" as "keep_dimensions".
std::string snake_case(std::string_view name);

/// Compiles for a context's options; shared by build and load.
MLGraph make_graph(std::shared_ptr<const Graph> graph, const CompileOptions& options, const void* context);

/// Errors name `what`: not a WebNN data type, an extent below 1 or above 2^32 - 1.
Result<TensorType> tensor_type(const MLOperandDescriptor& descriptor, std::string_view what);
TensorType to_type(const MLOperandDescriptor& descriptor, std::string_view what);
/// A data type by the specification's name in any case, or by the catalog's: "float32", "Float32", "f32".
Result<DType> find_data_type(std::string_view name);
/// A builder's error in the specification's words: "int32[2]" where the catalog says "i32[2]". What stands in
/// quotes or at the beginning, which is somebody's label, stays as it is.
Error with_data_type_names(const Error& error, std::string_view beginning);
/// The value, or the error in these words as an exception.
template <class T>
T built(Result<T> result, std::string_view beginning) {
    if (!result.ok()) fail(with_data_type_names(result.error(), beginning));
    return std::move(result).value();
}

}  // namespace headrace::webnn
