#include "llm/model_file.h"

#include <gguf.h>

#include <array>
#include <cinttypes>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>

namespace headrace::llm {
namespace {

struct Free {
    void operator()(gguf_context* gguf) const { gguf_free(gguf); }
};
using Gguf = std::unique_ptr<gguf_context, Free>;

Status starts_with_magic(const std::string& path) {
    std::error_code error;
    if (!std::filesystem::is_regular_file(path, error))
        return failure(Code::not_found, "{}: there is no such file", path);
    std::ifstream file(path, std::ios::binary);
    std::array<char, 4> magic{};
    if (!file.read(magic.data(), magic.size()))
        return invalid("{}: the file has {} bytes and cannot be a GGUF model", path, file.gcount());
    if (std::string_view(magic.data(), 4) != "GGUF")
        return invalid("{}: the file does not start with 'GGUF', so it is no model in that format", path);
    return success();
}

/// An integer of any width, or null when the key is absent or of another type.
Result<uint64_t> integer(const gguf_context* gguf, const std::string& key, uint64_t missing) {
    const int64_t id = gguf_find_key(gguf, key.c_str());
    if (id < 0) return missing;
    switch (gguf_get_kv_type(gguf, id)) {
        case GGUF_TYPE_UINT8: return uint64_t{gguf_get_val_u8(gguf, id)};
        case GGUF_TYPE_UINT16: return uint64_t{gguf_get_val_u16(gguf, id)};
        case GGUF_TYPE_UINT32: return uint64_t{gguf_get_val_u32(gguf, id)};
        case GGUF_TYPE_UINT64: return gguf_get_val_u64(gguf, id);
        case GGUF_TYPE_INT32:
            if (gguf_get_val_i32(gguf, id) >= 0) return static_cast<uint64_t>(gguf_get_val_i32(gguf, id));
            return invalid("{} is {}", key, gguf_get_val_i32(gguf, id));
        case GGUF_TYPE_ARRAY: return missing;  // per layer: llama.cpp checks the length
        default: return invalid("{} is not an integer", key);
    }
}

Result<std::string> architecture_of(const gguf_context* gguf) {
    const int64_t id = gguf_find_key(gguf, "general.architecture");
    if (id < 0) return invalid("the key general.architecture is missing");
    if (gguf_get_kv_type(gguf, id) != GGUF_TYPE_STRING) return invalid("general.architecture is no text");
    return std::string(gguf_get_val_str(gguf, id));
}

struct Range {
    const char* key;
    uint64_t least, most, missing;
};

/// llama.cpp divides by some of these, and reserves arrays of others' size.
constexpr Range ranges[] = {
    {"block_count", 1, 4096, 1},
    {"embedding_length", 1, 1u << 20, 1},
    {"context_length", 1, 1u << 30, 1},
    {"feed_forward_length", 0, 1u << 24, 1},
    {"attention.head_count", 0, 1u << 14, 1},
    {"attention.head_count_kv", 0, 1u << 14, 1},
    {"attention.key_length", 1, 1u << 16, 1},
    {"attention.value_length", 1, 1u << 16, 1},
    {"rope.dimension_count", 0, 1u << 16, 1},
    {"vocab_size", 1, 1u << 26, 1},
    {"expert_count", 0, 1u << 14, 0},
    {"expert_used_count", 0, 1u << 14, 0},
};

Status check_sizes(const gguf_context* gguf, const std::string& architecture) {
    for (const Range& range : ranges) {
        const std::string key = architecture + "." + range.key;
        HR_ASSIGN(const uint64_t value, integer(gguf, key, range.missing));
        if (value < range.least || value > range.most)
            return invalid("{} is {}, and {} to {} is sensible", key, value, range.least, range.most);
    }
    HR_ASSIGN(const uint64_t heads, integer(gguf, architecture + ".attention.head_count", 1));
    HR_ASSIGN(const uint64_t groups, integer(gguf, architecture + ".attention.head_count_kv", heads));
    if (groups && heads % groups)
        return invalid("{0}.attention.head_count {1} is no multiple of {0}.attention.head_count_kv {2}",
                       architecture, heads, groups);
    return success();
}

Result<uint64_t> check_tensors(const gguf_context* gguf, uint64_t file_bytes) {
    const uint64_t start = gguf_get_data_offset(gguf);
    uint64_t bytes = 0;
    for (int64_t i = 0; i < gguf_get_n_tensors(gguf); ++i) {
        const uint64_t offset = start + gguf_get_tensor_offset(gguf, i), size = gguf_get_tensor_size(gguf, i);
        if (offset > file_bytes || size > file_bytes - offset)
            return invalid("tensor {} ends at byte {}, and the file has {}: it is not complete",
                           gguf_get_tensor_name(gguf, i), offset + size, file_bytes);
        bytes += size;
    }
    return bytes;
}

}  // namespace

Result<ModelFile> inspect_model_file(const std::string& path) {
    HR_TRY(starts_with_magic(path));
    const Gguf gguf(gguf_init_from_file(path.c_str(), {.no_alloc = true, .ctx = nullptr}));
    if (!gguf) return invalid("{}: the GGUF header is damaged (llama.cpp's log says where)", path);
    auto within = [&](const Error& error) { return error.within(path); };
    const Result<std::string> architecture = architecture_of(gguf.get());
    if (!architecture.ok()) return within(architecture.error());
    if (const Status status = check_sizes(gguf.get(), architecture.value()); !status.ok())
        return within(status.error());
    const Result<uint64_t> bytes = check_tensors(gguf.get(), std::filesystem::file_size(path));
    if (!bytes.ok()) return within(bytes.error());
    ModelFile file{.architecture = architecture.value(), .bytes = bytes.value()};
    const int64_t causal = gguf_find_key(gguf.get(), (file.architecture + ".attention.causal").c_str());
    file.embeddings = causal >= 0 && gguf_get_kv_type(gguf.get(), causal) == GGUF_TYPE_BOOL &&
                      !gguf_get_val_bool(gguf.get(), causal);
    return file;
}

Status enough_memory(const ModelFile& file) {
    std::ifstream info("/proc/meminfo");
    std::string line;
    uint64_t available = 0;
    while (std::getline(info, line))
        if (std::sscanf(line.c_str(), "MemAvailable: %" SCNu64, &available) == 1) break;
    if (!info || available * 1024 >= file.bytes) return success();
    constexpr double gib = 1024.0 * 1024.0 * 1024.0;
    return failure(
        Code::out_of_memory,
        "the model's weights need {:.2f} GiB, and {:.2f} GiB are available. Use a smaller quantisation, or "
        "close other programs",
        file.bytes / gib, available * 1024 / gib);
}

}  // namespace headrace::llm
