#include <atomic>
#include <cstring>

#include "doors/webnn/state.h"
#include "headrace/option_names.h"

namespace headrace::webnn {

struct MLContext::State {
    MLContextOptions options;
    CompileOptions compile;
    bool accelerated = false;
    std::atomic<bool> destroyed = false;
};

namespace {

WeightFormat weight_format(const MLContextOptions& options) {
    const std::string& name = options.weights;
    if (name.empty())
        return options.powerPreference == "low-power" ? WeightFormat::q8_0 : WeightFormat::as_given;
    const auto format = find_weight_format(name);
    if (!format) fail(invalid("weights '{}' is none of as-given, q8_0, q4_0", name));
    return *format;
}

Precision to_precision(const std::string& name) {
    const auto precision = find_precision(name);
    if (!precision) fail(invalid("precision '{}' is none of exact, fast", name));
    return *precision;
}

void check_device_type(const std::string& name) {
    for (const char* known : {"auto", "cpu", "gpu", "npu"})
        if (name == known) return;
    fail(invalid("device type '{}' is none of auto, cpu, gpu, npu; a device by its name is for 'device'",
                 name));
}

void check_size(const MLTensor::State& state, std::size_t bytes, std::size_t given, std::string_view what) {
    if (given != bytes)
        fail(invalid("{}: Shape mismatch: {} bytes given, the tensor {}{} has {}", what, given,
                     data_type_name(state.descriptor.dataType), str(state.descriptor.shape), bytes));
}

}  // namespace

CompileOptions compileOptions(const MLContextOptions& options) {
    check_device_type(options.deviceType);
    if (options.powerPreference != "default" && options.powerPreference != "high-performance" &&
        options.powerPreference != "low-power")
        fail(invalid("power preference '{}' is none of default, high-performance, low-power",
                     options.powerPreference));
    if (options.threads < 0)
        fail(invalid("threads is {}; it must be 0 (the default) or more", options.threads));
    CompileOptions result;
    result.threads = options.threads;
    result.host_timeout_ms = options.hostTimeoutMs;
    result.weights = weight_format(options);
    // Those who ask for low power alone get results that are as good as f32's.
    result.round_activations = !options.weights.empty();
    result.packed_cache = options.packedCache;
    result.precision = to_precision(options.precision);
    const bool accelerated = options.accelerated && options.deviceType != "cpu";
    result.device = !options.device.empty() ? options.device : accelerated ? "auto" : "cpu";
    const Device device =
        value_or_throw(find_device(result.device, std::chrono::milliseconds(options.hostTimeoutMs)));
    if (device.is_cpu)
        result.device = "cpu";
    else if (result.device == "auto")
        result.device = device.name;  // who asks for the device is told which
    return result;
}

MLContext::MLContext(const MLContextOptions& options) {
    auto state = std::make_shared<State>();
    state->options = options;
    state->compile = webnn::compileOptions(options);
    state->compile.buffers = std::make_shared<BufferPool>();
    state->accelerated = state->compile.device != "cpu";
    state_ = std::move(state);
}

bool MLContext::accelerated() const { return state_->accelerated; }
const std::string& MLContext::powerPreference() const { return state_->options.powerPreference; }
const std::string& MLContext::device() const { return state_->compile.device; }
const MLOpSupportLimits& MLContext::opSupportLimits() const { return support_limits(); }
BufferPool& MLContext::buffers() const { return *state_->compile.buffers; }
const CompileOptions& MLContext::compileOptions() const { return state_->compile; }

void MLContext::checkGraph(std::string_view call, const MLGraph& graph) const {
    const void* owner = graph.state()->context;
    if (owner && owner != state_.get()) fail(invalid("{}: the graph belongs to another context", call));
}

void MLContext::destroy() const { state_->destroyed = true; }

void MLContext::checkLive(std::string_view call) const {
    if (state_->destroyed) fail(failure(Code::invalid_state, "{}: the context has been destroyed", call));
}

MLTensor MLContext::createConstantTensor(const MLTensorDescriptor& descriptor, const void* data,
                                         std::size_t bytes) const {
    MLTensor tensor =
        createTensor({.dataType = descriptor.dataType, .shape = descriptor.shape, .constant = true});
    check_size(*tensor.state(), tensor.bytes(), bytes, "create_constant_tensor");
    value_or_throw(tensor.state()->memory->write(data));
    return tensor;
}

MLTensor MLContext::createTensor(const MLTensorDescriptor& descriptor) const {
    checkLive("create_tensor");
    MLOperandDescriptor shape{descriptor.dataType, {descriptor.shape.begin(), descriptor.shape.end()}};
    const TensorType type = to_type(shape, "create_tensor");
    value_or_throw(type.check());
    auto state = std::make_shared<MLTensor::State>();
    state->descriptor = descriptor;
    state->context = state_.get();
    state->memory = value_or_throw(TensorMemory::make(*state_->compile.buffers, type.bytes(), "a tensor"));
    std::memset(state->memory->host(), 0, state->memory->bytes());
    return MLTensor(std::move(state));
}

void MLContext::readTensor(const MLTensor& tensor, void* data, std::size_t bytes) const {
    checkLive("read_tensor");
    check_owner(*tensor.state(), state_.get(), "read_tensor");
    tensor.read(data, bytes);
}

void MLTensor::read(void* data, std::size_t bytes) const {
    const std::shared_lock lock(state_->content);
    const auto memory = state_->live("read_tensor");
    if (!state_->descriptor.readable)
        fail(failure(Code::invalid_state,
                     "read_tensor: the tensor is not readable; create it with readable=True"));
    check_size(*state_, memory->bytes(), bytes, "read_tensor");
    value_or_throw(memory->read(data));
}

void MLContext::writeTensor(const MLTensor& tensor, const void* data, std::size_t bytes) const {
    checkLive("write_tensor");
    const MLTensor::State& state = *tensor.state();
    check_owner(state, state_.get(), "write_tensor");
    const std::lock_guard lock(state.content);
    const auto memory = state.live("write_tensor");
    if (!state.descriptor.writable)
        fail(failure(Code::invalid_state,
                     "write_tensor: the tensor is not writable; create it with writable=True"));
    check_size(state, memory->bytes(), bytes, "write_tensor");
    value_or_throw(memory->write(data));
}

DType MLTensor::dataType() const { return state_->descriptor.dataType; }
const std::vector<std::int64_t>& MLTensor::shape() const { return state_->descriptor.shape; }
bool MLTensor::readable() const { return state_->descriptor.readable; }
bool MLTensor::writable() const { return state_->descriptor.writable; }
bool MLTensor::constant() const { return state_->descriptor.constant; }
bool MLTensor::exportableToGPU() const { return state_->descriptor.exportableToGPU; }
std::size_t MLTensor::bytes() const {
    std::int64_t n = 1;
    for (std::int64_t d : shape()) n *= d;
    return bytes_of(dataType(), n);
}
bool MLTensor::destroyed() const {
    const std::lock_guard lock(state_->mutex);
    return !state_->memory;
}

void MLTensor::destroy() {
    const std::lock_guard lock(state_->mutex);
    if (!state_->memory) fail(failure(Code::invalid_state, "destroy: the tensor is already destroyed"));
    state_->memory.reset();
    state_->spare.reset();
}

}  // namespace headrace::webnn
