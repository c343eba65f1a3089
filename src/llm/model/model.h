#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <llama.h>

#include "base/result.h"
#include "llm/grammar/grammars.h"
#include "llm/images/projector.h"
#include "llm/settings.h"
#include "remote/host.h"

struct common_chat_templates;

namespace headrace::llm {

struct ContextNeeds;
struct ModelFile;
struct Placement;

/// A loaded GGUF: weights, vocabulary, chat template, adapters. Immutable, and shared by all that use it.
class Model {
public:
    /// path may be the first of a split model's files. Errors: what is wrong with the file, or how much
    /// memory is missing.
    /// context: what layers on remote hosts need memory for, too.
    static Result<std::shared_ptr<const Model>> load(const std::string& path, const ModelSettings& settings,
                                                     const ContextMemory& context = {});
    /// What measure_context says, while no other model is loaded.
    static ContextNeeds context_needs(const std::string& path, const ModelFile& file,
                                      const ContextMemory& context);
    /// What Projector::needed_bytes says, while no other model is loaded.
    static std::uint64_t projector_needs(const ModelSettings& settings);
    ~Model();
    Model(const Model&) = delete;
    Model& operator=(const Model&) = delete;

    llama_model* get() const { return model_; }
    const llama_vocab* vocab() const { return vocab_; }
    const common_chat_templates* templates() const { return templates_; }
    const std::vector<llama_adapter_lora*>& adapters() const { return adapters_; }
    /// What reads images for it; null where it reads texts alone.
    const Projector* projector() const { return projector_.get(); }
    const std::string& path() const { return path_; }
    const std::string& description() const { return description_; }
    /// Those of its answers, which threads may ask for at once.
    Grammars& grammars() const { return *grammars_; }
    /// The file's, under its names; lists are null.
    const Parameters& metadata() const { return metadata_; }
    /// A number that tells the weights of models of one shape apart.
    std::uint64_t weights_sample() const { return weights_sample_; }
    /// Whether chats are rendered by the template, and not by what llama.cpp knows of its kind.
    bool uses_jinja() const { return jinja_; }
    /// Remote hosts' count, too.
    int layers_on_gpu() const { return layers_on_gpu_; }
    const std::vector<std::shared_ptr<remote::Host>>& hosts() const { return hosts_; }
    /// The error of every request after a remote host was lost: what is computed then is worthless.
    Status check_hosts() const;
    bool is_lost() const { return !check_hosts().ok(); }

    /// special: the vocabulary's control tokens in the text are read as such.
    Tokens tokenize(std::string_view text, bool add_bos, bool special) const;
    std::string piece(llama_token token, bool special = false) const;
    /// Bytes beyond which no text has so few tokens: worth knowing before it is read for minutes.
    std::size_t most_bytes(std::size_t tokens) const { return tokens * bytes_per_token_; }
    bool ends_answer(llama_token token) const;
    int vocabulary_size() const;
    /// Whether a sequence's memory may be cut at any token and shared from its start: not in recurrent
    /// models.
    bool memory_is_divisible() const { return divisible_; }

private:
    Model() = default;
    Status read_weights(const ModelSettings& settings, Placement& placement);
    Status read_adapters(const ModelSettings& settings);
    Status read_projector(const ModelSettings& settings);

    std::vector<std::shared_ptr<remote::Host>> hosts_;
    llama_model* model_ = nullptr;
    const llama_vocab* vocab_ = nullptr;
    common_chat_templates* templates_ = nullptr;
    std::vector<llama_adapter_lora*> adapters_;
    std::unique_ptr<const Projector> projector_;
    std::unique_ptr<Grammars> grammars_;
    std::string path_, description_;
    Parameters metadata_;
    std::uint64_t weights_sample_ = 0;
    int layers_on_gpu_ = 0;
    std::size_t bytes_per_token_ = 0;
    bool divisible_ = true, jinja_ = true;
};

/// Loads ggml's devices and llama.cpp, once per process.
void start_llama();

/// Has our own matmul kernels loaded (packed_kernels.h), also where ggml's are faster and they are not
/// offered. Errors: a model of this process has ggml's; this machine cannot.
Status require_packed_kernels();

/// Whether ggml has a GPU's device.
bool has_gpu();

}  // namespace headrace::llm
