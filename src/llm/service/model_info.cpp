#include "llm/service/model_info.h"

#include <common/chat.h>
#include <llama.h>

#include <algorithm>

#include "llm/images/projector.h"
#include "llm/model/model.h"

namespace headrace::llm {
namespace {

std::string piece_of(const Model& model, llama_token token) {
    return token == LLAMA_TOKEN_NULL ? std::string() : model.piece(token, true);
}

std::string_view name_of(enum llama_vocab_type type) {
    switch (type) {
        case LLAMA_VOCAB_TYPE_SPM: return "SPM";
        case LLAMA_VOCAB_TYPE_BPE: return "BPE";
        case LLAMA_VOCAB_TYPE_WPM: return "WPM";
        case LLAMA_VOCAB_TYPE_UGM: return "UGM";
        case LLAMA_VOCAB_TYPE_RWKV: return "RWKV";
        case LLAMA_VOCAB_TYPE_PLAMO2: return "PLaMo2";
        default: return "none";
    }
}

void add_vocabulary(ModelInfo& info, const Model& model) {
    const llama_vocab* vocab = model.vocab();
    info.vocabulary = name_of(llama_vocab_type(vocab));
    info.vocabulary_size = model.vocabulary_size();
    info.begin_of_text = piece_of(model, llama_vocab_bos(vocab));
    info.end_of_text = piece_of(model, llama_vocab_eos(vocab));
    info.fill_prefix = llama_vocab_fim_pre(vocab);
    info.fill_suffix = llama_vocab_fim_suf(vocab);
    info.fill_middle = llama_vocab_fim_mid(vocab);
    info.fill_repository = llama_vocab_fim_rep(vocab);
    info.fill_separator = llama_vocab_fim_sep(vocab);
}

}  // namespace

ModelInfo info_of(const LoadedModel& loaded) {
    const Model& model = loaded.runner.model();
    ModelInfo info{.path = loaded.path, .description = model.description()};
    if (common_chat_templates_was_explicit(model.templates())) {
        info.chat_template = common_chat_templates_source(model.templates());
        info.template_abilities = common_chat_templates_get_caps(model.templates());
        info.template_abilities["supports_thinking"] =
            common_chat_templates_support_enable_thinking(model.templates());
    }
    add_vocabulary(info, model);
    info.training_context = llama_model_n_ctx_train(model.get());
    info.embedding_size = llama_model_n_embd(model.get());
    info.parameters = static_cast<std::int64_t>(llama_model_n_params(model.get()));
    info.bytes = static_cast<std::int64_t>(llama_model_size(model.get()));
    info.metadata = model.metadata();
    info.weights_sample = model.weights_sample();
    const std::int64_t layers = llama_model_n_layer(model.get()) + 1;  // the output counts as one
    const std::int64_t elsewhere = model.layers_on_gpu() < 0 ? layers : model.layers_on_gpu();
    info.device_bytes = info.bytes / layers * std::min(elsewhere, layers);
    if (const Projector* projector = model.projector())
        info.bytes += static_cast<std::int64_t>(projector->bytes());
    info.parallel = loaded.settings.context.n_parallel;
    info.adapters = loaded.settings.model.lora;
    if (const Engine* engine = loaded.runner.engine.get()) {
        info.context_tokens = engine->context_tokens();
        info.context_bytes = static_cast<std::int64_t>(engine->context_bytes());
        info.reads_images = engine->model().projector() != nullptr;
        info.request_tokens = engine->context_size();
    } else {
        info.request_tokens = static_cast<std::int64_t>(loaded.runner.embedder->longest());
        info.context_tokens = info.request_tokens;
    }
    return info;
}

}  // namespace headrace::llm
