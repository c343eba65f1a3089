#include "doors/wasi_nn/graph_context.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "doors/wasi_nn/caught.h"
#include "doors/wasi_nn/metadata_json.h"

namespace headrace::wasi_nn {
namespace {

constexpr std::uint32_t kMostDimensions = 8;

/// What a guest's tensor of a type may be fed to: interfaces have few types, and so the signed ones stand for
/// the unsigned ones of their size, and u8 for all of one byte. ONNX's bf16 is read as f32.
bool may_feed(DType given, DType wanted) {
    switch (wanted) {
        case DType::i8:
        case DType::boolean: return given == DType::u8;
        case DType::u32: return given == DType::i32;
        case DType::u64: return given == DType::i64;
        case DType::f32: return given == DType::f32 || given == DType::bf16;
        default: return given == wanted;
    }
}

std::string text_of(std::span<const std::int64_t> shape) {
    std::string text = "[";
    for (const std::int64_t extent : shape)
        text += fmt::format("{}{}", text.size() > 1 ? ", " : "", extent < 0 ? "?" : std::to_string(extent));
    return text + "]";
}

std::string text_of(const TensorInfo& info) {
    return fmt::format("'{}' is {} {}", info.name, name_of(info.dtype), text_of(info.shape));
}

/// Bytes of a tensor; nothing beyond what can be addressed.
std::optional<std::size_t> bytes_of_shape(DType type, std::span<const std::int64_t> shape) {
    std::uint64_t count = 1;
    for (const std::int64_t extent : shape) {
        const auto factor = static_cast<std::uint64_t>(extent);
        if (factor && count > (std::uint64_t{1} << 56) / factor) return std::nullopt;
        count *= factor;
    }
    return bytes_of(type, static_cast<std::int64_t>(count));
}

/// Copies a tensor's elements to an input of a type that it may feed.
void copy_elements(const GuestTensor& tensor, DType wanted, std::byte* to, std::size_t bytes) {
    if (wanted == DType::boolean) {  // a guest's true may be any byte but 0
        std::transform(tensor.data, tensor.data + bytes, to,
                       [](std::uint8_t byte) { return std::byte{byte != 0}; });
    } else if (*tensor.type == DType::bf16 && wanted == DType::f32) {
        for (std::size_t i = 0; i < bytes / 4; ++i) {
            std::memset(to + 4 * i, 0, 2);
            std::memcpy(to + 4 * i + 2, tensor.data + 2 * i, 2);
        }
    } else if (bytes) {
        std::memcpy(to, tensor.data, bytes);
    }
}

}  // namespace

GraphContext::GraphContext(std::shared_ptr<LoadedGraph> graph, std::chrono::milliseconds longest_run)
    : graph_(std::move(graph)),
      longest_run_(longest_run),
      session_(graph_->executable),
      inputs_(graph_->inputs.size()),
      outputs_(graph_->outputs.size()) {}

/// Memory that is there stays when it suffices.
Status GraphContext::Tensor::become(const LoadedGraph& graph, const TensorInfo& info,
                                    std::vector<std::int64_t> made) {
    const auto needed = bytes_of_shape(info.dtype, made);
    if (!needed)
        return failure(Code::out_of_memory, "{}: no memory has room for the shape {}", text_of(info),
                       text_of(made));
    is_set = false;
    if (!memory || memory.bytes() < *needed) {
        memory.release();
        HR_ASSIGN(memory,
                  PooledBuffer::take(graph.executable.buffers(), *needed, fmt::format("'{}'", info.name)));
    }
    bytes = *needed;
    shape = std::move(made);
    return success();
}

/// The tensor's shape, when it suits the input. A single number may have the dimensions [1] or none.
Result<std::vector<std::int64_t>> GraphContext::shape_of(std::uint32_t index,
                                                         const GuestTensor& tensor) const {
    const TensorInfo& info = graph_->inputs[index];
    if (!tensor.type)
        return invalid("input {}, {}: {} is no type of this interface", index, text_of(info),
                       tensor.type_number);
    if (!may_feed(*tensor.type, info.dtype))
        return invalid("input {}, {}: the tensor is {}", index, text_of(info), name_of(*tensor.type));
    if (tensor.rank > kMostDimensions)
        return invalid("input {}, {}: the tensor has {} dimensions, and {} are the most", index,
                       text_of(info), tensor.rank, kMostDimensions);
    std::vector<std::int64_t> shape(tensor.rank);
    for (std::uint32_t i = 0; i < tensor.rank; ++i) shape[i] = tensor.extent(i);
    if (info.shape.empty() && shape == std::vector<std::int64_t>{1}) shape.clear();
    const auto suits = [](std::int64_t given, std::int64_t declared) {
        return declared < 0 || given == declared;
    };
    if (!std::ranges::equal(shape, info.shape, suits))
        return invalid("input {}, {}: the tensor's dimensions are {}", index, text_of(info), text_of(shape));
    return shape;
}

Status GraphContext::set_input(std::uint32_t index, const GuestTensor& tensor) {
    if (index >= graph_->inputs.size())
        return invalid("there is no input {}: the graph has {}", index, graph_->inputs.size());
    const TensorInfo& info = graph_->inputs[index];
    HR_ASSIGN(std::vector<std::int64_t> shape, shape_of(index, tensor));
    const auto bytes = bytes_of_shape(*tensor.type, shape);
    if (tensor.size && bytes != *tensor.size)
        return invalid("input {}, {}: the tensor's dimensions are {}, and it has {} bytes", index,
                       text_of(info), text_of(shape), *tensor.size);
    const std::lock_guard lock(mutex_);
    Tensor& input = inputs_[index];
    is_computed_ = false;
    HR_TRY(input.become(*graph_, info, std::move(shape)));
    copy_elements(tensor, info.dtype, input.memory.data(), input.bytes);
    input.is_set = true;
    return success();
}

Status GraphContext::compute() {
    const std::lock_guard lock(mutex_);
    if (graph_->is_unloaded) return failure(Code::not_found, "the graph was unloaded");
    is_computed_ = false;
    for (std::size_t i = 0; i < inputs_.size(); ++i)
        if (!inputs_[i].is_set)
            return failure(Code::invalid_state, "input {}, {}, was not set", i, text_of(graph_->inputs[i]));
    is_cancelled_ = false;
    HR_TRY(run());
    ++graph_->runs;
    is_computed_ = true;
    return success();
}

Status GraphContext::run() {
    using Clock = std::chrono::steady_clock;
    const bool is_timed = longest_run_.count() > 0;
    const Clock::time_point end = is_timed ? Clock::now() + longest_run_ : Clock::time_point::max();
    bool is_late = false;
    const RunOptions options{.should_stop = [&] {
        is_late = is_timed && Clock::now() > end;
        return is_late || is_cancelled_ || graph_->is_unloaded;
    }};
    std::vector<InputView> views;
    for (std::size_t i = 0; i < inputs_.size(); ++i)
        views.push_back({graph_->inputs[i].dtype, inputs_[i].shape, inputs_[i].memory.data()});
    const auto make_outputs = [&](const std::vector<std::vector<std::int64_t>>& shapes) {
        std::vector<OutputView> made;
        for (std::size_t i = 0; i < shapes.size(); ++i) {
            value_or_throw(outputs_[i].become(*graph_, graph_->outputs[i], shapes[i]));
            made.push_back({outputs_[i].memory.data(), outputs_[i].bytes});
        }
        return made;
    };
    Status status = caught([&] {
        session_.run(views, make_outputs, options);
        return std::monostate();
    });
    if (!status.ok() && is_late)
        return failure(Code::timed_out, "the graph ran longer than {} ms, the host's max_compute_ms",
                       longest_run_.count());
    return status;
}

Result<int> GraphContext::read_output(std::uint32_t index, const OutputReader& read) {
    const std::lock_guard lock(mutex_);
    if (index == kDescription) return read(description(), OutputForm::json);
    if (index >= outputs_.size())
        return invalid("there is no output {}: the graph has {}", index, outputs_.size());
    if (!is_computed_) return failure(Code::invalid_state, "nothing was computed since the last input");
    const Tensor& output = outputs_[index];
    return read({reinterpret_cast<const char*>(output.memory.data()), output.bytes}, OutputForm::tensor);
}

Result<ContextInfo> GraphContext::info() {
    const std::lock_guard lock(mutex_);
    ContextInfo told{.has_tensors = true, .inputs = graph_->inputs, .outputs = graph_->outputs};
    if (is_computed_)
        for (std::size_t i = 0; i < outputs_.size(); ++i) told.outputs[i].shape = outputs_[i].shape;
    return told;
}

/// Most often the shapes are those of the last time.
const std::string& GraphContext::description() {
    std::vector<std::vector<std::int64_t>> shapes;
    if (is_computed_)
        for (const Tensor& output : outputs_) shapes.push_back(output.shape);
    if (description_.empty() || shapes != described_) {
        description_ = graph_description_json(graph_->inputs, graph_->outputs, shapes);
        described_ = std::move(shapes);
    }
    return description_;
}

}  // namespace headrace::wasi_nn
