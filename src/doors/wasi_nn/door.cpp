#include "doors/wasi_nn/door.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <new>
#include <optional>
#include <sstream>
#include <utility>

#include "base/utf8.h"

namespace headrace::wasi_nn {
namespace {

constexpr std::uint32_t kNone = 0;                 // of the contexts
constexpr std::uint32_t kLongestText = 64u << 20;  // of a prompt or configuration: more is a wrong length

/// GGML is 5 and autodetection 6 in WAMR and the WIT; in WasmEdge it is the other way round.
std::optional<Encoding> encoding_of(std::uint32_t number) {
    switch (number) {
        case 1: return Encoding::onnx;
        case 5:
        case 6: return Encoding::any;
        default: return std::nullopt;
    }
}

/// The living backends. A handle is a number that is never used twice and never followed as a pointer, so
/// that one which is wrong, old or closed twice is noticed.
class Instances {
public:
    void* add(std::shared_ptr<ContextTable> table) {
        const std::lock_guard lock(mutex_);
        // The low bits make the numbers look like no address that a program has.
        void* handle = reinterpret_cast<void*>((next_++ << 4) | 0x9);
        tables_[handle] = std::move(table);
        return handle;
    }
    std::shared_ptr<ContextTable> find(void* handle) {
        const std::lock_guard lock(mutex_);
        const auto found = tables_.find(handle);
        return found == tables_.end() ? nullptr : found->second;
    }
    std::shared_ptr<ContextTable> remove(void* handle) {
        const std::lock_guard lock(mutex_);
        const auto found = tables_.find(handle);
        if (found == tables_.end()) return nullptr;
        std::shared_ptr<ContextTable> table = std::move(found->second);
        tables_.erase(found);
        return table;
    }

private:
    std::mutex mutex_;
    std::map<void*, std::shared_ptr<ContextTable>> tables_;
    uintptr_t next_ = 0x1000;
};
Instances& instances() {
    static auto* instances = new Instances;  // calls may come while the process exits
    return *instances;
}

Result<std::string> environment_config() {
    const char* value = std::getenv("HEADRACE_CONFIG");
    if (!value || !*value) return std::string();
    if (*value != '@') return std::string(value);
    std::ifstream file(value + 1);
    std::error_code error;
    if (!file || std::filesystem::is_directory(value + 1, error))  // a folder opens, and has no bytes
        return failure(Code::not_found, "HEADRACE_CONFIG names {}, which cannot be read", value + 1);
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
}

}  // namespace

std::shared_ptr<ContextTable> table_of(void* ctx) { return instances().find(ctx); }

int number_of(Code code, const ErrorCodes& codes) {
    switch (code) {
        case Code::invalid_argument:
        case Code::invalid_state: return codes.invalid_argument;
        case Code::unsupported: return codes.unsupported;
        case Code::out_of_memory: return codes.missing_memory;
        case Code::not_found: return codes.not_found;
        case Code::denied: return codes.security;
        case Code::busy: return codes.busy;
        case Code::timed_out: return codes.timeout;
        case Code::prompt_too_long: return ErrorCodes::prompt_too_long;
        case Code::context_full: return ErrorCodes::context_full;
        case Code::cancelled:
        case Code::io:
        case Code::backend_failure: return codes.runtime_error;
    }
    return codes.runtime_error;
}

int Door::report(std::string_view function, const Error& error, const Context::Origin& origin) const {
    HostedModels::log_error(fmt::format("{}: {}", function, error.message), origin.session, origin.request);
    return number_of(error.code, traits_.codes);
}

/// With another number than that of the error's code.
int Door::refuse_as(int number, ContextTable& table, std::string_view function, const Error& error) const {
    report(function, error);
    table.remember_failure(error);
    return number;
}

/// Finds the backend and runs the call, which returns a Status or the number of an outcome that is no error.
/// context: the call's, for the log, or 0.
template <class Call>
int Door::guarded(std::string_view function, void* ctx, std::uint32_t context, Call call) {
    const std::shared_ptr<ContextTable> table = table_of(ctx);
    if (!table)
        return report(function, invalid("{}", ctx ? "ctx is no backend, or one that was closed"
                                                  : "ctx is NULL; call init_backend first"));
    const auto failed = [&](const Error& error) {
        table->remember_failure(error);
        return report(function, error, table->origin_of(context));
    };
    try {
        Result<int> result = call(*table);
        return result.ok() ? result.value() : failed(result.error());
    } catch (const std::bad_alloc&) {
        return failed(failure(Code::out_of_memory, "no memory is left"));
    } catch (const std::exception& e) {
        return failed(failure(Code::backend_failure, "{}", e.what()));
    }
}

int Door::refuse(void* ctx, std::string_view function, std::string_view why) {
    return guarded(function, ctx, kNone, [&](ContextTable&) -> Result<int> { return invalid("{}", why); });
}

int Door::init(void** ctx, const char* config, std::uint32_t config_size) {
    constexpr std::string_view function = "init_backend";
    if (!ctx) return report(function, invalid("the pointer for the backend is NULL"));
    if (!config && config_size) return report(function, invalid("config is NULL, and its length is not 0"));
    if (config_size > kLongestText) return report(function, invalid("config is too long"));
    *ctx = nullptr;
    try {
        Defaults defaults{.history = traits_.history, .lenient = traits_.lenient};
        if (const char* root = std::getenv("HEADRACE_MODEL_ROOT")) defaults.model_root = root;
        Result<std::string> environment = environment_config();
        if (!environment.ok()) return report(function, environment.error());
        Result<std::unique_ptr<ContextTable>> table =
            ContextTable::create(environment.value(), defaults, {config, config_size});
        if (!table.ok()) return report(function, table.error());
        *ctx = instances().add(std::move(table).value());
        return 0;
    } catch (const std::bad_alloc&) {
        return report(function, failure(Code::out_of_memory, "no memory is left"));
    } catch (const std::exception& e) {
        return report(function, failure(Code::backend_failure, "{}", e.what()));
    }
}

int Door::deinit(void* ctx) {
    return guarded("deinit_backend", ctx, kNone, [&](ContextTable& table) -> Result<int> {
        if (!instances().remove(ctx)) return invalid("another thread closed ctx at the same time");
        table.cancel_all();  // other threads may still be inside
        return 0;
    });
}

int Door::load(void* ctx, const std::uint8_t* bytes, std::uint32_t size, std::uint32_t parts,
               std::uint32_t encoding, std::uint32_t target, std::uint32_t* graph) {
    constexpr std::string_view function = "load";
    if (!graph) return refuse(ctx, function, "the pointer for the graph is NULL");
    if (!bytes || !size) return refuse(ctx, function, "the model's bytes are missing");
    if (parts != 1) return refuse(ctx, function, "a model is one builder");
    if (target > static_cast<std::uint32_t>(Target::tpu))
        return refuse(ctx, function, "the targets are CPU (0), GPU (1) and TPU (2)");
    return guarded(function, ctx, kNone, [&](ContextTable& table) -> Result<int> {
        const std::optional<Encoding> form = encoding_of(encoding);
        if (!form)
            return refuse_as(traits_.codes.invalid_encoding, table, function, unread_encoding(encoding));
        const std::string_view model(reinterpret_cast<const char*>(bytes), size);
        const LoadOptions options{.replaces = traits_.replaces, .target = static_cast<Target>(target)};
        return keep(table, function, table.load_bytes(model, *form, options), graph);
    });
}

/// The number of a graph that was loaded; memory beyond the limits is the graph's size.
Result<int> Door::keep(ContextTable& table, std::string_view function, const Result<GraphId>& loaded,
                       std::uint32_t* graph) const {
    if (!loaded.ok() && loaded.error().code == Code::out_of_memory)
        return refuse_as(traits_.codes.too_large, table, function, loaded.error());
    HR_ASSIGN(*graph, loaded);
    return 0;
}

int Door::load_by_name(void* ctx, const char* name, std::uint32_t name_size, const char* config,
                       std::uint32_t config_size, std::uint32_t* graph) {
    constexpr std::string_view function = "load_by_name";
    if (!name || !name_size) return refuse(ctx, function, "the model's name is NULL or empty");
    if (!graph) return refuse(ctx, function, "the pointer for the graph is NULL");
    if (!config && config_size) return refuse(ctx, function, "config is NULL, and its length is not 0");
    if (name_size > kLongestText || config_size > kLongestText)
        return refuse(ctx, function, "a length is beyond 64 MiB");
    return guarded(function, ctx, kNone, [&](ContextTable& table) -> Result<int> {
        // Callers count the NUL at the end, or not.
        const std::string_view text(name, strnlen(name, name_size));
        const std::string_view options = config ? std::string_view(config, strnlen(config, config_size)) : "";
        const Result<GraphId> loaded = table.load(text, {.config = options, .replaces = traits_.replaces});
        if (!loaded.ok() && loaded.error().code == Code::not_found)
            return refuse_as(ErrorCodes::model_not_found, table, function, loaded.error());
        return keep(table, function, loaded, graph);
    });
}

int Door::unload(void* ctx, std::uint32_t graph) {
    return guarded("unload", ctx, kNone, [&](ContextTable& table) -> Result<int> {
        HR_TRY(table.unload(graph));
        return 0;
    });
}

int Door::open(void* ctx, std::uint32_t graph, std::uint32_t* context) {
    if (!context) return refuse(ctx, "init_execution_context", "the pointer for the context is NULL");
    return guarded("init_execution_context", ctx, kNone, [&](ContextTable& table) -> Result<int> {
        HR_ASSIGN(*context, table.open(graph));
        return 0;
    });
}

int Door::open_session(void* ctx, std::optional<std::uint32_t> graph, const char* session,
                       std::uint32_t* context) {
    const std::string_view function =
        graph ? "headrace_init_execution_context" : "init_execution_context_with_session_id";
    if (!context) return refuse(ctx, function, "the pointer for the context is NULL");
    if (!session || !*session) return refuse(ctx, function, "the session's name is NULL or empty");
    return guarded(function, ctx, kNone, [&](ContextTable& table) -> Result<int> {
        const std::string_view name(session, strnlen(session, kLongestName + 1));
        HR_ASSIGN(const GraphId used, graph ? Result<GraphId>(*graph) : table.first_graph());
        HR_ASSIGN(*context, table.open(used, name));
        return 0;
    });
}

int Door::close(void* ctx, std::uint32_t context) {
    return guarded("close_execution_context", ctx, context, [&](ContextTable& table) -> Result<int> {
        HR_TRY(table.close(context));
        return 0;
    });
}

int Door::set_input(void* ctx, std::uint32_t context, std::uint32_t index, GuestTensor tensor) {
    return guarded("set_input", ctx, context, [&](ContextTable& table) -> Result<int> {
        if (std::cmp_less(tensor.type_number, traits_.types.size()) && tensor.type_number >= 0)
            tensor.type = traits_.types[static_cast<std::size_t>(tensor.type_number)];
        HR_TRY(table.set_input(context, index, tensor));
        return 0;
    });
}

int Door::compute(void* ctx, std::uint32_t context) {
    return guarded("compute", ctx, context, [&](ContextTable& table) -> Result<int> {
        HR_TRY(table.compute(context));
        return 0;
    });
}

int Door::get_output(void* ctx, std::uint32_t context, std::uint32_t index, Output output) {
    return guarded("get_output", ctx, context, [&](ContextTable& table) -> Result<int> {
        return table.read_output(context, index, [&](std::string_view bytes, OutputForm form) {
            return write(bytes, form, output);
        });
    });
}

int Door::compute_single(void* ctx, std::uint32_t context) {
    return guarded("compute_single", ctx, context, [&](ContextTable& table) -> Result<int> {
        HR_ASSIGN(const auto piece, table.compute_piece(context));
        return piece ? 0 : ErrorCodes::end_of_sequence;
    });
}

int Door::get_output_single(void* ctx, std::uint32_t context, std::uint32_t index, Output output) {
    return guarded("get_output_single", ctx, context, [&](ContextTable& table) -> Result<int> {
        if (index > 1) return invalid("there is no output {}", index);
        if (index == 1)
            return table.read_output(context, 1, [&](std::string_view bytes, OutputForm form) {
                return write(bytes, form, output);
            });
        HR_ASSIGN(const std::string text, table.last_piece(context));
        return write(text, OutputForm::text, output);
    });
}

int Door::fini_single(void* ctx, std::uint32_t context) {
    return guarded("fini_single", ctx, context, [&](ContextTable& table) -> Result<int> {
        HR_TRY(table.end_pieces(context));
        return 0;
    });
}

int Door::cancel(void* ctx, std::uint32_t context) {
    return guarded("cancel_inference", ctx, context, [&](ContextTable& table) -> Result<int> {
        HR_TRY(table.cancel(context));
        return 0;
    });
}

int Door::statistics(void* ctx, Output output) {
    return guarded("get_statistics", ctx, kNone, [&](ContextTable& table) -> Result<int> {
        return write(table.statistics(), OutputForm::json, output);
    });
}

int Door::run(void* ctx, std::uint32_t context, std::uint32_t index, std::string_view prompt, Output output,
              std::string_view options) {
    constexpr std::string_view function = "run_inference";
    if (index != 0) return refuse(ctx, function, "the prompt is input 0");
    if (!output.buffer || !output.size) return refuse(ctx, function, "the output or its size is NULL");
    return guarded(function, ctx, context, [&](ContextTable& table) -> Result<int> {
        HR_ASSIGN(const std::string answer, table.run(context, prompt, options));
        return write(answer, OutputForm::text, output);
    });
}

/// As much of an answer as fits is worth having; a piece of JSON or of a tensor is not.
Result<int> Door::write(std::string_view bytes, OutputForm form, const Output& output) const {
    if (!output.buffer || !output.size) return invalid("the output or its size is NULL");
    const auto needed = static_cast<std::uint32_t>(std::min<std::size_t>(bytes.size(), UINT32_MAX));
    const bool may_cut = form == OutputForm::text && traits_.truncates;
    std::size_t size = bytes.size();
    if (size > output.capacity) size = may_cut ? utf8_boundary(bytes, output.capacity) : 0;
    if (size == 0 && !bytes.empty()) {
        *output.size = needed;
        HostedModels::log_error(
            fmt::format("output: {} bytes do not fit into a buffer of {}", bytes.size(), output.capacity));
        return traits_.codes.too_large;
    }
    if (size < bytes.size())
        HostedModels::log_warning(
            fmt::format("output: {} of {} bytes fit into the buffer; get_output gives the rest a larger one",
                        size, bytes.size()));
    if (size) std::memcpy(output.buffer, bytes.data(), size);
    if (traits_.truncates && form != OutputForm::tensor && size < output.capacity)
        output.buffer[size] = 0;  // callers print it as a C string
    *output.size = static_cast<std::uint32_t>(size);
    return 0;
}

std::string_view options_text(const char* options, std::uint32_t size) {
    const char* arguments = std::getenv("HEADRACE_RUN_INFERENCE_ARGS");
    if (arguments && std::string_view(arguments) == "6") return {};
    if (!options) return {};
    if (arguments && std::string_view(arguments) == "7") size = 1u << 20;
    if (size > kLongestText) return {};  // no caller's length: it passed fewer arguments
    return {options, strnlen(options, size)};
}

}  // namespace headrace::wasi_nn
