#include "doors/webnn/files/graph_files.h"
#include "doors/webnn/state.h"

namespace headrace::webnn {
namespace {

MLGraph load_for(const void* context, const CompileOptions& options, const std::string& path,
                 const WeightPaths& weights) {
    auto graph = value_or_throw(read_graph_file(path, weights));
    return make_graph(std::make_shared<const Graph>(std::move(graph)), options, context);
}

}  // namespace

MLGraph MLContext::load(const std::string& path, const std::string& manifestPath,
                        const std::string& weightsPath) const {
    checkLive("load");
    return load_for(state_.get(), compileOptions(), path, {manifestPath, weightsPath});
}

MLGraph MLContext::loadShared(const std::string& path, const std::string& manifestPath,
                              const std::string& weightsPath) const {
    checkLive("load");
    return load_for(nullptr, compileOptions(), path, {manifestPath, weightsPath});
}

void MLGraph::save(const std::string& path, bool quantized) const {
    value_or_throw(write_graph_file(*state_->graph, path, quantized));
}

}  // namespace headrace::webnn
