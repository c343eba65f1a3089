#include "functions.h"
#include "headrace/graph_view.h"
#include "held_bytes.h"
#include "option.h"

namespace headrace::node {
namespace {

using namespace webnn;

class SaveGraph : public Task {
public:
    SaveGraph(MLGraph graph, std::string path, bool quantized)
        : graph_(std::move(graph)), path_(std::move(path)), quantized_(quantized) {}
    void run() override { graph_.save(path_, quantized_); }
    napi_value result(napi_env env) override { return undefined(env); }

private:
    const MLGraph graph_;
    const std::string path_;
    const bool quantized_;
};

napi_value descriptors(napi_env env, const std::vector<TensorInfo>& infos,
                       const std::vector<std::vector<MLDimension>>& shapes) {
    std::vector<napi_value> items;
    for (std::size_t i = 0; i < infos.size(); ++i) {
        items.push_back(Record(env)
                            .add("name", infos[i].name)
                            .add("dataType", data_type_name(infos[i].dtype))
                            .add("shape", dimension_list(env, shapes[i])));
    }
    return list(env, items);
}

class LoadGraph : public Task {
public:
    LoadGraph(MLContext context, std::string path) : context_(std::move(context)), path_(std::move(path)) {}
    void run() override {
        graph_.emplace(context_.load(path_));
        for (const auto& infos : {graph_->inputs(), graph_->outputs()})
            for (const TensorInfo& info : infos)
                if (data_type_name(info.dtype) == name_of(info.dtype))  // WebNN has no name for it
                    throw Exception(Code::unsupported,
                                    "'" + info.name + "' is " + std::string(name_of(info.dtype)) +
                                        ", which no MLTensor holds: load() of headrace runs such a graph");
    }
    napi_value result(napi_env env) override {
        return Record(env)
            .add("inputs", descriptors(env, graph_->inputs(), input_shapes(*graph_)))
            .add("outputs", descriptors(env, graph_->outputs(), output_shapes(*graph_)))
            .add("handle", external(env, new GraphHandle(*graph_), held_bytes(graph_->executable())));
    }

private:
    const MLContext context_;
    const std::string path_;
    std::optional<MLGraph> graph_;
};

}  // namespace

napi_value save_graph(const Call& call) {
    return Task::start(call.env(),
                       std::make_unique<SaveGraph>(call.handle<GraphHandle>(0).graph, call.text(1),
                                                   to_boolean(call.env(), call[2])));
}

napi_value load_graph(const Call& call) {
    return Task::start(call.env(),
                       std::make_unique<LoadGraph>(call.handle<ContextHandle>(0).context, call.text(1)));
}

napi_value output_shapes(const Call& call) {
    std::vector<std::vector<std::int64_t>> inputs;
    for (const napi_value shape : to_list(call.env(), call[1]))
        inputs.push_back(to_integers(call.env(), shape));
    std::vector<napi_value> shapes;
    for (const auto& shape : call.handle<GraphHandle>(0).graph.outputShapes(inputs))
        shapes.push_back(shape_list(call.env(), shape));
    return list(call.env(), shapes);
}

}  // namespace headrace::node
