#include "functions.h"
#include "held_bytes.h"
#include "option.h"

namespace headrace::node {
namespace {

using namespace webnn;

MLGraphBuilder& open(BuilderHandle& handle) {
    if (!handle.builder) throw Exception(Code::invalid_state, "the builder has built its graph");
    return *handle.builder;
}

napi_value keep(const Call& call, BuilderHandle& handle, MLOperand operand) {
    handle.operands.push_back(std::move(operand));
    return number(call.env(), static_cast<double>(handle.operands.size() - 1));
}

MLOperand operand_at(const Call& call, const BuilderHandle& handle, napi_value place) {
    napi_valuetype type{};
    check(napi_typeof(call.env(), place, &type));
    if (type == napi_null) return {};
    return handle.operands.at(static_cast<std::size_t>(to_integer(call.env(), place)));
}

MLOperandDescriptor descriptor(const Call& call, std::size_t first) {
    return {parse_data_type(call.text(first)), to_dimensions(call.env(), call[first + 1])};
}

class Build : public Task {
public:
    Build(MLGraphBuilder builder, std::map<std::string, MLOperand> outputs)
        : builder_(std::move(builder)), outputs_(std::move(outputs)) {}
    void run() override {
        graph_.emplace(builder_->buildNext(outputs_));
        outputs_.clear();
        builder_.reset();
    }
    napi_value result(napi_env env) override {
        return Record(env)
            .add("inputs", names(env, graph_->inputs()))
            .add("outputs", names(env, graph_->outputs()))
            .add("handle", external(env, new GraphHandle(*graph_), held_bytes(graph_->executable())));
    }

private:
    static napi_value names(napi_env env, const std::vector<TensorInfo>& infos) {
        std::vector<napi_value> list;
        for (const TensorInfo& info : infos) list.push_back(text(env, info.name));
        return node::list(env, list);
    }

    std::optional<MLGraphBuilder> builder_;
    std::map<std::string, MLOperand> outputs_;
    std::optional<MLGraph> graph_;
};

}  // namespace

napi_value create_builder(const Call& call) {
    return external(call.env(), new BuilderHandle(call.handle<ContextHandle>(0).context));
}

napi_value input(const Call& call) {
    auto& handle = call.handle<BuilderHandle>(0);
    return keep(call, handle, open(handle).input(call.text(1), descriptor(call, 2)));
}

napi_value constant(const Call& call) {
    auto& handle = call.handle<BuilderHandle>(0);
    const auto bytes = to_bytes(call.env(), call[3]);
    MLOperand made = open(handle).constant(descriptor(call, 1), bytes.data(), bytes.size());
    handle.constant_bytes += bytes.size();
    hold(call.env(), handle, handle.constant_bytes);
    return keep(call, handle, std::move(made));
}

napi_value constant_tensor(const Call& call) {
    auto& handle = call.handle<BuilderHandle>(0);
    return keep(call, handle, open(handle).constant(call.handle<TensorHandle>(1).tensor));
}

napi_value add_operator(const Call& call) {
    const napi_env env = call.env();
    auto& handle = call.handle<BuilderHandle>(0);
    std::vector<MLOperand> operands;
    for (const napi_value place : to_list(env, call[2])) operands.push_back(operand_at(call, handle, place));
    MLOptions options;
    const auto flat = to_list(env, call[3]);
    for (std::size_t i = 0; i + 2 < flat.size(); i += 3)
        options.emplace_back(to_text(env, flat[i]), to_option(env, to_text(env, flat[i + 1]), flat[i + 2]));
    std::vector<napi_value> results;
    for (MLOperand& operand : open(handle).op(call.text(1), operands, options, call.text(4))) {
        results.push_back(Record(env)
                              .add("dataType", data_type_name(operand.dataType()))
                              .add("shape", dimension_list(env, operand.shape()))
                              .add("operand", keep(call, handle, std::move(operand))));
    }
    return list(env, results);
}

napi_value build(const Call& call) {
    auto& handle = call.handle<BuilderHandle>(0);
    std::map<std::string, MLOperand> outputs;
    const auto names = to_list(call.env(), call[1]);
    const auto places = to_list(call.env(), call[2]);
    for (std::size_t i = 0; i < names.size() && i < places.size(); ++i)
        outputs.emplace(to_text(call.env(), names[i]), operand_at(call, handle, places[i]));
    auto task = std::make_unique<Build>(open(handle), std::move(outputs));
    handle.builder.reset();  // the task alone keeps its constants, however long JavaScript keeps the handle
    handle.operands.clear();
    hold(call.env(), handle, 0);
    return Task::start(call.env(), std::move(task));
}

}  // namespace headrace::node
