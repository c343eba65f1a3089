#include "llm/checks/model_metadata.h"

#include <ggml.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <unordered_set>
#include <vector>

namespace headrace::llm {
namespace {

/// The values of an integer key, one or per layer; none when the key is absent.
Result<std::vector<std::uint64_t>> integers(const gguf_context* gguf, const std::string& key) {
    std::vector<std::uint64_t> values;
    const std::int64_t id = gguf_find_key(gguf, key.c_str());
    if (id < 0) return values;
    const bool array = gguf_get_kv_type(gguf, id) == GGUF_TYPE_ARRAY;
    const gguf_type type = array ? gguf_get_arr_type(gguf, id) : gguf_get_kv_type(gguf, id);
    // llama.cpp takes 32 bits only.
    if (type != GGUF_TYPE_UINT32 && type != GGUF_TYPE_INT32)
        return invalid("{} is of type {}{}, and a 32-bit integer is expected", key, gguf_type_name(type),
                       array ? " array" : "");
    const void* data = array ? gguf_get_arr_data(gguf, id) : gguf_get_val_data(gguf, id);
    const std::size_t count = array ? gguf_get_arr_n(gguf, id) : 1;
    for (std::size_t i = 0; i < count; ++i) {
        const std::int64_t value = type == GGUF_TYPE_UINT32
                                       ? std::int64_t{static_cast<const std::uint32_t*>(data)[i]}
                                       : std::int64_t{static_cast<const std::int32_t*>(data)[i]};
        if (value < 0) return invalid("{} is {}", key, value);
        values.push_back(static_cast<std::uint64_t>(value));
    }
    return values;
}

std::optional<float> number(const gguf_context* gguf, const std::string& key) {
    const std::int64_t id = gguf_find_key(gguf, key.c_str());
    if (id < 0 || gguf_get_kv_type(gguf, id) != GGUF_TYPE_FLOAT32) return std::nullopt;
    return gguf_get_val_f32(gguf, id);
}

std::optional<std::string_view> text(const gguf_context* gguf, const std::string& key) {
    const std::int64_t id = gguf_find_key(gguf, key.c_str());
    if (id < 0 || gguf_get_kv_type(gguf, id) != GGUF_TYPE_STRING) return std::nullopt;
    return gguf_get_val_str(gguf, id);
}

struct MetadataRange {
    const char* key;
    std::uint64_t least, most;
};

/// llama.cpp divides by some of these, asserts others, and reserves memory of others' size. The keys may be
/// absent.
constexpr MetadataRange kRanges[] = {
    {"block_count", 1, 512},
    {"nextn_predict_layers", 0, 16},
    {"embedding_length", 1, 1u << 20},
    {"embedding_length_out", 1, 1u << 20},
    {"context_length", 1, 1u << 30},
    {"feed_forward_length", 0, 1u << 24},
    {"expert_feed_forward_length", 0, 1u << 24},
    {"expert_shared_feed_forward_length", 0, 1u << 24},
    {"leading_dense_block_count", 0, 512},
    {"attention.head_count", 0, 1u << 14},
    {"attention.head_count_kv", 0, 1u << 14},
    {"attention.key_length", 1, 1u << 16},
    {"attention.value_length", 1, 1u << 16},
    {"attention.sliding_window", 0, 1u << 30},
    {"rope.dimension_count", 0, 1u << 16},
    {"vocab_size", 1, 1u << 26},
    {"expert_count", 0, 1024},
    {"expert_used_count", 0, 1024},
    {"expert_group_count", 0, 1024},
    {"expert_group_used_count", 0, 1024},
    {"pooling_type", 0, 4},
    {"classifier.pooling_type", 0, 4},
    {"ssm.conv_kernel", 1, 1u << 10},
    {"ssm.inner_size", 1, 1u << 20},
    {"ssm.state_size", 1, 1u << 16},
    {"ssm.time_step_rank", 1, 1u << 16},
    {"ssm.group_count", 1, 1u << 12},
    {"wkv.head_size", 1, 1u << 12},
    {"token_shift_count", 1, 2},
    {"shortconv.l_cache", 1, 1u << 10},
};

Status check_ranges(const gguf_context* gguf, const std::string& prefix) {
    for (const MetadataRange& range : kRanges) {
        const std::string key = prefix + range.key;
        HR_ASSIGN(const std::vector<std::uint64_t> values, integers(gguf, key));
        for (std::uint64_t value : values)
            if (value < range.least || value > range.most)
                return invalid("{} is {}, and {} to {} is sensible", key, value, range.least, range.most);
    }
    return success();
}

Status check_heads(const gguf_context* gguf, const std::string& prefix) {
    HR_ASSIGN(const auto heads, integers(gguf, prefix + "attention.head_count"));
    HR_ASSIGN(const auto groups, integers(gguf, prefix + "attention.head_count_kv"));
    if (heads.empty() || groups.empty()) return success();
    for (std::size_t i = 0; i < std::max(heads.size(), groups.size()); ++i) {
        const std::uint64_t head_count = heads[std::min(i, heads.size() - 1)];
        const std::uint64_t group_count = groups[std::min(i, groups.size() - 1)];
        if (group_count && head_count % group_count)
            return invalid("{0}attention.head_count {1} is no multiple of {0}attention.head_count_kv {2}",
                           prefix, head_count, group_count);
    }
    return success();
}

/// These rotate whole heads, and assert it when they build their graph.
constexpr std::string_view kRotatesWholeHeads[] = {
    "apertus",    "arcee",      "arctic",   "baichuan",    "chameleon",    "codeshell",   "cogvlm",
    "cohere2moe", "dbrx",       "deci",     "deepseek",    "dots1",        "dream",       "ernie4_5-moe",
    "ernie4_5",   "exaone-moe", "exaone",   "exaone4",     "falcon",       "granite_swa", "graniteswitch",
    "granite",    "grok",       "grovemoe", "hunyuan-moe", "hunyuan_vl",   "hy_v3",       "internlm2",
    "jais2",      "llada-moe",  "llada",    "llama",       "llama4",       "maincoder",   "mellum",
    "mistral3",   "olmo",       "olmo2",    "olmoe",       "orion",        "paddleocr",   "pangu-embedded",
    "plamo",      "pockettts",  "qwen2",    "qwen2moe",    "qwen2vl",      "qwen3",       "qwen3moe",
    "qwen3vl",    "qwen3vlmoe", "rnd1",     "seed_oss",    "smallthinker", "smollm3",     "starcoder2",
    "talkie",     "xverse",
};

bool rotates_heads(const std::string& architecture) {
    return std::find(std::begin(kRotatesWholeHeads), std::end(kRotatesWholeHeads), architecture) !=
           std::end(kRotatesWholeHeads);
}

/// These may have keys and values of different lengths; llama.cpp asserts that no other's differ.
constexpr std::string_view kSplitsLengths[] = {
    "bailingmoe3", "deepseek2", "deepseek2-ocr", "deepseek32", "deepseek4",   "dots3note",
    "glm-dsa",     "glm5-next", "hy_v4",         "kimi-k3",    "kimi-linear", "maple",
    "mimo2",       "minicpm3",  "mistral4",      "plm",        "qwen3tts",    "step35",
};

Status check_rotation(const gguf_context* gguf, const std::string& architecture, const std::string& prefix) {
    HR_ASSIGN(const auto width, integers(gguf, prefix + "embedding_length"));
    HR_ASSIGN(const auto heads, integers(gguf, prefix + "attention.head_count"));
    HR_ASSIGN(const auto key_length, integers(gguf, prefix + "attention.key_length"));
    HR_ASSIGN(const auto value_length, integers(gguf, prefix + "attention.value_length"));
    HR_ASSIGN(const auto rotated, integers(gguf, prefix + "rope.dimension_count"));
    if (width.empty() || heads.empty() || heads.front() == 0) return success();
    const std::uint64_t head = width.front() / heads.front();
    const std::uint64_t key = key_length.empty() ? head : key_length.front();
    const std::uint64_t value = value_length.empty() ? head : value_length.front();
    const std::uint64_t turned = rotated.empty() ? key : rotated.front();
    if (turned % 2)
        return invalid("{}rope.dimension_count is {}, and pairs of values are rotated", prefix, turned);
    const bool may_differ = std::find(std::begin(kSplitsLengths), std::end(kSplitsLengths), architecture) !=
                            std::end(kSplitsLengths);
    if (key != value && !may_differ)
        return invalid(
            "{0}attention.key_length is {1} and {0}attention.value_length {2}; {3} needs them equal", prefix,
            key, value, architecture);
    if (turned > key || (turned != key && rotates_heads(architecture)))
        return invalid("{}rope.dimension_count is {}, and a head has {} values", prefix, turned, key);
    return success();
}

/// The rows of a layer's projection, when it has one of that name.
std::optional<std::uint64_t> rows(const ggml_context* shapes, std::size_t layer, const char* name) {
    const std::string full = fmt::format("blk.{}.{}.weight", layer, name);
    const ggml_tensor* tensor = ggml_get_tensor(const_cast<ggml_context*>(shapes), full.c_str());
    if (!tensor) return std::nullopt;
    return static_cast<std::uint64_t>(tensor->ne[1]);
}

Status check_layers(const gguf_context* gguf, const std::string& prefix) {
    HR_ASSIGN(const auto layers, integers(gguf, prefix + "block_count"));
    HR_ASSIGN(const auto predicting, integers(gguf, prefix + "nextn_predict_layers"));
    if (!layers.empty() && !predicting.empty() && predicting.front() >= layers.front())
        return invalid("{0}nextn_predict_layers is {1}, and {0}block_count {2}", prefix, predicting.front(),
                       layers.front());
    HR_ASSIGN(const auto width, integers(gguf, prefix + "embedding_length"));
    HR_ASSIGN(const auto result, integers(gguf, prefix + "embedding_length_out"));
    if (!width.empty() && !result.empty() && result.front() > width.front())
        return invalid("{0}embedding_length_out is {1}, and {0}embedding_length {2}", prefix, result.front(),
                       width.front());
    return success();
}

Status check_experts(const gguf_context* gguf, const std::string& prefix) {
    auto first = [&](const char* key) -> Result<std::uint64_t> {
        HR_ASSIGN(const auto values, integers(gguf, prefix + key));
        return values.empty() ? 0 : *std::max_element(values.begin(), values.end());
    };
    HR_ASSIGN(const std::uint64_t experts, first("expert_count"));
    HR_ASSIGN(const std::uint64_t used, first("expert_used_count"));
    HR_ASSIGN(const std::uint64_t groups, first("expert_group_count"));
    HR_ASSIGN(const std::uint64_t groups_used, first("expert_group_used_count"));
    if (used > experts || (experts > 0 && used == 0))
        return invalid("{0}expert_used_count is {1}, and {0}expert_count {2}", prefix, used, experts);
    if (groups == 0) return success();
    if (groups >= experts || experts % groups || (groups > 1 && (groups_used == 0 || groups_used >= groups)))
        return invalid("{0}expert_group_count {1} (used: {2}) does not suit {0}expert_count {3}", prefix,
                       groups, groups_used, experts);
    return success();
}

Status check_numbers(const gguf_context* gguf, const std::string& prefix) {
    for (const char* name : {"attention.layer_norm_rms_epsilon", "attention.layer_norm_epsilon",
                             "attention.group_norm_epsilon"}) {
        const auto value = number(gguf, prefix + name);
        if (value && !(*value >= 0 && *value <= 1))
            return invalid("{}{} is {}, and 0 to 1 is sensible", prefix, name, *value);
    }
    const auto scaling = text(gguf, prefix + "rope.scaling.type");
    if (scaling && *scaling != "none" && *scaling != "linear" && *scaling != "yarn" && *scaling != "longrope")
        return invalid("{}rope.scaling.type is '{}', and none, linear, yarn and longrope are known", prefix,
                       *scaling);
    return success();
}

Status check_vocabulary(const gguf_context* gguf) {
    const auto kind = text(gguf, "tokenizer.ggml.model");
    if (kind && (*kind == "none" || *kind == "no_vocab"))
        return unsupported("the model has no vocabulary (tokenizer.ggml.model is '{}')", *kind);
    const std::int64_t id = gguf_find_key(gguf, "tokenizer.ggml.tokens");
    if (id < 0 || gguf_get_kv_type(gguf, id) != GGUF_TYPE_ARRAY ||
        gguf_get_arr_type(gguf, id) != GGUF_TYPE_STRING)
        return invalid("tokenizer.ggml.tokens, the vocabulary, is missing or no list of texts");
    const std::size_t count = gguf_get_arr_n(gguf, id);
    if (count == 0) return invalid("tokenizer.ggml.tokens is empty");
    std::unordered_set<std::string> tokens;
    tokens.reserve(count);
    for (std::size_t i = 0; i < count; ++i) {
        std::string token = gguf_get_arr_str(gguf, id, i);
        if (token.empty()) token = fmt::format("[EMPTY_{}]", i);  // llama.cpp's name for it
        if (!tokens.insert(token).second)
            return invalid("tokenizer.ggml.tokens: token {} has the text of an earlier one", i);
    }
    return success();
}

Status check_templates(const gguf_context* gguf) {
    for (std::int64_t id = 0; id < gguf_get_n_kv(gguf); ++id) {
        const std::string_view key = gguf_get_key(gguf, id);
        if (!key.starts_with("tokenizer.chat_template") || gguf_get_kv_type(gguf, id) != GGUF_TYPE_STRING)
            continue;
        if (const Status status = check_template(gguf_get_val_str(gguf, id)); !status.ok())
            return status.error().within(key);
    }
    return success();
}

}  // namespace

/// llama.cpp cuts the projections' results into heads of these lengths, and asserts that nothing is left.
Status check_projections(const gguf_context* gguf, const ggml_context* shapes,
                         const std::string& architecture) {
    if (!rotates_heads(architecture)) return success();
    const std::string prefix = architecture + ".";
    HR_ASSIGN(const auto layers, integers(gguf, prefix + "block_count"));
    HR_ASSIGN(const auto width, integers(gguf, prefix + "embedding_length"));
    HR_ASSIGN(const auto heads, integers(gguf, prefix + "attention.head_count"));
    HR_ASSIGN(const auto groups, integers(gguf, prefix + "attention.head_count_kv"));
    HR_ASSIGN(const auto length, integers(gguf, prefix + "attention.key_length"));
    if (layers.empty() || width.empty() || heads.empty() || heads.front() == 0) return success();
    const std::uint64_t head = length.empty() ? width.front() / heads.front() : length.front();
    for (std::size_t layer = 0; layer < layers.front(); ++layer) {
        const std::uint64_t head_count = heads[std::min(layer, heads.size() - 1)];
        const std::uint64_t group_count =
            groups.empty() ? head_count : groups[std::min(layer, groups.size() - 1)];
        for (const auto& [name, count] :
             {std::pair("attn_q", head_count), std::pair("attn_k", group_count),
              std::pair("attn_v", group_count), std::pair("attn_qkv", head_count + 2 * group_count)})
            if (const auto found = rows(shapes, layer, name); found && *found != count * head)
                return invalid("blk.{}.{}.weight has {} rows, and {} heads of {} values are expected", layer,
                               name, *found, count, head);
    }
    return success();
}

Status check_metadata(const gguf_context* gguf, const std::string& architecture) {
    const std::string prefix = architecture + ".";
    HR_TRY(check_ranges(gguf, prefix));
    HR_TRY(check_layers(gguf, prefix));
    HR_TRY(check_heads(gguf, prefix));
    HR_TRY(check_rotation(gguf, architecture, prefix));
    HR_TRY(check_experts(gguf, prefix));
    HR_TRY(check_numbers(gguf, prefix));
    HR_TRY(check_vocabulary(gguf));
    return check_templates(gguf);
}

}  // namespace headrace::llm
