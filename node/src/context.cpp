#include <cstring>

#include "functions.h"
#include "option.h"

namespace headrace::node {
namespace {

using namespace webnn;

class CreateContext : public Task {
public:
    CreateContext(MLContextOptions options, std::shared_ptr<Timeline> timeline)
        : options_(std::move(options)), timeline_(std::move(timeline)) {}
    void run() override { context_.emplace(options_); }
    napi_value result(napi_env env) override {
        return Record(env)
            .add("accelerated", context_->accelerated())
            .add("device", context_->device())
            .add("handle", external(env, new ContextHandle(*context_, timeline_)));
    }

private:
    const MLContextOptions options_;
    const std::shared_ptr<Timeline> timeline_;
    std::optional<MLContext> context_;
};

/// Bytes of JavaScript's may change once a call is over.
using Copy = std::shared_ptr<std::vector<std::byte>>;
Copy copy_of(napi_env env, napi_value bytes) {
    const auto view = to_bytes(env, bytes);
    return std::make_shared<std::vector<std::byte>>(view.begin(), view.end());
}

class CreateTensor : public Task {
public:
    CreateTensor(MLContext context, MLTensorDescriptor descriptor, Copy content)
        : context_(std::move(context)), descriptor_(std::move(descriptor)), content_(std::move(content)) {}
    void run() override {
        tensor_.emplace(content_
                            ? context_.createConstantTensor(descriptor_, content_->data(), content_->size())
                            : context_.createTensor(descriptor_));
    }
    napi_value result(napi_env env) override {
        return external(env, new TensorHandle(*tensor_), tensor_->bytes());
    }

private:
    const MLContext context_;
    const MLTensorDescriptor descriptor_;
    const Copy content_;
    std::optional<MLTensor> tensor_;
};

MLTensorDescriptor descriptor_of(const Call& call) {
    MLTensorDescriptor descriptor;
    descriptor.dataType = parse_data_type(call.text(1));
    descriptor.shape = to_integers(call.env(), call[2]);
    return descriptor;
}

std::map<std::string, MLTensor> named_tensors(const Call& call, std::size_t argument,
                                              const std::vector<TensorInfo>& infos) {
    std::map<std::string, MLTensor> named;
    const auto handles = to_list(call.env(), call[argument]);
    for (std::size_t i = 0; i < infos.size() && i < handles.size(); ++i) {
        Handle& handle = to_handle(call.env(), handles[i], Handle::Kind::tensor);
        named.emplace(infos[i].name, static_cast<TensorHandle&>(handle).tensor);
    }
    return named;
}

}  // namespace

napi_value create_context(const Call& call) {
    const napi_env env = call.env();
    MLContextOptions options = to_context_options(env, call[0]);
    auto timeline = std::make_shared<Timeline>(env, call[1]);
    return Task::start(env, std::make_unique<CreateContext>(std::move(options), std::move(timeline)));
}

napi_value destroy_context(const Call& call) {
    auto& handle = call.handle<ContextHandle>(0);
    handle.context.destroy();
    handle.timeline->close(call.env(), {Code::invalid_state, "the context has been destroyed"});
    return nullptr;
}

napi_value create_tensor(const Call& call) {
    MLTensorDescriptor descriptor = descriptor_of(call);
    descriptor.readable = to_boolean(call.env(), call[3]);
    descriptor.writable = to_boolean(call.env(), call[4]);
    auto& context = call.handle<ContextHandle>(0).context;
    return Task::start(call.env(), std::make_unique<CreateTensor>(context, std::move(descriptor), nullptr));
}

napi_value create_constant_tensor(const Call& call) {
    auto& context = call.handle<ContextHandle>(0).context;
    return Task::start(call.env(), std::make_unique<CreateTensor>(context, descriptor_of(call),
                                                                  copy_of(call.env(), call[3])));
}

napi_value destroy_tensor(const Call& call) {
    auto& handle = call.handle<TensorHandle>(1);
    const auto destroy = [tensor = handle.tensor]() mutable { tensor.destroy(); };
    hold(call.env(), handle, 0);
    call.handle<ContextHandle>(0).timeline->add(call.env(), {.run = destroy});
    return nullptr;
}

napi_value destroy_graph(const Call& call) {
    auto& handle = call.handle<GraphHandle>(1);
    const auto destroy = [graph = handle.graph]() mutable { graph.destroy(); };
    hold(call.env(), handle, 0);
    call.handle<ContextHandle>(0).timeline->add(call.env(), {.run = destroy});
    return nullptr;
}

napi_value write_tensor(const Call& call) {
    auto& handle = call.handle<ContextHandle>(0);
    handle.timeline->add(call.env(),
                         {.run = [context = handle.context, tensor = call.handle<TensorHandle>(1).tensor,
                                  content = copy_of(call.env(), call[2])] {
                             context.writeTensor(tensor, content->data(), content->size());
                         }});
    return nullptr;
}

napi_value read_tensor(const Call& call) {
    auto& handle = call.handle<ContextHandle>(0);
    const auto bytes = to_bytes(call.env(), call[2]);
    Timeline::Operation operation{.run = [context = handle.context,
                                          tensor = call.handle<TensorHandle>(1).tensor,
                                          bytes] { context.readTensor(tensor, bytes.data(), bytes.size()); }};
    napi_value promise;
    check(napi_create_promise(call.env(), &operation.deferred, &promise));
    check(napi_create_reference(call.env(), call[2], 1, &operation.kept));
    handle.timeline->add(call.env(), std::move(operation));
    return promise;
}

napi_value dispatch(const Call& call) {
    auto& handle = call.handle<ContextHandle>(0);
    const MLGraph& graph = call.handle<GraphHandle>(1).graph;
    handle.timeline->add(
        call.env(), {.run = [context = handle.context, graph, inputs = named_tensors(call, 2, graph.inputs()),
                             outputs = named_tensors(call, 3, graph.outputs())] {
            context.dispatch(graph, inputs, outputs);
        }});
    return nullptr;
}

}  // namespace headrace::node
