#include "llm/parameters/rules.h"

#include <algorithm>

#include "llm/stopping/pattern_search.h"

namespace headrace::llm {
namespace {

Status check_grammar(const ParameterUpdate& update) {
    RequestSettings& request = update.settings.request;
    const bool schema_given = update.has({"grammar.json_schema", "grammar.response_format"});
    if (!request.grammar.empty() && !request.json_schema.empty()) {
        if (schema_given == update.has({"grammar.gbnf"})) {
            HR_TRY(update.settle("json_schema",
                                 invalid("'grammar' and 'json_schema' exclude each other; give one of them"),
                                 "the grammar is kept"));
            request.json_schema.clear();
        }
    }
    if (!request.grammar.empty() && !request.json_schema.empty()) {
        // The nearer of the two replaces an inherited one.
        (schema_given ? request.grammar : request.json_schema).clear();
        update.warn(schema_given ? "grammar" : "json_schema", false,
                    fmt::format("'{}' replaces the inherited {}", schema_given ? "json_schema" : "grammar",
                                schema_given ? "grammar" : "json_schema"));
    }
    const auto& triggers = request.sampling.grammar_triggers;
    if (request.grammar_lazy && triggers.empty()) {
        HR_TRY(update.settle(
            "grammar_lazy",
            invalid("'grammar_lazy' is true, but nothing starts the grammar; give 'grammar_triggers'"),
            "the grammar rules from the start"));
        request.grammar_lazy = false;
    }
    if (!update.has({"grammar.lazy", "grammar.triggers"})) return success();
    if (!triggers.empty() && !request.grammar_lazy)
        update.warn("grammar_triggers", false,
                    "'grammar_triggers' has no effect unless 'grammar_lazy' is true");
    if (request.grammar_lazy && request.grammar.empty() && request.json_schema.empty())
        update.warn("grammar_lazy", false, "'grammar_lazy' has no effect without 'grammar' or 'json_schema'");
    return success();
}

void check_sampling(const ParameterUpdate& update) {
    SamplingSettings& sampling = update.settings.request.sampling;
    if (sampling.dry_base < 1) {
        update.warn("dry_base", true,
                    fmt::format("'dry_base' is {}; {} is used, as it must be at least 1", sampling.dry_base,
                                update.base.request.sampling.dry_base));
        sampling.dry_base = update.base.request.sampling.dry_base;
    }
    if (sampling.dynatemp_range > sampling.temp && update.has({"sampling.temp", "sampling.dynatemp.range"}))
        update.warn("dynatemp_range", false,
                    fmt::format("'dynatemp_range' is {}, more than the temperature {}: its lower end is 0",
                                sampling.dynatemp_range, sampling.temp));
    if (sampling.xtc_probability > 0 && sampling.xtc_threshold > 0.5f &&
        update.has({"sampling.xtc.probability", "sampling.xtc.threshold"}))
        update.warn("xtc_threshold", false,
                    fmt::format("'xtc_threshold' is {}; above 0.5 'xtc_probability' has no effect",
                                sampling.xtc_threshold));
    if (sampling.mirostat != 0)
        for (std::string_view path :
             {"sampling.samplers", "sampling.top_k", "sampling.top_p", "sampling.min_p", "sampling.typical_p",
              "sampling.top_n_sigma", "sampling.xtc.probability"})
            if (update.has({path}))
                update.warn(
                    path, false,
                    fmt::format("'{}' has no effect while 'mirostat' is {}", path, sampling.mirostat));
    if (update.settings.request.post_sampling_probs && sampling.n_probs == 0 &&
        update.has({"output.post_sampling_probs"}))
        update.warn("post_sampling_probs", false, "'post_sampling_probs' has no effect without 'n_probs'");
}

Status check_attention(const ParameterUpdate& update) {
    ContextSettings& context = update.settings.context;
    const bool quantized = !context.type_v.ends_with("f16") && context.type_v != "f32";
    const bool split = update.settings.model.split_mode == "tensor";
    if (!quantized && !split) return success();
    const std::string what =
        quantized ? fmt::format("'type_v' is {}", context.type_v) : "'split_mode' is tensor";
    if (context.flash_attn == "off") {
        HR_TRY(update.settle("flash_attn",
                             invalid("{}, which needs flash attention; set 'flash_attn' to on or auto, or {}",
                                     what, quantized ? "'type_v' to f16" : "'split_mode' to layer"),
                             "it is on"));
        context.flash_attn = "on";
    }
    if (context.flash_attn == "auto") {
        context.flash_attn = "on";
        update.warn("flash_attn", false, fmt::format("'flash_attn' is on, as {}", what));
    }
    return success();
}

/// Answers are the same beside any others only as far as attention over f16 caches is.
Status check_invariance(const ParameterUpdate& update) {
    ContextSettings& context = update.settings.context;
    if (!context.batch_invariant) return success();
    std::string reason;
    if (context.type_k != "f16" || context.type_v != "f16")
        reason = fmt::format("needs caches of f16, and 'type_k' is {} and 'type_v' {}; leave these out",
                             context.type_k, context.type_v);
    else if (context.flash_attn == "off")
        reason = "needs flash attention; set 'flash_attn' to auto or on";
    else if (context.embeddings)
        reason = "is for models that write, and not for vectors; leave it out";
    if (reason.empty()) return success();
    HR_TRY(update.settle("batch_invariant", invalid("'batch_invariant' {}", reason), "it is off"));
    context.batch_invariant = false;
    return success();
}

void lower(const ParameterUpdate& update, std::string_view name, int& value, int limit,
           std::string_view reason) {
    if (value <= limit) return;
    update.warn(name, false, fmt::format("'{}' is {} in place of {}, {}", name, limit, value, reason));
    value = limit;
}

void check_context(const ParameterUpdate& update) {
    ContextSettings& context = update.settings.context;
    if (context.n_parallel < 1) context.n_parallel = ContextSettings().n_parallel;
    lower(update, "n_ubatch", context.n_ubatch, context.n_batch, "as 'n_batch'");
    if (context.embeddings && !update.has({"context.n_batch"}))
        context.n_batch = std::min(context.n_batch, context.n_ubatch);
    if (context.embeddings)
        lower(update, "n_batch", context.n_batch, context.n_ubatch,
              "as 'n_ubatch': embeddings need a text at once");
    lower(update, "n_parallel", context.n_parallel, context.max_sequences, "as 'max_sequences'");
    for (std::string_view path : {"context_shift.n_keep", "context_shift.n_discard"})
        if (update.has({path}) && !context.context_shift)
            update.warn(path, false, fmt::format("'{}' has no effect unless 'context_shift' is true", path));
    const bool idle_cache = update.has({"cache.retention_ms", "cache.ram_mib", "cache.dir"}) &&
                            !update.settings.cache.enable_prompt_cache;
    if (idle_cache)
        update.warn("enable_prompt_cache", false,
                    "'retention_ms', 'ram_mib' and 'cache_dir' have no effect without it");
    if (update.has({"cache.disk_mib"}) && update.settings.cache.dir.empty())
        update.warn("disk_mib", false, "'disk_mib' has no effect without 'cache_dir'");
}

void check_queue(const ParameterUpdate& update) {
    QueueSettings& queue = update.settings.queue;
    if (queue.reject_threshold > 0)
        lower(update, "max_waiting", queue.max_waiting, queue.reject_threshold,
              "as 'queue_reject_threshold'");
}

/// Read leniently, a pattern that cannot be used is left out; otherwise the request that uses it says why.
void check_patterns(const ParameterUpdate& update) {
    StoppingSettings& stopping = update.settings.request.stopping;
    if (!update.base.lenient || !update.has({"stopping.patterns", "stopping.trigger_patterns",
                                             "stopping.filter_patterns", "grammar.triggers"}))
        return;
    std::vector<std::string> from_start, later;
    const auto keep_usable = [&](std::vector<std::string>& patterns, std::vector<std::string>& usable) {
        std::erase_if(patterns, [&](const std::string& pattern) {
            usable.push_back(pattern);
            const auto search = PatternSearch::create(from_start, later);
            if (search.ok()) return false;
            usable.pop_back();
            update.warn("patterns", true, search.error().message + "; it is left out");
            return true;
        });
    };
    keep_usable(stopping.patterns, from_start);
    keep_usable(stopping.trigger_patterns, later);
    keep_usable(stopping.filter_patterns, later);
}

/// Warns that a value was set to another because of the model's numbers.
class Adjuster {
public:
    explicit Adjuster(Warnings& warnings) : warnings_(warnings) {}

    void set(std::string_view name, int& value, int wanted, std::string_view reason) {
        if (value == wanted) return;
        warnings_.push_back(
            {std::string(name), fmt::format("'{}' is {} in place of {}: {}", name, wanted, value, reason)});
        value = wanted;
    }
    void at_most(std::string_view name, int& value, int limit, std::string_view reason) {
        set(name, value, std::min(value, limit), reason);
    }
    void warn(std::string_view name, std::string message) {
        warnings_.push_back({std::string(name), std::move(message)});
    }

private:
    Warnings& warnings_;
};

Status check_tokens(RequestSettings& request, int n_vocab, Adjuster& adjuster) {
    auto& biases = request.sampling.logit_bias;
    const std::size_t unknown =
        std::erase_if(biases, [&](const TokenBias& bias) { return bias.token >= n_vocab; });
    if (unknown > 0)
        adjuster.warn("logit_bias",
                      fmt::format("'logit_bias' names {} tokens that the vocabulary of {} does not have; "
                                  "they are left out",
                                  unknown, n_vocab));
    for (const GrammarTrigger& trigger : request.sampling.grammar_triggers)
        if (trigger.token >= n_vocab)
            return invalid("'grammar_triggers' names the token {}; the model's vocabulary has {} tokens",
                           trigger.token, n_vocab)
                .of_parameter("grammar_triggers");
    return success();
}

}  // namespace

bool ParameterUpdate::has(std::initializer_list<std::string_view> paths) const {
    return std::any_of(paths.begin(), paths.end(),
                       [&](std::string_view path) { return given.contains(path); });
}

Status check_temperature(const Settings& settings) {
    constexpr float kHottest = 2;
    const float given = settings.request.sampling.temp;
    if (given <= kHottest) return success();
    return invalid("'temperature' is {}; it must be a number from 0 to {}", given, kHottest)
        .of_parameter("temperature");
}

Status check_together(const ParameterUpdate& update) {
    HR_TRY(check_grammar(update));
    HR_TRY(check_attention(update));
    HR_TRY(check_invariance(update));
    if (update.settings.strict) HR_TRY(check_temperature(update.settings));
    check_sampling(update);
    check_context(update);
    check_queue(update);
    check_patterns(update);
    return success();
}

Status adjust(Settings& settings, int n_ctx, int n_vocab, Warnings& warnings) {
    if (n_ctx < 1 || n_vocab < 1)
        return invalid("a context of {} tokens and a vocabulary of {} cannot be; both must be at least 1",
                       n_ctx, n_vocab);
    Adjuster adjuster(warnings);
    SamplingSettings& sampling = settings.request.sampling;
    for (auto [name, last_n] : {std::pair{"penalty_last_n", &sampling.penalty_last_n},
                                std::pair{"dry_penalty_last_n", &sampling.dry_penalty_last_n}})
        adjuster.set(name, *last_n, *last_n < 0 ? n_ctx : std::min(*last_n, n_ctx), "the context's size");
    adjuster.at_most("min_keep", sampling.min_keep, n_vocab, "the vocabulary's size");
    adjuster.at_most("n_probs", sampling.n_probs, n_vocab, "the vocabulary's size");
    adjuster.at_most("n_batch", settings.context.n_batch, std::max(n_ctx, settings.context.n_ctx),
                     "the context's size");
    adjuster.at_most("n_ubatch", settings.context.n_ubatch, settings.context.n_batch, "n_batch");
    // llama.cpp's shift leaves room for four tokens.
    const int most = std::max(n_ctx - 4, 0);
    adjuster.at_most("n_keep", settings.request.n_keep, most, "a context shift needs room for new tokens");
    const int kept = std::max(settings.request.n_keep, 0);
    adjuster.at_most("n_discard", settings.request.n_discard, std::max(n_ctx - kept - 1, 0),
                     "no more is left of the context besides n_keep");
    return check_tokens(settings.request, n_vocab, adjuster);
}

}  // namespace headrace::llm
