#pragma once
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/aligned_buffer.h"
#include "doors/webnn/op_table.h"
#include "engine/executable.h"
#include "headrace/webnn.h"
#include "ir/graph_builder.h"

namespace headrace::webnn {

[[noreturn]] inline void fail(Error error) { throw Exception(error.code, error.message); }

struct BuilderState {
    GraphBuilder builder;
    CompileOptions options;
    bool built = false;
};

struct MLGraph::State {
    std::shared_ptr<const Graph> graph;  ///< as built, for save()
    Executable executable;
    std::vector<TensorInfo> inputs, outputs;
    std::mutex mutex;
    std::vector<std::unique_ptr<Session>> idle;  ///< sessions that no dispatch uses now
    bool destroyed = false;
};

struct MLTensor::State {
    MLTensorDescriptor descriptor;
    mutable std::mutex mutex;
    std::shared_ptr<AlignedBuffer> buffer;  ///< a dispatch holds it while it runs; null once destroyed

    /// The memory, or an invalid_state error that names the call.
    std::shared_ptr<AlignedBuffer> live(std::string_view what) const {
        const std::lock_guard lock(mutex);
        if (!buffer) fail(failure(Code::invalid_state, "{}: the tensor has been destroyed", what));
        return buffer;
    }
};

/// Compiles for a context's options; shared by build and load.
MLGraph make_graph(std::shared_ptr<const Graph> graph, const CompileOptions& options);

TensorType to_type(const MLOperandDescriptor& descriptor, std::string_view what);
std::vector<MLDimension> to_dimensions(const Shape& shape);

}  // namespace headrace::webnn
