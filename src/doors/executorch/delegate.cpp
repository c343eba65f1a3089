/// ExecuTorch's delegate "GgmlBackend": loads the graphs that python/executorch_ggml made and runs them.
/// A library of its own, because it links ExecuTorch; it registers itself when it is loaded.
#include <executorch/runtime/backend/interface.h>
#include <executorch/runtime/core/error.h>
#include <executorch/runtime/core/evalue.h>
#include <executorch/runtime/core/exec_aten/util/tensor_util.h>
#include <executorch/runtime/platform/log.h>

#include <cstring>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "headrace/graph_writer.h"

namespace headrace {
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

/// One loaded part of a program. ExecuTorch may run a program from one thread at a time only; the lock is
/// for those that run two methods of it.
struct Part {
    explicit Part(const Executable& executable)
        : inputs(executable.inputs()), outputs(executable.outputs()), session(executable) {}

    std::vector<TensorInfo> inputs, outputs;
    std::vector<std::size_t> arguments;  ///< of each input, its place among the call's arguments
    std::mutex mutex;
    Session session;
    std::vector<std::vector<std::int64_t>> shapes;
    std::vector<InputView> in;
    std::vector<OutputView> out;
};

et::Error error_of(const Exception& e) {
    switch (e.code()) {
        case Code::out_of_memory: return et::Error::MemoryAllocationFailed;
        case Code::invalid_argument: return et::Error::InvalidArgument;
        case Code::unsupported: return et::Error::NotSupported;
        default: return et::Error::Internal;
    }
}

/// Weights of the program, which stay where ExecuTorch has them for as long as the graph lives.
NamedWeight find_weight(const et::NamedDataMap* map, const std::string& key) {
    if (!map) throw Exception(Code::io, "the program brings no weights");
    auto data = map->get_data(key);
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

et::Error bind_inputs(Part& part, et::Span<et::EValue*> args) {
    part.shapes.resize(part.inputs.size());
    part.in.clear();
    for (std::size_t i = 0; i < part.inputs.size(); ++i) {
        const std::size_t place = part.arguments[i];
        if (place >= args.size() || !args[place]->isTensor()) {
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
        part.shapes[i].assign(tensor.sizes().begin(), tensor.sizes().end());
        part.in.push_back({*dtype, part.shapes[i], tensor.const_data_ptr()});
    }
    return et::Error::Ok;
}

/// Outputs are the last arguments; their sizes follow the inputs'.
et::Error bind_outputs(Part& part, et::Span<et::EValue*> args) {
    if (args.size() < part.outputs.size()) return et::Error::InvalidArgument;
    const auto shapes = part.session.output_shapes(part.shapes);
    part.out.clear();
    for (std::size_t i = 0; i < part.outputs.size(); ++i) {
        et::EValue& value = *args[args.size() - part.outputs.size() + i];
        if (!value.isTensor()) return et::Error::InvalidArgument;
        Tensor& tensor = value.toTensor();
        if (dtype_of(tensor.scalar_type()) != part.outputs[i].dtype) {
            ET_LOG(Error, "GgmlBackend: result %zu has scalar type %d, the graph makes %s", i,
                   static_cast<int>(tensor.scalar_type()),
                   std::string(name_of(part.outputs[i].dtype)).c_str());
            return et::Error::InvalidArgument;
        }
        std::vector<executorch::aten::SizesType> sizes(shapes[i].begin(), shapes[i].end());
        const et::Error error = et::resize_tensor(tensor, {sizes.data(), sizes.size()});
        if (error != et::Error::Ok) {
            ET_LOG(Error, "GgmlBackend: result %zu cannot take the size that its inputs give it", i);
            return error;
        }
        part.out.push_back({tensor.mutable_data_ptr(), tensor.nbytes()});
    }
    return et::Error::Ok;
}

class GgmlBackend final : public et::BackendInterface {
public:
    bool is_available() const override { return true; }

    et::Result<et::DelegateHandle*> init(et::BackendInitContext& context, et::FreeableBuffer* processed,
                                         et::ArrayRef<et::CompileSpec>) const override {
        try {
            // Small, since weights lie outside; the few constants in it are used where the copy is.
            const auto* first = static_cast<const std::byte*>(processed->data());
            const auto bytes = std::make_shared<std::vector<std::byte>>(first, first + processed->size());
            processed->Free();
            const auto* map = context.get_named_data_map();
            const auto graph = graph_from_memory(
                *bytes, bytes, [&](const std::string& key) { return find_weight(map, key); });
            const Executable executable = compile(*graph);
            auto part = std::make_unique<Part>(executable);
            for (const TensorInfo& input : part->inputs) {
                const auto place = argument_of(input.name);
                if (!place)
                    throw Exception(Code::invalid_argument, "input '" + input.name + "' names no argument");
                part->arguments.push_back(*place);
            }
            return part.release();
        } catch (const Exception& e) {
            ET_LOG(Error, "GgmlBackend: the program cannot be loaded: %s", e.what());
            return e.code() == Code::out_of_memory ? et::Error::MemoryAllocationFailed
                                                   : et::Error::DelegateInvalidCompatibility;
        } catch (const std::bad_alloc&) {
            return et::Error::MemoryAllocationFailed;
        }
    }

    et::Error execute(et::BackendExecutionContext&, et::DelegateHandle* handle,
                      et::Span<et::EValue*> args) const override {
        auto& part = *static_cast<Part*>(handle);
        const std::lock_guard lock(part.mutex);
        try {
            if (const et::Error error = bind_inputs(part, args); error != et::Error::Ok) return error;
            if (const et::Error error = bind_outputs(part, args); error != et::Error::Ok) return error;
            part.session.run(part.in, part.out);
            return et::Error::Ok;
        } catch (const Exception& e) {
            ET_LOG(Error, "GgmlBackend: %s", e.what());
            return error_of(e);
        } catch (const std::bad_alloc&) {
            return et::Error::MemoryAllocationFailed;
        }
    }

    void destroy(et::DelegateHandle* handle) const override { delete static_cast<Part*>(handle); }
};

GgmlBackend backend;
[[maybe_unused]] const et::Error registered = et::register_backend({"GgmlBackend", &backend});

}  // namespace
}  // namespace headrace
