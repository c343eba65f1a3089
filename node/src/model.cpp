#include "model.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "headrace/graph_files.h"
#include "headrace/onnx.h"
#include "held_bytes.h"
#include "option.h"
#include "task.h"

namespace headrace::node {

Model::Model(std::shared_ptr<const Graph> graph, Executable executable, std::string device,
             RunOptions options, Declared declared)
    : graph_(std::move(graph)),
      executable_(std::move(executable)),
      device_(std::move(device)),
      options_(options),
      declared_(std::move(declared)) {
    idle_.push_back(std::make_unique<Session>(executable_));
}

std::string_view Model::type_of(const TensorInfo& info) const {
    const auto declared = declared_.find(info.name);
    return declared == declared_.end() ? name_of(info.dtype) : declared->second;
}

std::unique_ptr<Session> Model::take() {
    {
        const std::lock_guard lock(mutex_);
        if (!idle_.empty()) {
            auto session = std::move(idle_.back());
            idle_.pop_back();
            return session;
        }
    }
    return std::make_unique<Session>(executable_);
}

void Model::run(std::span<const InputView> inputs, const Session::MakeOutputs& make_outputs,
                std::function<bool()> should_stop) {
    const auto give_back = [this](Session* session) {
        const std::lock_guard lock(mutex_);
        idle_.emplace_back(session);
    };
    const std::unique_ptr<Session, decltype(give_back)> session(take().release(), give_back);
    RunOptions options = options_;
    options.should_stop = std::move(should_stop);
    session->run(inputs, make_outputs, options);
}

namespace {

std::size_t size_of(DType type, std::span<const std::int64_t> shape) {
    std::int64_t count = 1;
    for (const std::int64_t extent : shape) count *= extent;
    return bytes_of(type, count);
}

struct Source {
    std::string path;
    std::shared_ptr<const std::byte[]> bytes;  ///< in place of a path
    std::size_t size = 0;                      ///< of the bytes
    bool is_onnx = false;
    OnnxOptions onnx;
    std::span<const std::byte> content() const { return {bytes.get(), size}; }
};

constexpr std::string_view kTruth = "bool", kShort = "u16";
bool is_converted(std::string_view type) { return type == kTruth || type == kShort; }

struct Read {
    std::shared_ptr<const Graph> graph;
    Model::Declared declared;
};

Read read_onnx(const Source& source) {
    const auto model =
        source.bytes ? OnnxModel::open(source.content(), source.bytes) : OnnxModel::open(source.path);
    OnnxReading reading = model->read(source.onnx);
    Read result{std::move(reading.graph), {}};
    for (const OnnxValue& input : model->inputs())
        if (input.type && is_converted(*input.type)) result.declared.emplace(input.name, *input.type);
    for (const OnnxOutput& output : reading.outputs) {
        if (output.kind != OnnxOutput::Kind::tensor || output.tensor != output.name)
            throw Exception(Code::unsupported,
                            "output '" + output.name +
                                "' is no tensor; Python's headrace.load gives sequences and "
                                "optionals");
        const auto declared = reading.declared.find(output.tensor);
        if (declared != reading.declared.end() && is_converted(declared->second))
            result.declared.emplace(output.name, declared->second);
    }
    return result;
}

Read read(const Source& source) {
    if (source.is_onnx) return read_onnx(source);
    if (source.bytes) return {webnn::load_graph_bytes(source.content(), source.bytes), {}};
    return {webnn::load_graph_file(source.path), {}};
}

/// Numbers, and names of those that a run decides.
napi_value open_shape(napi_env env, const TensorInfo& info) {
    std::vector<napi_value> extents;
    for (std::size_t i = 0; i < info.shape.size(); ++i)
        extents.push_back(info.shape[i] >= 0 ? number(env, static_cast<double>(info.shape[i]))
                                             : text(env, info.dimension_names[i]));
    return list(env, extents);
}

napi_value tensor_list(napi_env env, const std::vector<TensorInfo>& infos, const Model& model) {
    std::vector<napi_value> items;
    for (const TensorInfo& info : infos) {
        items.push_back(Record(env)
                            .add("name", info.name)
                            .add("type", model.type_of(info))
                            .add("shape", open_shape(env, info)));
    }
    return list(env, items);
}

/// Numbers, and names of extents that stay open.
OnnxShape to_onnx_shape(napi_env env, napi_value value) {
    OnnxShape shape;
    for (const napi_value item : to_list(env, value)) {
        napi_valuetype type{};
        check(napi_typeof(env, item, &type));
        if (type == napi_string)
            shape.emplace_back(to_text(env, item));
        else
            shape.emplace_back(to_integer(env, item));
    }
    return shape;
}

class OpenModel : public Task {
public:
    OpenModel(Source source, LoadOptions options, RunOptions limits)
        : source_(std::move(source)), options_(std::move(options)), limits_(limits) {}
    void run() override {
        const CompileOptions options = options_.compiling();
        auto [graph, declared] = read(source_);
        Executable executable = compile(*graph, options);
        // Where weights are quantised, nothing shall hold the others.
        if (options.weights != WeightFormat::as_given) graph.reset();
        model_ = std::make_shared<Model>(std::move(graph), std::move(executable), options.device, limits_,
                                         std::move(declared));
        source_.bytes.reset();
    }
    napi_value result(napi_env env) override {
        const Executable& executable = model_->executable();
        return Record(env)
            .add("inputs", tensor_list(env, model_->inputs(), *model_))
            .add("outputs", tensor_list(env, model_->outputs(), *model_))
            .add("device", model_->device())
            .add("hasStates", !executable.states().empty())
            .add("handle", external(env, new ModelHandle(model_), held_bytes(executable)));
    }

private:
    Source source_;
    const LoadOptions options_;
    const RunOptions limits_;
    std::shared_ptr<Model> model_;
};

/// Copies of the inputs, which JavaScript may change, detach or transfer meanwhile.
struct RunInput {
    std::vector<std::int64_t> shape;
    Memory content;
};

template <class To, class From>
Memory converted(const std::byte* from, std::size_t count) {
    Memory result = memory_of(count * sizeof(To));
    for (std::size_t i = 0; i < count; ++i) {
        From value;
        std::memcpy(&value, from + i * sizeof(From), sizeof(From));
        const To to = static_cast<To>(value);
        std::memcpy(result.get() + i * sizeof(To), &to, sizeof(To));
    }
    return result;
}

/// Runs read as many bytes as the shape says.
void check_size(std::size_t given, std::string_view type, DType dtype, std::span<const std::int64_t> shape) {
    double count = 1;  // exact as far as memory goes
    for (const std::int64_t extent : shape) count *= static_cast<double>(extent);
    const double most = static_cast<double>(given) * 2 + 1;  // of 4 bits each
    const auto wanted = [&](std::int64_t elements) {
        return type == kShort ? static_cast<std::size_t>(elements) * 2 : bytes_of(dtype, elements);
    };
    if (count < 0 || count > most || given != wanted(static_cast<std::int64_t>(count)))
        throw Exception(Code::invalid_argument,
                        "run: " + std::to_string(given) + " bytes are given for another number of elements");
}

RunInput input_of(napi_env env, std::string_view type, DType dtype, napi_value shape, napi_value bytes) {
    RunInput input{to_integers(env, shape), nullptr};
    const auto from = to_bytes(env, bytes);
    check_size(from.size(), type, dtype, input.shape);
    if (type == kShort) {
        input.content = converted<std::uint32_t, std::uint16_t>(from.data(), from.size() / 2);
        return input;
    }
    input.content = memory_of(from.size());
    if (type == kTruth)  // one byte of any value is a truth to JavaScript, 0 or 1 to kernels
        std::ranges::transform(from, input.content.get(),
                               [](std::byte b) { return std::byte{b != std::byte{}}; });
    else if (!from.empty())
        std::memcpy(input.content.get(), from.data(), from.size());
    return input;
}

/// Memory of a run as an ArrayBuffer: in place where it is large, as copying costs more there.
napi_value buffer_of(napi_env env, Memory memory, std::size_t bytes) {
    constexpr std::size_t kInPlace = 64 * 1024;
    napi_value buffer;
    if (bytes >= kInPlace) {
        const auto release = [](napi_env, void* data, void*) { std::free(data); };
        if (napi_create_external_arraybuffer(env, memory.get(), bytes, release, nullptr, &buffer) ==
            napi_ok) {
            memory.release();
            return buffer;
        }
    }
    void* data = nullptr;
    check(napi_create_arraybuffer(env, bytes, &data, &buffer));
    if (bytes) std::memcpy(data, memory.get(), bytes);
    return buffer;
}

class RunModel : public Task {
public:
    /// stop: null where nobody may end the run.
    RunModel(std::shared_ptr<Model> model, std::vector<RunInput> inputs,
             std::shared_ptr<const std::atomic<bool>> stop)
        : model_(std::move(model)), inputs_(std::move(inputs)), stop_(std::move(stop)) {}
    void run() override {
        std::vector<InputView> views;
        const auto& declared = model_->inputs();
        for (std::size_t i = 0; i < inputs_.size(); ++i)
            views.push_back({declared[i].dtype, inputs_[i].shape, inputs_[i].content.get()});
        const auto& infos = model_->outputs();
        const auto make_outputs = [&](const std::vector<std::vector<std::int64_t>>& shapes) {
            std::vector<OutputView> outputs;
            for (std::size_t i = 0; i < shapes.size(); ++i) {
                const std::size_t bytes = size_of(infos[i].dtype, shapes[i]);
                outputs_.push_back({shapes[i], bytes, memory_of(bytes)});
                outputs.push_back({outputs_.back().content.get(), bytes});
            }
            return outputs;
        };
        const auto is_wanted = [this] { return stop_->load(std::memory_order_relaxed); };
        model_->run(views, make_outputs, stop_ ? std::function<bool()>(is_wanted) : nullptr);
        inputs_.clear();
        for (std::size_t i = 0; i < outputs_.size(); ++i) {
            Output& output = outputs_[i];
            if (model_->type_of(infos[i]) != kShort) continue;
            output.content = converted<std::uint16_t, std::uint32_t>(output.content.get(), output.bytes / 4);
            output.bytes /= 2;
        }
    }
    napi_value result(napi_env env) override {
        std::vector<napi_value> items;
        for (Output& output : outputs_) {
            items.push_back(Record(env)
                                .add("dims", shape_list(env, output.shape))
                                .add("buffer", buffer_of(env, std::move(output.content), output.bytes)));
        }
        return list(env, items);
    }

private:
    struct Output {
        std::vector<std::int64_t> shape;
        std::size_t bytes;
        Memory content;
    };
    const std::shared_ptr<Model> model_;
    std::vector<RunInput> inputs_;
    const std::shared_ptr<const std::atomic<bool>> stop_;
    std::vector<Output> outputs_;
};

class SaveModel : public Task {
public:
    SaveModel(std::shared_ptr<Model> model, std::string path)
        : model_(std::move(model)), path_(std::move(path)) {}
    void run() override { webnn::save_graph_file(model_->graph(), path_); }
    napi_value result(napi_env env) override { return undefined(env); }

private:
    const std::shared_ptr<Model> model_;
    const std::string path_;
};

class ListDevices : public Task {
public:
    void run() override { devices_ = devices(); }
    napi_value result(napi_env env) override {
        std::vector<napi_value> items;
        for (const DeviceInfo& device : devices_) {
            items.push_back(Record(env)
                                .add("name", device.name)
                                .add("description", device.description)
                                .add("type", device.type)
                                .add("memoryFree", device.memory_free)
                                .add("memoryTotal", device.memory_total));
        }
        return list(env, items);
    }

private:
    std::vector<DeviceInfo> devices_;
};

const std::shared_ptr<Model>& opened(const Call& call) {
    const auto& model = call.handle<ModelHandle>(0).model;
    if (!model) throw Exception(Code::invalid_state, "the model is disposed of; load it again");
    return model;
}

}  // namespace

napi_value open_model(const Call& call) {
    const napi_env env = call.env();
    Source source;
    napi_valuetype type{};
    check(napi_typeof(env, call[0], &type));
    if (type == napi_string) {
        source.path = call.text(0);
    } else {
        ModelBytes given = to_model_bytes(call, 0);
        source.size = given.size;
        source.bytes = std::move(given.memory);
    }
    source.is_onnx = to_boolean(env, call[1]);
    const auto dimensions = to_list(env, call[3]);
    for (std::size_t i = 0; i + 1 < dimensions.size(); i += 2)
        source.onnx.dimensions.emplace(to_text(env, dimensions[i]), to_integer(env, dimensions[i + 1]));
    const auto shapes = to_list(env, call[4]);
    for (std::size_t i = 0; i + 1 < shapes.size(); i += 2)
        source.onnx.forms.emplace(to_text(env, shapes[i]), to_onnx_shape(env, shapes[i + 1]));
    RunOptions limits;
    if (const auto most = member(env, call[2], "mostIterations"))
        limits.most_iterations = to_integer(env, *most);
    return Task::start(env,
                       std::make_unique<OpenModel>(std::move(source), to_load_options(env, call[2]), limits));
}

napi_value run_model(const Call& call) {
    const napi_env env = call.env();
    const auto& model = opened(call);
    const auto given = to_list(env, call[1]);
    std::vector<RunInput> inputs;
    for (std::size_t i = 0; i < model->inputs().size(); ++i)
        inputs.push_back(input_of(env, model->type_of(model->inputs()[i]), model->inputs()[i].dtype,
                                  given.at(2 * i), given.at(2 * i + 1)));
    napi_valuetype type{};
    check(napi_typeof(env, call[2], &type));
    std::shared_ptr<const std::atomic<bool>> stop;
    if (type != napi_undefined) stop = call.handle<StopHandle>(2).is_wanted;
    return Task::start(env, std::make_unique<RunModel>(model, std::move(inputs), std::move(stop)));
}

napi_value new_stop(const Call& call) { return external(call.env(), new StopHandle); }

napi_value stop_runs(const Call& call) {
    call.handle<StopHandle>(0).is_wanted->store(true, std::memory_order_relaxed);
    return nullptr;
}

napi_value save_model(const Call& call) {
    return Task::start(call.env(), std::make_unique<SaveModel>(opened(call), call.text(1)));
}

napi_value close_model(const Call& call) {
    auto& handle = call.handle<ModelHandle>(0);
    handle.model.reset();
    hold(call.env(), handle, 0);
    return nullptr;
}

napi_value list_devices(const Call& call) { return Task::start(call.env(), std::make_unique<ListDevices>()); }

}  // namespace headrace::node
