#include "llm/engine/block_store.h"

#include <algorithm>
#include <bit>
#include <string_view>

#include "base/log.h"
#include "llm/blocks/file_hash.h"
#include "llm/checks/model_file.h"
#include "llm/model/library_versions.h"
#include "llm/parameters/value.h"

namespace headrace::llm {
namespace {

constexpr std::size_t kMostBlockTokens = 64, kLeastBlockTokens = 16;

/// Their memory is more than keys and values by position, in ways of their own.
constexpr std::string_view kOtherMemories[] = {"deepseek32", "deepseek4", "dflash",    "dots3note",
                                               "glm-dsa",    "hy_v4",     "minimax-m3"};

/// Sizes, threads and ways of loading: keys and values are the same with any of these. What a later version
/// adds is not among them, and so keeps blocks apart.
constexpr std::string_view kWithoutEffect[] = {"context.n_ctx",
                                               "context.n_ctx_per_request",
                                               "context.n_parallel",
                                               "context.max_sequences",
                                               "context.n_batch",
                                               "context.n_ubatch",
                                               "context.n_threads",
                                               "context.n_threads_batch",
                                               "context.adapt_threads",
                                               "model.load_mode",
                                               "model.use_mmap",
                                               "model.use_mlock",
                                               "model.check_tensors",
                                               "model.lazy_mode",
                                               "model.numa",
                                               "model.fit_margin_mib",
                                               "model.replace",
                                               "model.host_timeout_ms",
                                               "context.rope.scale",
                                               "model.mmproj",
                                               "model.mmproj_offload",
                                               "model.image_min_tokens",
                                               "model.image_max_tokens"};

bool has_effect(const Row& row) {
    if (row.ignored() || std::ranges::find(kWithoutEffect, row.path) != std::end(kWithoutEffect))
        return false;
    return row.path.starts_with("model.") || row.path.starts_with("context.") ||
           row.path.starts_with("embedding.");
}

/// Bytes that are no UTF-8 may stand in a path.
std::string shown_whole(const Json& value) {
    return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Result<std::string> hash_text(const std::string& path, const std::string& folder) {
    HR_ASSIGN(const ContentHash hash, file_hash(path, folder));
    return fmt::format("{:016x}{:016x}", hash.high, hash.low);
}

}  // namespace

std::optional<BlockStore> open_block_store(const Model& model, const EngineSettings& settings) {
    const CacheSettings& cache = settings.cache;
    if (cache.dir.empty() || !cache.enable_prompt_cache) return std::nullopt;
    const auto without = [&](const Error& error) -> std::optional<BlockStore> {
        HR_LOG(warn, {}, "cache_dir has no effect on {}: {}", model.path(), error.message);
        return std::nullopt;
    };
    const Result<std::size_t> size = block_size(model, settings);
    if (!size.ok()) return without(size.error());
    constexpr std::uint64_t kMib = std::uint64_t{1} << 20;
    const std::uint64_t most =
        cache.disk_mib < 0 ? UINT64_MAX : static_cast<std::uint64_t>(cache.disk_mib) * kMib;
    BlockStore store{.folder = std::make_shared<BlockFolder>(cache.dir, most), .block_size = size.value()};
    if (most > 0)
        if (const Status prepared = store.folder->prepare(); !prepared.ok()) store.problem = prepared.error();
    const Result<ContentHash> hash = block_model(model, settings, cache.dir);
    if (!hash.ok()) return without(hash.error());
    store.model = hash.value();
    return store;
}

Result<std::size_t> block_size(const Model& model, const EngineSettings& settings) {
    const ParameterValue* given = model.metadata().find("general.architecture");
    const auto* architecture = given ? std::get_if<std::string>(given) : nullptr;
    if (!model.memory_is_divisible())
        return unsupported("models with a recurrent state cannot be stored in parts");
    if (!model.hosts().empty())
        return unsupported("keys and values that lie on other machines are not stored on this one");
    if (architecture && std::ranges::find(kOtherMemories, *architecture) != std::end(kOtherMemories))
        return unsupported("the memory of '{}' models cannot be stored in parts", *architecture);
    const auto window = static_cast<std::size_t>(std::max(0, llama_model_n_swa(model.get())));
    if (window == 0) return kMostBlockTokens;
    if (!settings.context.swa_full)
        return unsupported("without swa_full a sliding window forgets what was read");
    // llama.cpp's state leaves out what the last token of it does not see. Some windows lie on both sides.
    const std::size_t size = std::min(kMostBlockTokens, std::bit_floor(window / 2));
    if (size < kLeastBlockTokens) return unsupported("the sliding window has only {} tokens", window);
    return size;
}

Result<ContentHash> block_model(const Model& model, const EngineSettings& settings,
                                const std::string& folder) {
    std::string text = library_versions();
    HR_ASSIGN(const ModelFile file, inspect_model_file(model.path(), settings.model.kv_overrides));
    HR_ASSIGN(const std::string own, hash_text(model.path(), folder));
    text += '\n' + own;
    for (const std::string& part : file.parts) {
        HR_ASSIGN(const std::string hash, hash_text(part, folder));
        text += '\n' + hash;
    }
    for (const auto& [path, scale] : settings.model.lora) {
        HR_ASSIGN(const std::string hash, hash_text(path, folder));
        text += fmt::format("\n{} * {}", hash, scale);
    }
    Settings all;
    static_cast<EngineSettings&>(all) = settings;
    for (const Row* row : parameter_rows())
        if (has_effect(*row)) text += fmt::format("\n{} = {}", row->path, shown_whole(value_of(*row, all)));
    return content_hash(text.data(), text.size());
}

}  // namespace headrace::llm
