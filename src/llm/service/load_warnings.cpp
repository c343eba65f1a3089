#include "llm/service/load_warnings.h"

#include <algorithm>

#include "base/cpu_count.h"
#include "base/log.h"
#include "llm/model/context_params.h"
#include "llm/parameters/parameters.h"

namespace headrace::llm {
namespace {

/// Keeps a warning, which whoever loads the model shows, and logs it for those who do not.
void add_warning(Warnings& warnings, std::string_view parameter, std::string message) {
    HR_LOG(info, {}, "{}: {}", parameter, message);
    warnings.push_back({std::string(parameter), std::move(message)});
}

void warn_of_gpu_settings(const Settings& settings, Warnings& warnings) {
    const ModelSettings &model = settings.model, usual;
    const std::pair<std::string_view, bool> given[] = {
        {"n_gpu_layers", model.n_gpu_layers > 0},
        {"split_mode", model.split_mode != usual.split_mode},
        {"main_gpu", model.main_gpu != usual.main_gpu},
        {"tensor_split", !model.tensor_split.empty()},
        {"fit_margin_mib", model.fit_margin_mib != usual.fit_margin_mib},
        {"offload_kqv", !settings.context.offload_kqv},
    };
    for (const auto& [parameter, is_given] : given)
        if (is_given)
            add_warning(warnings, parameter,
                        fmt::format("'{}' has no effect: ggml finds no GPU here, the CPU runs all layers",
                                    parameter));
}

void warn_of_threads(const Model& model, const ContextSettings& context, Warnings& warnings) {
    const int most = most_threads(model);
    for (const auto& [parameter, threads] :
         {std::pair{"n_threads", context.n_threads}, std::pair{"n_threads_batch", context.n_threads_batch}})
        if (threads > most)
            add_warning(warnings, parameter,
                        fmt::format("'{}' is {} in place of {}: {}", parameter, most, threads,
                                    most < usable_cpus() ? "more threads slow a model of that size down"
                                                         : "the process may use no more cores"));
}

void warn_of_context_size(const Engine& engine, const ContextSettings& context, Warnings& warnings) {
    if (context.n_ctx > 0 && context.n_ctx != engine.context_tokens())
        add_warning(
            warnings, "n_ctx",
            fmt::format(
                "'n_ctx' is {} in place of {}: contexts are multiples of 256 tokens, of which each of "
                "max_sequences needs one",
                engine.context_tokens(), context.n_ctx));
    const int trained = llama_model_n_ctx_train(engine.model().get());
    if (context.n_ctx == kTrainedContext && engine.context_tokens() < trained)
        add_warning(
            warnings, "n_ctx",
            fmt::format(
                "the context holds {} tokens of the {} that the model was trained with: this machine's "
                "memory has no room for more. type_k and type_v q8_0 take half",
                engine.context_tokens(), trained));
    const bool is_stretched =
        !context.rope_scaling.empty() || context.rope_freq_base > 0 || context.rope_freq_scale > 0;
    if (context.n_ctx > trained && !is_stretched)
        add_warning(
            warnings, "n_ctx",
            fmt::format(
                "'n_ctx' is {}, and the model was trained with {} tokens: answers beyond may make no sense",
                context.n_ctx, trained));
}

}  // namespace

void warn_of_placement(const Runner& runner, const Settings& settings, Warnings& warnings) {
    if (!has_gpu() && runner.model().hosts().empty()) warn_of_gpu_settings(settings, warnings);
    warn_of_threads(runner.model(), settings.context, warnings);
    if (!runner.engine) return;
    warn_of_context_size(*runner.engine, settings.context, warnings);
    if (!settings.context.draft_model.empty() && !settings.request.speculation.enabled)
        add_warning(
            warnings, "draft_model",
            "'draft_model' drafts only for requests with 'speculative' true; the load may set that for all "
            "of "
            "them");
    for (const auto& [parameter, value] : {std::pair{"pooling", &settings.context.pooling},
                                           std::pair{"attention", &settings.context.attention}})
        if (!value->empty())
            add_warning(
                warnings, parameter,
                fmt::format("'{}' has no effect: the model generates text. 'embeddings' true makes vectors",
                            parameter));
}

Status adjust_to(const Engine& engine, Settings& settings, Warnings& warnings) {
    const int n_ctx = engine.context_size(), n_vocab = engine.model().vocabulary_size();
    Settings usual;
    Warnings expected, changes;
    HR_TRY(adjust(usual, n_ctx, n_vocab, expected));
    HR_TRY(adjust(settings, n_ctx, n_vocab, changes));
    for (Warning& change : changes)
        if (std::none_of(expected.begin(), expected.end(),
                         [&](const Warning& other) { return other.message == change.message; }))
            add_warning(warnings, change.parameter, std::move(change.message));
    return success();
}

}  // namespace headrace::llm
