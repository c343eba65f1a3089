#include "llm/model/model.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <regex>
#include <thread>
#include <tuple>

#include <common/chat.h>
#include <common/common.h>
#include <common/fit.h>

#include "base/log.h"
#include "llm/checks/model_file.h"
#include "llm/checks/model_metadata.h"
#include "llm/log/llama_log.h"
#include "llm/model/context_needs.h"
#include "llm/model/packed_kernels.h"
#include "llm/model/placement.h"
#include "loading/backends.h"

namespace headrace::llm {
namespace {

constexpr double kMib = 1024.0 * 1024.0;

/// llama.cpp reports why a load failed only in its log; fitting changes its global logger.
std::mutex& loading() {
    static std::mutex mutex;
    return mutex;
}

/// Whether a model was loaded in this process; to be read and written while loading() is held.
bool has_loaded = false;

llama_split_mode split_mode_of(const std::string& name) {
    if (name == "none") return LLAMA_SPLIT_MODE_NONE;
    if (name == "row") return LLAMA_SPLIT_MODE_ROW;
    if (name == "tensor") return LLAMA_SPLIT_MODE_TENSOR;
    return LLAMA_SPLIT_MODE_LAYER;
}

llama_lazy_mode lazy_mode_of(const std::string& name) {
    if (name == "on") return LLAMA_LAZY_MODE_ON;
    return name == "off" ? LLAMA_LAZY_MODE_OFF : LLAMA_LAZY_MODE_AUTO;
}

ggml_numa_strategy numa_of(const std::string& name) {
    if (name == "distribute") return GGML_NUMA_STRATEGY_DISTRIBUTE;
    if (name == "isolate") return GGML_NUMA_STRATEGY_ISOLATE;
    return name == "numactl" ? GGML_NUMA_STRATEGY_NUMACTL : GGML_NUMA_STRATEGY_DISABLED;
}

/// What "pattern=type" says; the last is empty, as llama.cpp wants it. patterns: what they point to.
Result<std::vector<llama_model_tensor_buft_override>> buffer_types_of(const std::vector<std::string>& texts,
                                                                      std::vector<std::string>& patterns) {
    std::vector<llama_model_tensor_buft_override> all;
    patterns.reserve(texts.size());
    for (const std::string& text : texts) {
        const auto equals = text.rfind('=');
        const std::string type = equals == std::string::npos ? "" : text.substr(equals + 1);
        std::string known;
        ggml_backend_buffer_type_t found = nullptr;
        for (std::size_t i = 0; i < ggml_backend_dev_count(); ++i)
            if (auto buffers = ggml_backend_dev_buffer_type(ggml_backend_dev_get(i))) {
                known += fmt::format("{}{}", known.empty() ? "" : ", ", ggml_backend_buft_name(buffers));
                if (type == ggml_backend_buft_name(buffers)) found = buffers;
            }
        if (!found)
            return invalid("override_tensor: '{}' must be PATTERN=TYPE with one of these types: {}", text,
                           known)
                .of_parameter("override_tensor");
        try {
            static_cast<void>(std::regex(text.substr(0, equals)));
        } catch (const std::regex_error&) {
            return invalid("override_tensor: '{}' is no regular expression", text.substr(0, equals))
                .of_parameter("override_tensor");
        }
        patterns.push_back(text.substr(0, equals));
        all.push_back({patterns.back().c_str(), found});
    }
    if (!all.empty()) all.push_back({nullptr, nullptr});
    return all;
}

llama_load_mode load_mode_of(const std::string& name) {
    return name == "direct-io" ? LLAMA_LOAD_MODE_DIRECT_IO : llama_load_mode_from_str(name.c_str());
}

/// What llama_model_params points to, kept while a load runs.
struct LoadParams {
    llama_model_params params = llama_model_default_params();
    std::vector<float> split;
    std::vector<llama_model_kv_override> overrides;
    std::vector<llama_model_tensor_buft_override> buffer_types;
    std::vector<std::string> patterns;  // of those
};

/// A load that lost a host is broken off.
bool go_on_loading(float, void* placement) {
    const auto& hosts = static_cast<const Placement*>(placement)->hosts;
    return std::none_of(hosts.begin(), hosts.end(), [](const auto& host) { return host->is_lost(); });
}

/// The placement must live as long as the load.
Result<LoadParams> load_params(const ModelSettings& settings, Placement& placement) {
    LoadParams load;
    if (!placement.devices.empty()) load.params.devices = placement.devices.data();
    load.params.n_gpu_layers = placement.n_gpu_layers;
    load.params.progress_callback = &go_on_loading;
    load.params.progress_callback_user_data = &placement;
    load.params.split_mode = split_mode_of(settings.split_mode);
    load.params.main_gpu = settings.main_gpu;
    load.split.assign(llama_max_devices(), 0.0f);
    if (placement.split.size() > load.split.size())
        return invalid("model.tensor_split: {} shares for at most {} devices", placement.split.size(),
                       load.split.size());
    std::copy(placement.split.begin(), placement.split.end(), load.split.begin());
    load.params.tensor_split = load.split.data();
    load.params.load_mode = load_mode_of(settings.load_mode);
    load.params.check_tensors = settings.check_tensors;
    load.params.use_extra_bufts = settings.repack;
    load.params.no_host = settings.no_host;
    load.params.lazy_mode = lazy_mode_of(settings.lazy_mode);
    HR_ASSIGN(load.buffer_types, buffer_types_of(settings.override_tensor, load.patterns));
    if (!load.buffer_types.empty()) load.params.tensor_buft_overrides = load.buffer_types.data();
    for (const std::string& text : settings.kv_overrides)
        if (!string_parse_kv_override(text.c_str(), load.overrides))
            return invalid(
                "model.kv_overrides: '{}' is not of the form key=type:value with type int, float, bool or "
                "str",
                text);
    if (!load.overrides.empty()) {
        load.overrides.emplace_back();
        load.overrides.back().key[0] = 0;
        load.params.kv_overrides = load.overrides.data();
    }
    return load;
}

/// Chooses as many layers as the devices' memory holds, when the user left that open.
void fit_to_devices(const std::string& path, const ModelSettings& settings, LoadParams& load) {
    if (settings.n_gpu_layers != -1 || !has_gpu()) return;
    load.buffer_types.resize(std::max(llama_max_tensor_buft_overrides(), load.buffer_types.size()));
    if (load.params.tensor_buft_overrides) load.params.tensor_buft_overrides = load.buffer_types.data();
    std::vector<std::size_t> margins(llama_max_devices(), static_cast<std::size_t>(settings.fit_margin_mib)
                                                              << 20);
    llama_context_params context = llama_context_default_params();
    const auto status =
        common_fit_params(path.c_str(), &load.params, &context, load.split.data(), load.buffer_types.data(),
                          margins.data(), 4096, nullptr, GGML_LOG_LEVEL_ERROR);
    if (status != COMMON_PARAMS_FIT_STATUS_SUCCESS)
        HR_LOG(warn, {}, "{}: the layers do not fit into the devices' memory: {} stay on them", path,
               load.params.n_gpu_layers);
}

/// What is wrong with a template. llama.cpp throws a copy of its error that has lost the text.
std::string template_error(const Model& model, const std::string& given, const char* otherwise) {
    try {
        const char* own = llama_model_chat_template(model.get(), nullptr);
        const common_chat_template parsed(given.empty() && own ? own : given, "", "");
    } catch (const std::exception& e) {
        return e.what();
    }
    return otherwise;
}

/// llama.cpp asserts these tokens where a text begins and ends.
Status check_special_tokens(const llama_vocab* vocab) {
    const bool encoder = llama_vocab_type(vocab) == LLAMA_VOCAB_TYPE_WPM;
    const std::tuple<bool, llama_token, const char*> needed[] = {
        {encoder || llama_vocab_get_add_bos(vocab), llama_vocab_bos(vocab), "bos_token_id"},
        {llama_vocab_get_add_eos(vocab), llama_vocab_eos(vocab), "eos_token_id"},
        {encoder || llama_vocab_get_add_sep(vocab), llama_vocab_sep(vocab), "seperator_token_id"},
    };
    for (const auto& [adds, token, name] : needed)
        if (adds && token == LLAMA_TOKEN_NULL)
            return invalid("tokenizer.ggml.{} is missing or beyond the vocabulary, and every text gets it",
                           name);
    return success();
}

/// Bytes of a text that one token can stand for.
std::size_t longest_piece(const llama_vocab* vocab) {
    // Other kinds leave out blanks, or make one token of a word that they do not know. So do these before and
    // after some tokens.
    const auto kind = llama_vocab_type(vocab);
    bool keeps_all = kind == LLAMA_VOCAB_TYPE_SPM || kind == LLAMA_VOCAB_TYPE_BPE;
    std::size_t longest = 1;
    for (llama_token token = 0; token < llama_vocab_n_tokens(vocab); ++token) {
        // As it is in the vocabulary: that is never shorter.
        longest = std::max(longest, std::strlen(llama_vocab_get_text(vocab, token)));
        keeps_all &=
            !(llama_vocab_get_attr(vocab, token) & (LLAMA_TOKEN_ATTR_LSTRIP | LLAMA_TOKEN_ATTR_RSTRIP));
    }
    constexpr std::size_t kGenerous = 1024;
    return keeps_all ? longest : std::max(longest, kGenerous);
}

/// "qwen3 0.6B Q8_0". llama.cpp writes ?B of a size that it has no name for; the count stands there then.
std::string description_of(const llama_model* model) {
    char text[256];
    llama_model_desc(model, text, sizeof(text));
    std::string description = text;
    const auto unknown = description.find(" ?B ");
    if (unknown == std::string::npos) return description;
    const auto count = static_cast<double>(llama_model_n_params(model));
    const std::string size = count < 1e6   ? fmt::format("{:.0f}K", count / 1e3)
                             : count < 1e9 ? fmt::format("{:.1f}M", count / 1e6)
                                           : fmt::format("{:.1f}B", count / 1e9);
    return description.replace(unknown + 1, 2, size);
}

}  // namespace

void start_llama() {
    static std::once_flag once;
    std::call_once(once, [] {
        capture_llama_log();
        llama_backend_init();
        load_all_backends();
        offer_packed_kernels();
    });
}

Status require_packed_kernels() {
    start_llama();
    const std::lock_guard lock(loading());
    if (find_make_invariant()) return success();
    if (has_loaded)
        return unsupported(
            "batch_invariant needs our own products in place of ggml's, with which this process has loaded a "
            "model: "
            "load the one with batch_invariant first, or name libggml-headrace.so in GGML_BACKEND_PATH");
    load_packed_kernels();
    if (find_make_invariant()) return success();
    return unsupported(
        "batch_invariant needs our own products, and libggml-headrace.so is not beside this program or does "
        "not run on "
        "this CPU, which has neither AVX2 nor 64-bit NEON; leave batch_invariant out");
}

bool has_gpu() {
    for (std::size_t i = 0; i < ggml_backend_dev_count(); ++i)
        if (ggml_backend_dev_type(ggml_backend_dev_get(i)) == GGML_BACKEND_DEVICE_TYPE_GPU) return true;
    return false;
}

ContextNeeds Model::context_needs(const std::string& path, const ModelFile& file,
                                  const ContextMemory& context) {
    const std::lock_guard lock(loading());
    return measure_context(path, file, context);
}

std::uint64_t Model::projector_needs(const ModelSettings& settings) {
    const std::lock_guard lock(loading());
    return Projector::needed_bytes(settings);
}

Result<std::shared_ptr<const Model>> Model::load(const std::string& path, const ModelSettings& settings,
                                                 const ContextMemory& context) {
    start_llama();
    if (!settings.numa.empty()) llama_numa_init(numa_of(settings.numa));
    if (const Status status = check_template(settings.chat_template); !status.ok())
        return status.error().within("chat_template").of_parameter("chat_template");
    HR_ASSIGN(const ModelFile file, inspect_model_file(path, settings.kv_overrides));
    std::shared_ptr<Model> model(new Model);
    model->path_ = path;
    model->metadata_ = file.metadata;
    ContextNeeds needs;
    if (names_remote_hosts(settings)) needs = context_needs(path, file, context);
    HR_ASSIGN(Placement placement, place_model(file, settings, needs));
    HR_TRY(enough_memory(placement.local_bytes));
    model->hosts_ = placement.hosts;
    HR_TRY(model->read_weights(settings, placement));
    if (const Status present = model->check_hosts(); !present.ok()) return present.error().within(path);
    if (!model->model_)
        return invalid(
            "{}: llama.cpp {} could not load the model (architecture '{}'): {}. Is the file complete, and do "
            "the "
            "parameters suit it?",
            path, llama_version(), file.architecture, take_llama_errors());
    model->vocab_ = llama_model_get_vocab(model->model_);
    model->grammars_ = std::make_unique<Grammars>(model->vocab_);
    if (const Status status = check_special_tokens(model->vocab_); !status.ok())
        return status.error().within(path);
    if (llama_model_has_encoder(model->model_) && llama_model_has_decoder(model->model_))
        return unsupported("{}: encoder-decoder models ('{}') are not supported", path, file.architecture);
    model->description_ = description_of(model->model_);
    model->bytes_per_token_ = longest_piece(model->vocab_);
    model->divisible_ = !llama_model_is_recurrent(model->model_) && !llama_model_is_hybrid(model->model_);
    try {
        model->templates_ = common_chat_templates_init(model->model_, settings.chat_template).release();
        model->jinja_ = settings.jinja;
    } catch (const std::exception& e) {
        return invalid("{}: the chat template cannot be read: {}", path,
                       template_error(*model, settings.chat_template, e.what()));
    }
    HR_TRY(model->read_adapters(settings));
    std::vector<std::string> files{path};
    files.insert(files.end(), file.parts.begin(), file.parts.end());
    for (const auto& [adapter, scale] : settings.lora) files.push_back(adapter);
    HR_ASSIGN(model->weights_sample_, sample_weights(files));
    HR_TRY(model->read_projector(settings));
    HR_LOG(info, {}, "{}: {} loaded, {:.1f} MiB", path, model->description_, file.bytes / kMib);
    return std::shared_ptr<const Model>(std::move(model));
}

Status Model::read_weights(const ModelSettings& settings, Placement& placement) {
    const std::lock_guard lock(loading());
    HR_ASSIGN(LoadParams load, load_params(settings, placement));
    has_loaded = true;
    take_llama_errors();
    try {
        if (!placement.is_remote()) fit_to_devices(path_, settings, load);
        model_ = llama_model_load_from_file(path_.c_str(), load.params);
    } catch (const std::exception& e) {
        return invalid("{}: {}", path_, e.what());
    }
    layers_on_gpu_ = has_gpu() || placement.is_remote() ? load.params.n_gpu_layers : 0;
    return success();
}

Status Model::check_hosts() const {
    for (const auto& host : hosts_) HR_TRY(host->check());
    return success();
}

Status Model::read_adapters(const ModelSettings& settings) {
    for (const auto& [path, scale] : settings.lora) {
        if (std::error_code error; !std::filesystem::is_regular_file(path, error))
            return failure(Code::not_found, "lora: {}: there is no such file", path);
        take_llama_errors();
        llama_adapter_lora* adapter = llama_adapter_lora_init(model_, path.c_str());
        if (!adapter)
            return invalid("lora: '{}' cannot be loaded for this model: {}", path, take_llama_errors());
        adapters_.push_back(adapter);
    }
    return success();
}

Status Model::read_projector(const ModelSettings& settings) {
    if (settings.mmproj.empty()) return success();
    const std::lock_guard lock(loading());
    Result<std::unique_ptr<Projector>> projector = Projector::load(settings, model_);
    if (!projector.ok()) return projector.error().within("mmproj").of_parameter("mmproj");
    projector_ = std::move(projector).value();
    return success();
}

Model::~Model() {
    projector_.reset();
    if (templates_) common_chat_templates_free(templates_);
    if (model_) llama_model_free(model_);  // its adapters, too
}

Tokens Model::tokenize(std::string_view text, bool add_bos, bool special) const {
    return common_tokenize(vocab_, std::string(text), add_bos, special);
}

// Not in the header: a wheel's program has no llama.cpp of its own.
bool Model::ends_answer(llama_token token) const { return llama_vocab_is_eog(vocab_, token); }
int Model::vocabulary_size() const { return llama_vocab_n_tokens(vocab_); }

std::string Model::piece(llama_token token, bool special) const {
    return common_token_to_piece(vocab_, token, special);
}

}  // namespace headrace::llm
