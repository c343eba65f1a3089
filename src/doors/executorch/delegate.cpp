/// ExecuTorch's delegate "GgmlBackend": loads the graphs that python/executorch_ggml made and runs them.
/// A library of its own, because it links ExecuTorch; it registers itself when it is loaded.
#include <executorch/runtime/backend/interface.h>
#include <executorch/runtime/core/error.h>
#include <executorch/runtime/core/evalue.h>
#include <executorch/runtime/core/event_tracer_hooks_delegate.h>
#include <executorch/runtime/core/exec_aten/util/tensor_util.h>
#include <executorch/runtime/platform/log.h>
#include <executorch/runtime/platform/platform.h>

#include <bit>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "doors/executorch/part.h"
#include "doors/executorch/program_identity.h"
#include "doors/executorch/settings.h"
#include "headrace/graph_writer.h"

namespace headrace::executorch_door {
namespace {

namespace et = executorch::runtime;
using executorch::aten::ScalarType;
using executorch::aten::Tensor;

std::optional<DType> dtype_of(ScalarType type) {
    switch (type) {
        case ScalarType::Float: return DType::f32;
        case ScalarType::Half: return DType::f16;
        case ScalarType::BFloat16: return DType::bf16;
        case ScalarType::Double: return DType::f64;
        case ScalarType::Char: return DType::i8;
        case ScalarType::Byte: return DType::u8;
        case ScalarType::Short: return DType::i16;
        case ScalarType::Int: return DType::i32;
        case ScalarType::Long: return DType::i64;
        case ScalarType::Bool: return DType::boolean;
        default: return std::nullopt;
    }
}

et::Error error_at_load(const Exception& e) {
    switch (e.code()) {
        case Code::out_of_memory: return et::Error::MemoryAllocationFailed;
        case Code::invalid_argument: return et::Error::InvalidProgram;
        case Code::unsupported: return et::Error::DelegateInvalidCompatibility;
        case Code::io: return et::Error::InvalidExternalData;
        default: return et::Error::Internal;
    }
}

et::Error error_of_run(const Exception& e) {
    switch (e.code()) {
        case Code::out_of_memory: return et::Error::MemoryAllocationFailed;
        case Code::invalid_argument: return et::Error::InvalidArgument;
        case Code::unsupported: return et::Error::NotSupported;
        default: return et::Error::Internal;
    }
}

/// Messages quote names from damaged programs, and Python, which may print the log, ends the process over
/// bytes that are not UTF-8.
std::string printable(std::string message) {
    for (char& c : message)
        if (static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) > 0x7E) c = '?';
    return message;
}

/// Calls f; what it throws becomes one line in the log and an error code.
template <class F>
et::Error guarded(const char* doing, et::Error (*code_of)(const Exception&), F&& f) {
    try {
        return f();
    } catch (const Exception& e) {
        ET_LOG(Error, "GgmlBackend: %s: %s", doing, printable(e.what()).c_str());
        return code_of(e);
    } catch (const std::bad_alloc&) {
        ET_LOG(Error, "GgmlBackend: %s: out of memory", doing);
        return et::Error::MemoryAllocationFailed;
    } catch (const std::exception& e) {
        ET_LOG(Error, "GgmlBackend: %s: %s", doing, printable(e.what()).c_str());
        return et::Error::Internal;
    }
}

#ifdef HEADRACE_PORTABLE
/// ExecuTorch's package has GNU's C++ library, whose string_view begins with the size; ours begins with the
/// pointer. The result is for a call of ExecuTorch's and nothing else.
std::string_view as_passed(std::string_view text) {
    struct {
        std::size_t size;
        const char* data;
    } const theirs{text.size(), text.data()};
    return std::bit_cast<std::string_view>(theirs);
}
#else
std::string_view as_passed(std::string_view text) { return text; }
#endif

/// Weights of the program, which stay where ExecuTorch has them for as long as the graph lives.
NamedWeight find_weight(const et::NamedDataMap* map, const std::string& key) {
    if (!map) throw Exception(Code::io, "the program brings no weights");
    auto data = map->get_data(as_passed(key));
    if (!data.ok()) throw Exception(Code::io, "the program has no weights named '" + key + "'");
    auto buffer = std::make_shared<et::FreeableBuffer>(std::move(data.get()));
    const auto* first = static_cast<const std::byte*>(buffer->data());
    return {{first, buffer->size()}, std::move(buffer)};
}

/// "in3" is argument 3.
std::optional<std::size_t> argument_of(const std::string& name) {
    if (name.size() < 3 || name.size() > 8 || name.compare(0, 2, "in") != 0) return std::nullopt;
    std::size_t place = 0;
    for (char c : name.substr(2)) {
        if (c < '0' || c > '9') return std::nullopt;
        place = place * 10 + static_cast<std::size_t>(c - '0');
    }
    return place;
}

/// A tensor's extents in the order of its memory, in which the graph has its inputs and outputs: for most
/// that is the order of its dimensions.
void sizes_in_memory(const Tensor& tensor, std::vector<std::int64_t>& sizes) {
    sizes.clear();
    for (const auto dim : tensor.dim_order()) sizes.push_back(tensor.size(dim));
}

et::Error bind_inputs(Part& part, et::Span<et::EValue*> args) {
    if (args.size() < part.outputs.size()) {
        ET_LOG(Error, "GgmlBackend: called with %zu arguments, the graph makes %zu results", args.size(),
               part.outputs.size());
        return et::Error::InvalidArgument;
    }
    const std::size_t inputs = args.size() - part.outputs.size();
    part.shapes.resize(part.inputs.size());
    part.in.clear();
    for (std::size_t i = 0; i < part.inputs.size(); ++i) {
        const std::size_t place = part.arguments[i];
        // Results must be none of the inputs, whose memory may be a part of the file that cannot be written.
        if (place >= inputs) {
            ET_LOG(Error, "GgmlBackend: the graph takes argument %zu, of %zu that are no results", place,
                   inputs);
            return et::Error::InvalidArgument;
        }
        if (!args[place]->isTensor()) {
            ET_LOG(Error, "GgmlBackend: argument %zu is no tensor", place);
            return et::Error::InvalidArgument;
        }
        const Tensor& tensor = args[place]->toTensor();
        const auto dtype = dtype_of(tensor.scalar_type());
        if (dtype != part.inputs[i].dtype) {
            ET_LOG(Error, "GgmlBackend: argument %zu has scalar type %d, the graph takes %s", place,
                   static_cast<int>(tensor.scalar_type()),
                   std::string(name_of(part.inputs[i].dtype)).c_str());
            return et::Error::InvalidArgument;
        }
        sizes_in_memory(tensor, part.shapes[i]);
        part.in.push_back({*dtype, part.shapes[i], tensor.const_data_ptr()});
    }
    return et::Error::Ok;
}

/// Outputs are the last arguments, which bind_inputs has counted; their sizes follow the inputs'.
et::Error bind_outputs(Part& part, et::Span<et::EValue*> args) {
    const auto shapes = part.session.output_shapes(part.shapes);
    part.out.clear();
    for (std::size_t i = 0; i < part.outputs.size(); ++i) {
        et::EValue& value = *args[args.size() - part.outputs.size() + i];
        if (!value.isTensor()) {
            ET_LOG(Error, "GgmlBackend: result %zu is no tensor", i);
            return et::Error::InvalidArgument;
        }
        Tensor& tensor = value.toTensor();
        if (dtype_of(tensor.scalar_type()) != part.outputs[i].dtype) {
            ET_LOG(Error, "GgmlBackend: result %zu has scalar type %d, the graph makes %s", i,
                   static_cast<int>(tensor.scalar_type()),
                   std::string(name_of(part.outputs[i].dtype)).c_str());
            return et::Error::InvalidArgument;
        }
        std::vector<executorch::aten::SizesType> sizes(shapes[i].size());
        const auto order = tensor.dim_order();
        if (order.size() != sizes.size()) {
            ET_LOG(Error, "GgmlBackend: result %zu has %zu dimensions, the graph makes %zu", i, order.size(),
                   sizes.size());
            return et::Error::InvalidArgument;
        }
        for (std::size_t d = 0; d < sizes.size(); ++d)
            sizes[order[d]] = static_cast<executorch::aten::SizesType>(shapes[i][d]);
        const et::Error error = et::resize_tensor(tensor, {sizes.data(), sizes.size()});
        if (error != et::Error::Ok) {
            ET_LOG(Error, "GgmlBackend: result %zu cannot take the size that its inputs give it", i);
            return error;
        }
        part.out.push_back({tensor.mutable_data_ptr(), tensor.nbytes()});
    }
    return et::Error::Ok;
}

/// Runs node by node and tells the tracer when each began and ended.
void run_traced(Part& part, et::EventTracer* tracer) {
    const et_timestamp_t begin = et::pal_current_ticks();
    part.session.run(part.in, part.out, {.profile = true});
    const et_tick_ratio_t ratio = et::pal_ticks_to_ns_multiplier();
    const auto ticks = [&](double us) {
        return static_cast<et_timestamp_t>(us * 1000 * static_cast<double>(ratio.denominator) /
                                           static_cast<double>(ratio.numerator));
    };
    // Labels are the names of the exported program's nodes, to which the program maps them.
    for (const NodeStats& node : part.session.stats().nodes)
        et::event_tracer_log_profiling_delegate(
            tracer, (node.label.empty() ? node.title : node.label).c_str(), et::kUnsetDelegateDebugIntId,
            begin + ticks(node.start_us), begin + ticks(node.start_us + node.duration_us));
}

std::unique_ptr<Part> load(et::BackendInitContext& context, et::FreeableBuffer& processed,
                           const CompileOptions& options) {
    // Small, since weights lie outside; the few constants in it are used where the copy is.
    const auto* first = static_cast<const std::byte*>(processed.data());
    const auto bytes = std::make_shared<std::vector<std::byte>>(first, first + processed.size());
    processed.Free();
    const et::NamedDataMap* map = context.get_named_data_map();
    const auto graph =
        graph_from_memory(*bytes, bytes, [&](const std::string& key) { return find_weight(map, key); });
    const char* method = context.get_method_name();
    auto part = join_program(program_identity(map), method ? method : "", compile(*graph, options));
    for (const TensorInfo& input : part->inputs) {
        const auto place = argument_of(input.name);
        if (!place) {
            leave_program(*part);
            throw Exception(Code::invalid_argument, "input '" + input.name + "' names no argument");
        }
        part->arguments.push_back(*place);
    }
    return part;
}

class GgmlBackend final : public et::BackendInterface {
public:
    bool is_available() const override { return true; }

    et::Result<et::DelegateHandle*> init(et::BackendInitContext& context, et::FreeableBuffer* processed,
                                         et::ArrayRef<et::CompileSpec>) const override {
        Settings settings = current_settings();
        if (const et::Error error = settings.set(context.runtime_specs()); error != et::Error::Ok)
            return error;
        std::unique_ptr<Part> part;
        const et::Error error = guarded("the program cannot be loaded", error_at_load, [&] {
            part = load(context, *processed, settings.compile_options());
            return et::Error::Ok;
        });
        if (error != et::Error::Ok) return error;
        return part.release();
    }

    et::Error execute(et::BackendExecutionContext& context, et::DelegateHandle* handle,
                      et::Span<et::EValue*> args) const override {
        auto& part = *static_cast<Part*>(handle);
        const std::lock_guard lock(part.group->running);
        return guarded("the program cannot be run", error_of_run, [&] {
            if (const et::Error error = bind_inputs(part, args); error != et::Error::Ok) return error;
            if (const et::Error error = bind_outputs(part, args); error != et::Error::Ok) return error;
            if (et::EventTracer* tracer = context.event_tracer())
                run_traced(part, tracer);
            else
                part.session.run(part.in, part.out);
            return et::Error::Ok;
        });
    }

    void destroy(et::DelegateHandle* handle) const override {
        const std::unique_ptr<Part> part(static_cast<Part*>(handle));
        leave_program(*part);
    }

    et::Error set_option(et::BackendOptionContext&, const et::Span<et::BackendOption>& options) override {
        const std::lock_guard lock(mutex_);
        return settings_.set({options.data(), options.size()});
    }

    et::Error get_option(et::BackendOptionContext&, et::Span<et::BackendOption>& options) override {
        return current_settings().get(options);
    }

private:
    Settings current_settings() const {
        const std::lock_guard lock(mutex_);
        return settings_;
    }

    mutable std::mutex mutex_;
    Settings settings_;
};

GgmlBackend backend;
[[maybe_unused]] const et::Error registered = et::register_backend({"GgmlBackend", &backend});

}  // namespace
}  // namespace headrace::executorch_door
