#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "doors/wasi_nn/context_table.h"
#include "doors/wasi_nn/guest_tensor.h"

namespace headrace::wasi_nn {

/// The error numbers of one C interface.
struct ErrorCodes {
    int invalid_argument = 1, invalid_encoding = 2;
    int missing_memory, busy, timeout, runtime_error, unsupported, too_large, not_found, security;
    static constexpr int end_of_sequence = 100, context_full = 101, prompt_too_long = 102,
                         model_not_found = 103;
};
int number_of(Code code, const ErrorCodes& codes);

/// How the interfaces differ besides the layout of their structures.
struct AbiTraits {
    ErrorCodes codes;
    std::span<const DType> types;  ///< of tensors, by their numbers
    bool replaces;                 ///< a second load takes the first one's place
    bool history;    ///< contexts remember their conversation unless the configuration says otherwise
    bool truncates;  ///< an answer that is too long is cut, not refused; metadata never is
    bool lenient;    ///< configurations are read as hosts of other backends write them; see HostOptions
};

/// The buffer of a caller. size: its capacity, then what was written or is needed.
struct Output {
    std::uint8_t* buffer;
    std::uint32_t capacity;
    std::uint32_t* size;
};

/// What a handle of a backend stands for; nothing where it is none, or one that was closed.
std::shared_ptr<ContextTable> table_of(void* ctx);

/// What the libraries do, with plain pointers. Every function checks all of them, catches everything, logs
/// the cause of an error, and returns its number.
class Door {
public:
    explicit Door(const AbiTraits& traits) : traits_(traits) {}

    int init(void** ctx, const char* config, std::uint32_t config_size);
    int deinit(void* ctx);
    int load(void* ctx, const std::uint8_t* bytes, std::uint32_t size, std::uint32_t parts,
             std::uint32_t encoding, std::uint32_t target, std::uint32_t* graph);
    int load_by_name(void* ctx, const char* name, std::uint32_t name_size, const char* config,
                     std::uint32_t config_size, std::uint32_t* graph);
    int unload(void* ctx, std::uint32_t graph);
    int open(void* ctx, std::uint32_t graph, std::uint32_t* context);
    /// Opens a session of a graph, or without one of the first language model.
    int open_session(void* ctx, std::optional<std::uint32_t> graph, const char* session,
                     std::uint32_t* context);
    int close(void* ctx, std::uint32_t context);
    /// Its type is that of type_number.
    int set_input(void* ctx, std::uint32_t context, std::uint32_t index, GuestTensor tensor);
    int compute(void* ctx, std::uint32_t context);
    int get_output(void* ctx, std::uint32_t context, std::uint32_t index, Output output);
    int compute_single(void* ctx, std::uint32_t context);
    int get_output_single(void* ctx, std::uint32_t context, std::uint32_t index, Output output);
    int fini_single(void* ctx, std::uint32_t context);
    int cancel(void* ctx, std::uint32_t context);
    int statistics(void* ctx, Output output);
    int run(void* ctx, std::uint32_t context, std::uint32_t index, std::string_view prompt, Output output,
            std::string_view options);

    /// For an argument that is wrong before anything can be called: the backend's last failure.
    int refuse(void* ctx, std::string_view function, std::string_view why);

private:
    template <class Call>
    int guarded(std::string_view function, void* ctx, std::uint32_t context, Call call);
    int report(std::string_view function, const Error& error, const Context::Origin& origin = {}) const;
    Result<int> keep(ContextTable& table, std::string_view function, const Result<GraphId>& loaded,
                     std::uint32_t* graph) const;
    int refuse_as(int number, ContextTable& table, std::string_view function, const Error& error) const;
    Result<int> write(std::string_view bytes, OutputForm form, const Output& output) const;

    AbiTraits traits_;
};

/// The door of libwasi_nn_llamacpp.so and libwasi_nn_onnx.so, in each of which it is another one.
Door& guests_door();

/// Options of a run_inference call whose length a caller may not have passed: see
/// HEADRACE_RUN_INFERENCE_ARGS.
std::string_view options_text(const char* options, std::uint32_t size);

}  // namespace headrace::wasi_nn
