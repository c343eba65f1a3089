// Values of flags that say where a model lies, how it is computed and what drafts for it.
#include <algorithm>
#include <utility>

#include "doors/serve/options/flag_values.h"
#include "headrace/option_names.h"

namespace headrace::serve {
namespace {

Status add_adapters(ServeOptions& options, const std::string& text, bool scaled) {
    std::vector<ParameterValue> all;
    if (const ParameterValue* before = options.parameters.find("lora"))
        all = std::get<std::vector<ParameterValue>>(*before);
    for (const std::string& part : parts_of(text)) {
        float scale = 1;
        const auto colon = scaled ? part.rfind(':') : std::string::npos;
        if (scaled && colon == std::string::npos) return invalid("'{}' must be FILE:SCALE", part);
        if (scaled) HR_TRY(read_number(part.substr(colon + 1), -1e6f, 1e6f, scale));
        all.push_back(Parameters{{"path", part.substr(0, colon)}, {"scale", scale}});
    }
    options.parameters.set("lora", std::move(all));
    return success();
}

}  // namespace

Status read_parallel(ServeOptions& options, const std::string& text) {
    long count = 0;
    HR_TRY(read_number(text, -1L, 256L, count));
    if (count == 0) return invalid("0 must be from 1 to 256, or -1 for {}", options.parallel);
    if (count < 0) return success();
    options.parallel = static_cast<std::size_t>(count);
    options.divides = true;
    return success();
}

/// Several by commas: drafts come from the draft model where there is one.
Status read_speculation(ServeOptions& options, const std::string& text) {
    bool drafts = false;
    for (const std::string& kind : parts_of(text)) {
        if (kind != "none" && kind != "draft-simple" && kind != "ngram-simple")
            return unsupported(
                "'{:.40}' must be none, draft-simple (with --model-draft) or ngram-simple, which drafts from "
                "any "
                "repetition",
                kind);
        drafts = drafts || kind != "none";
    }
    options.parameters.set("speculative", drafts);
    return success();
}

Status set_thread_count(ServeOptions& options, const std::string& text, const char* parameter) {
    int count = 0;
    HR_TRY(read_number(text, -1, 512, count));
    options.parameters.set(parameter, std::max(count, 0));
    return success();
}

Status set_context(ServeOptions& options, const std::string& text) {
    std::int64_t tokens = 0;
    HR_TRY(read_number<std::int64_t>(text, 0, 1 << 30, tokens));
    options.parameters.set("n_ctx", tokens);
    return success();
}

Result<std::vector<std::string>> device_names(const std::string& text) {
    if (text == "none") return std::vector<std::string>{"CPU"};
    std::vector<std::string> names = parts_of(text);
    if (names.empty()) return invalid("it is empty; --list-devices shows what there is");
    return names;
}

/// llama-server names other machines without a scheme.
Status add_hosts(ServeOptions& options, const std::string& text) {
    for (const std::string& host : parts_of(text)) {
        if (host.find(':') == std::string::npos) return invalid("'{:.80}' must be host:port", host);
        options.devices.push_back(host.starts_with("rpc://") ? host : "rpc://" + host);
    }
    return success();
}

Status set_shares(ServeOptions& options, const std::string& text) {
    std::string spaced = text;
    std::ranges::replace(spaced, '/', ',');
    std::vector<ParameterValue> shares;
    for (const std::string& part : parts_of(spaced)) {
        float share = 0;
        HR_TRY(read_number(part, 0.0f, 1e6f, share));
        shares.emplace_back(share);
    }
    options.parameters.set("tensor_split", std::move(shares));
    return success();
}

/// The names that llama.cpp gives experts' weights: the others of a layer are not theirs.
Result<std::vector<std::string>> expert_patterns(const std::string& layers) {
    constexpr const char* kExperts = "\\.ffn_(up|down|gate|gate_up)_(ch|)exps";
    if (layers == "all") return std::vector<std::string>{kExperts};
    int count = 0;
    HR_TRY(read_number(layers, 0, 4096, count));
    std::vector<std::string> patterns;
    for (int layer = 0; layer < count; ++layer)
        patterns.push_back(fmt::format("blk\\.{}{}", layer, kExperts));
    return patterns;
}

Status keep_feed_forward(ServeOptions& options, const std::string& text) {
    int count = 0;
    HR_TRY(read_number(text, 0, 4096, count));
    for (int layer = 0; layer < count; ++layer)
        options.kept_tensors.push_back(fmt::format("blk\\.{}\\.ffn_(up|down|gate)\\.", layer));
    return success();
}

Status set_fit(ServeOptions& options, const std::string& text) {
    if (text != "on" && text != "off") return invalid("'{:.40}' must be on or off", text);
    options.fits_layers = text == "on";
    return success();
}

Status set_fit_target(ServeOptions& options, const std::string& text) {
    const std::vector<std::string> parts = parts_of(text);
    int mib = 0;
    if (parts.empty()) return invalid("it is empty; it must be a number of MiB");
    HR_TRY(read_number(parts.front(), 0, 1 << 24, mib));
    if (std::ranges::any_of(parts, [&](const std::string& other) { return other != parts.front(); }))
        return unsupported("'{:.80}' must be one number: the same stays free on every device", text);
    options.parameters.set("fit_margin_mib", mib);
    return success();
}

Status add_plain_adapters(ServeOptions& options, const std::string& text) {
    return add_adapters(options, text, false);
}

Status add_scaled_adapters(ServeOptions& options, const std::string& text) {
    return add_adapters(options, text, true);
}

Status set_ranking(ServeOptions& options, const std::string&) {
    options.parameters.set("embeddings", true);
    options.parameters.set("pooling", "rank");
    return success();
}

Status set_tokenizer(ServeOptions& options, const std::string& text) {
    options.encoder.tokenizer = text;
    return success();
}

Status set_precision(ServeOptions& options, const std::string& text) {
    const auto precision = find_precision(text);
    if (!precision) return invalid("'{:.40}' must be exact or fast", text);
    options.encoder.compile.precision = *precision;
    return success();
}

Status set_draft_model(ServeOptions& options, const std::string& text) {
    options.parameters.set("draft_model", text);
    options.parameters.set("speculative", true);
    return success();
}

}  // namespace headrace::serve
