#include "cli/prepared.h"

#include "base/log.h"
#include "engine/executable.h"

namespace headrace::cli {

Result<std::unique_ptr<Prepared>> Prepared::make(const Executable& executable, const GraphOptions& options) {
    auto prepared = std::unique_ptr<Prepared>(new Prepared(executable, options.most_iterations));
    const Graph& graph = executable.graph();
    HR_ASSIGN(InputShapes shapes, input_shapes(graph, options.inputs));
    const std::string made_up = made_up_text(graph, shapes, is_onnx_file(options.graph));
    if (!made_up.empty()) tell_user(made_up);
    HR_ASSIGN(prepared->inputs_, gather_inputs(graph, std::move(shapes), options.inputs.seed));
    for (const Array& a : prepared->inputs_) prepared->views_.push_back({a.dtype, a.shape, a.bytes.data()});
    return prepared;
}

Result<std::unique_ptr<Prepared>> Prepared::make(const GraphOptions& options) {
    HR_ASSIGN(const Graph graph, read_graph_or_model(options));
    return make(compile(graph, options.compile), options);
}

void Prepared::run(RunOptions options) {
    options.most_iterations = most_iterations_;
    session_.run(
        views_, [this](const auto& shapes) { return memory_for(shapes); }, options);
}

void Prepared::plan() {
    if (!executable_.impl()->stages.empty()) return run();
    std::vector<std::vector<std::int64_t>> shapes;
    for (const Array& a : inputs_) shapes.push_back(a.shape);
    session_.output_shapes(shapes);
}

/// What the last run had, where the shapes are the same.
std::vector<OutputView> Prepared::memory_for(const std::vector<std::vector<std::int64_t>>& shapes) {
    outputs_.resize(shapes.size());
    std::vector<OutputView> views;
    for (std::size_t i = 0; i < shapes.size(); ++i) {
        Array& array = outputs_[i];
        if (array.shape != shapes[i] || array.bytes.empty()) {
            const DType dtype = executable_.outputs()[i].dtype;
            const std::size_t bytes = bytes_of(dtype, ConstView{dtype, shapes[i]}.elements());
            array = {dtype, shapes[i], std::vector<std::byte>(bytes)};
        }
        views.push_back({array.bytes.data(), array.bytes.size()});
    }
    return views;
}

}  // namespace headrace::cli
