#include <algorithm>

#include "doors/webnn/state.h"

namespace headrace::webnn {

void check_owner(const MLTensor::State& tensor, const void* context, std::string_view what) {
    if (tensor.context != context) fail(invalid("{}: the tensor belongs to another context", what));
}

namespace {

bool has(const std::vector<TensorInfo>& declared, const std::string& name) {
    return std::ranges::any_of(declared, [&](const TensorInfo& info) { return info.name == name; });
}

void check_names(const MLGraph& graph, const MLBindings& inputs, const MLBindings& outputs) {
    for (const auto& [name, binding] : inputs)
        if (!has(graph.inputs(), name) && !graph.mayBeGiven(name))
            fail(invalid("dispatch: the graph has no input '{}'", name));
    for (const auto& [name, binding] : outputs)
        if (!has(graph.outputs(), name)) fail(invalid("dispatch: the graph has no output '{}'", name));
}

/// Extents that the graph declares as -1 depend on the inputs.
bool fits(const std::vector<std::int64_t>& shape, const std::vector<std::int64_t>& declared) {
    return std::equal(shape.begin(), shape.end(), declared.begin(), declared.end(),
                      [](std::int64_t given, std::int64_t wanted) { return wanted < 0 || given == wanted; });
}

/// An input or output with what is bound to it.
struct Bound {
    const TensorInfo* info;
    std::string what;         ///< "dispatch: input 'x'"
    MLTensor::State* tensor;  ///< null: the caller's memory
    DType dtype;
    const std::vector<std::int64_t>* shape;
    std::shared_ptr<TensorMemory> held;  ///< of a tensor: a destroy() meanwhile frees it only afterwards
    void* data;

    std::size_t bytes() const {
        std::int64_t elements = 1;
        for (std::int64_t d : *shape) elements *= d;
        return bytes_of(dtype, elements);
    }
};

/// Checks whose the tensor is and that type and shape are the declared ones.
Bound bound_to(const MLBindings& bindings, const TensorInfo& info, std::string_view kind,
               const void* context) {
    const auto it = bindings.find(info.name);
    if (it == bindings.end()) fail(invalid("dispatch: Missing {}: {}", kind, info.name));
    const MLBinding& b = it->second;
    Bound bound{.info = &info,
                .what = fmt::format("dispatch: {} '{}'", kind, info.name),
                .tensor = b.tensor ? b.tensor->state().get() : nullptr,
                .dtype = b.tensor ? b.tensor->dataType() : b.dataType,
                .shape = b.tensor ? &b.tensor->shape() : &b.shape,
                .held = nullptr,
                .data = b.data};
    if (bound.tensor) {
        check_owner(*bound.tensor, context, bound.what);
        bound.tensor->live(bound.what);
    }
    if (bound.dtype != info.dtype)
        fail(invalid("{} is {}, the graph declares {}", bound.what, data_type_name(bound.dtype),
                     data_type_name(info.dtype)));
    if (!fits(*bound.shape, info.shape))
        fail(invalid("{} has shape {}, the graph declares {}", bound.what, str(*bound.shape),
                     str(info.shape)));
    return bound;
}

/// Graphs would compute with another constant afterwards.
void check_written(const Bound& output) {
    if (output.tensor && output.tensor->descriptor.constant)
        fail(invalid("{}: the tensor is constant; create it with createTensor", output.what));
}

/// Shapes that depend on those of the inputs, which the run itself checks by their sizes only.
void check_dynamic_shapes(const MLGraph& graph, std::span<const Bound> inputs,
                          std::span<const Bound> outputs) {
    const auto is_dynamic = [](const Bound& b) { return std::ranges::count(b.info->shape, -1) > 0; };
    if (std::ranges::none_of(outputs, is_dynamic)) return;
    std::vector<std::vector<std::int64_t>> given;
    for (const Bound& input : inputs) given.push_back(*input.shape);
    const auto shapes = graph.outputShapes(given);
    for (std::size_t i = 0; i < outputs.size(); ++i)
        if (*outputs[i].shape != shapes[i])
            fail(invalid("{} has shape {}; for these inputs the graph gives {}", outputs[i].what,
                         str(*outputs[i].shape), str(shapes[i])));
}

/// Keeps the tensors of a dispatch for its duration: inputs against writers, outputs against everybody. All
/// are taken in the order of their addresses, so that no two dispatches wait for each other.
class TensorLocks {
public:
    void add(const Bound& bound, bool writes) {
        if (bound.tensor) wanted_[bound.tensor] |= writes;
    }
    void lock() {
        for (const auto& [tensor, writes] : wanted_) {
            if (writes)
                exclusive_.emplace_back(tensor->content);
            else
                shared_.emplace_back(tensor->content);
        }
    }

private:
    std::map<const MLTensor::State*, bool, std::less<>> wanted_;
    std::vector<std::shared_lock<std::shared_mutex>> shared_;
    std::vector<std::unique_lock<std::shared_mutex>> exclusive_;
};

/// An output whose tensor is an input, too, gets memory of its own while the run reads the old content.
void part_from_inputs(Bound& output, std::span<const Bound> inputs, const BufferPool& pool) {
    const auto is_same = [&](const Bound& input) { return input.tensor == output.tensor; };
    if (!output.tensor || std::ranges::none_of(inputs, is_same)) return;
    output.held = std::move(output.tensor->spare);
    if (!output.held)
        output.held = value_or_throw(TensorMemory::make(pool, output.bytes(), "the new content of a tensor"));
    output.data = output.held->host();
}

/// What was computed elsewhere becomes the tensor's content, unless somebody destroyed it meanwhile. Memory
/// of a device is slow to come by: what the content was in waits for the next dispatch. On the host the pool
/// has it.
void keep_result(const Bound& output) {
    if (!output.tensor) return;
    const std::lock_guard lock(output.tensor->mutex);
    std::shared_ptr<TensorMemory>& memory = output.tensor->memory;
    if (!memory || memory == output.held) return;
    memory.swap(output.tensor->spare);
    memory = output.held;
    if (!memory->is_elsewhere()) output.tensor->spare.reset();
}

}  // namespace

void MLContext::dispatch(const MLGraph& graph, const std::map<std::string, MLTensor>& inputs,
                         const std::map<std::string, MLTensor>& outputs) const {
    for (const auto& [name, output] : outputs)
        for (const auto& [other, input] : inputs)
            if (input.state() == output.state())
                fail(invalid("dispatch: output '{}' overlaps the memory of input '{}'", name, other));
    dispatchBound(graph, MLBindings(inputs.begin(), inputs.end()),
                  MLBindings(outputs.begin(), outputs.end()));
}

void MLContext::dispatchBound(const MLGraph& graph, const MLBindings& inputs,
                              const MLBindings& outputs) const {
    checkLive("dispatch");
    checkGraph("dispatch", graph);
    check_names(graph, inputs, outputs);
    std::vector<Bound> in, out;
    TensorLocks locks;
    for (const TensorInfo& info : graph.inputs()) {
        in.push_back(bound_to(inputs, info, "input", state_.get()));
        locks.add(in.back(), false);
    }
    for (const TensorInfo& info : graph.outputs()) {
        Bound bound = bound_to(outputs, info, "output", state_.get());
        check_written(bound);
        for (const Bound& other : out)
            if (bound.tensor && other.tensor == bound.tensor)
                fail(invalid("{} overlaps the memory of output '{}'", bound.what, other.info->name));
        locks.add(bound, true);
        out.push_back(std::move(bound));
    }
    check_dynamic_shapes(graph, in, out);
    locks.lock();
    std::vector<InputView> reads;
    std::vector<OutputView> writes;
    const auto take_memory = [](Bound& b) {
        if (!b.tensor) return;
        b.held = b.tensor->live(b.what);
        b.data = b.held->host();
    };
    for (Bound& b : in) {
        take_memory(b);
        reads.push_back({b.dtype, *b.shape, b.data, b.held.get()});
    }
    for (Bound& b : out) {
        take_memory(b);
        part_from_inputs(b, in, buffers());
        writes.push_back({b.data, b.bytes(), b.held.get()});
    }
    graph.run(reads, writes);
    for (const Bound& b : out) keep_result(b);
}

}  // namespace headrace::webnn
