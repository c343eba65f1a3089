#include "llm/checks/model_file.h"

#include <common/common.h>
#include <ggml-cpu.h>
#include <ggml.h>
#include <gguf.h>
#include <llama.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <memory>

#include "base/content_hash.h"
#include "base/gguf_magic.h"
#include "base/machine_memory.h"
#include "llm/checks/model_metadata.h"
#include "llm/log/llama_log.h"

namespace headrace::llm {
namespace {

struct Free {
    void operator()(gguf_context* gguf) const { gguf_free(gguf); }
    void operator()(ggml_context* tensors) const { ggml_free(tensors); }
};
using Gguf = std::unique_ptr<gguf_context, Free>;
using Shapes = std::unique_ptr<ggml_context, Free>;

Status starts_with_magic(const std::string& path) {
    std::error_code error;
    if (std::filesystem::is_directory(path, error))
        return failure(Code::not_found,
                       "{}: this is a folder, and a model is a GGUF file; headrace serve --models-dir FOLDER "
                       "serves all of a "
                       "folder",
                       path);
    if (!std::filesystem::is_regular_file(path, error))
        return failure(Code::not_found, "{}: {}", path,
                       std::filesystem::exists(path, error)
                           ? "this is a pipe, a socket or a device, and no file"
                           : "there is no such file");
    std::ifstream file(path, std::ios::binary);
    std::array<char, kGgufMagic.size()> magic{};
    if (!file.read(magic.data(), magic.size()))
        return invalid("{}: the file has {} bytes and cannot be a GGUF model", path, file.gcount());
    if (std::string_view(magic.data(), magic.size()) != kGgufMagic)
        return invalid(
            "{}: the file does not start with 'GGUF', so it is no language model. ONNX models and graph "
            "files "
            "are for headrace run, headrace.load, or --embed and --rank of headrace serve",
            path);
    return success();
}

Result<std::string> architecture_of(const gguf_context* gguf) {
    const std::int64_t id = gguf_find_key(gguf, "general.architecture");
    if (id < 0) return invalid("the key general.architecture is missing");
    if (gguf_get_kv_type(gguf, id) != GGUF_TYPE_STRING) return invalid("general.architecture is no text");
    return std::string(gguf_get_val_str(gguf, id));
}

/// ggml multiplies by a tensor of any other type through a function that does not exist.
bool can_multiply(ggml_type type) {
    return type == GGML_TYPE_F32 || (ggml_get_type_traits(type)->to_float != nullptr &&
                                     ggml_get_type_traits_cpu(type)->vec_dot != nullptr);
}

/// Norms, biases and the like are added to and multiplied with floats, and nothing else.
bool is_elementwise(const ggml_tensor& tensor) {
    return tensor.ne[1] == 1 && tensor.ne[2] == 1 && tensor.ne[3] == 1;
}

Status check_tensor(const ggml_tensor& tensor) {
    const std::string_view name = tensor.name;
    const bool is_table = name.find("d2t") != name.npos || name.find("tid2eid") != name.npos;  // of token ids
    if (!can_multiply(tensor.type) && !is_table)
        return invalid("tensor {} has the type {}, which no model uses for weights", tensor.name,
                       ggml_type_name(tensor.type));
    const bool must_be_float = name.ends_with("norm.weight") || name.ends_with(".bias");
    if (must_be_float && is_elementwise(tensor) && tensor.type != GGML_TYPE_F32)
        return invalid("tensor {} has the type {}, and F32 is expected", tensor.name,
                       ggml_type_name(tensor.type));
    if (ggml_nelements(&tensor) == 0) return invalid("tensor {} is empty", tensor.name);
    return success();
}

Result<std::uint64_t> check_tensors(const gguf_context* gguf, const ggml_context* tensors,
                                    std::uint64_t file_bytes) {
    const std::uint64_t start = gguf_get_data_offset(gguf);
    std::uint64_t bytes = 0;
    for (std::int64_t i = 0; i < gguf_get_n_tensors(gguf); ++i) {
        const char* name = gguf_get_tensor_name(gguf, i);
        const std::uint64_t offset = start + gguf_get_tensor_offset(gguf, i),
                            size = gguf_get_tensor_size(gguf, i);
        if (offset > file_bytes || size > file_bytes - offset)
            return invalid("tensor {} ends at byte {}, and the file has {}: it is not complete", name,
                           offset + size, file_bytes);
        HR_TRY(check_tensor(*ggml_get_tensor(const_cast<ggml_context*>(tensors), name)));
        bytes += size;
    }
    return bytes;
}

/// Sets what llama.cpp will find for a key; a text that is no override does nothing there, either.
void replace_value(gguf_context* gguf, const std::string& text) {
    std::vector<llama_model_kv_override> parsed;
    if (!string_parse_kv_override(text.c_str(), parsed)) return;
    const llama_model_kv_override& value = parsed.front();
    if (std::string_view(value.key) == "general.alignment")
        return;  // ggml asserts it, and has read it already
    switch (value.tag) {
        case LLAMA_KV_OVERRIDE_TYPE_INT:
            return gguf_set_val_u32(gguf, value.key, static_cast<std::uint32_t>(value.val_i64));
        case LLAMA_KV_OVERRIDE_TYPE_FLOAT:
            return gguf_set_val_f32(gguf, value.key, static_cast<float>(value.val_f64));
        case LLAMA_KV_OVERRIDE_TYPE_BOOL: return gguf_set_val_bool(gguf, value.key, value.val_bool);
        case LLAMA_KV_OVERRIDE_TYPE_STR: return gguf_set_val_str(gguf, value.key, value.val_str);
    }
}

/// llama.cpp counts the output as one more layer; a tied one is the embedding's table again.
class Layers {
public:
    void add(const gguf_context* gguf) {
        for (std::int64_t i = 0; i < gguf_get_n_tensors(gguf); ++i)
            add(gguf_get_tensor_name(gguf, i), gguf_get_tensor_size(gguf, i));
    }
    /// Bytes of each; none of a file whose layers' numbers make no sense.
    std::vector<std::uint64_t> bytes() const {
        if (blocks_.size() > kMost) return {};
        std::vector<std::uint64_t> layers = blocks_;
        layers.push_back(output_ + (has_output_ ? 0 : table_));
        return layers;
    }

private:
    static constexpr std::size_t kMost = 4096;

    void add(std::string_view name, std::uint64_t bytes) {
        unsigned layer = 0;
        if (name.starts_with("blk.") &&
            std::from_chars(name.data() + 4, name.data() + name.size(), layer).ec == std::errc()) {
            if (layer >= blocks_.size()) blocks_.resize(std::min<std::size_t>(layer, kMost) + 1);
            blocks_[std::min<std::size_t>(layer, kMost)] += bytes;
        } else if (name.starts_with("output")) {
            output_ += bytes;
            has_output_ |= name == "output.weight";
        } else if (name == "token_embd.weight") {
            table_ = bytes;
        }
    }

    std::vector<std::uint64_t> blocks_;
    std::uint64_t output_ = 0, table_ = 0;
    bool has_output_ = false;
};

/// A file's header; the tensors have no data.
struct Header {
    Gguf gguf;
    Shapes shapes;
    std::uint64_t file_bytes = 0;
};

Result<Header> read_header(const std::string& path) {
    HR_TRY(starts_with_magic(path));
    take_llama_errors();
    ggml_context* shapes = nullptr;
    Header header;
    header.gguf.reset(gguf_init_from_file(path.c_str(), {.no_alloc = true, .ctx = &shapes}));
    header.shapes.reset(shapes);
    if (!header.gguf) return invalid("{}: the GGUF header is damaged: {}", path, take_llama_errors());
    header.file_bytes = std::filesystem::file_size(path);
    return header;
}

/// The other files of a model that is split, beside the first; none of one that is not.
std::vector<std::string> other_parts(const std::string& path, const gguf_context* gguf) {
    const std::int64_t id = gguf_find_key(gguf, "split.count");
    if (id < 0 || gguf_get_kv_type(gguf, id) != GGUF_TYPE_UINT16) return {};
    const int count = gguf_get_val_u16(gguf, id);
    std::string prefix(path.size() + 1, 0);
    if (llama_split_prefix(prefix.data(), prefix.size(), path.c_str(), 0, count) <= 0) return {};
    std::vector<std::string> parts;
    for (int part = 1; part < count; ++part) {
        std::string name(path.size() + 1, 0);
        name.resize(static_cast<std::size_t>(
            llama_split_path(name.data(), name.size(), prefix.c_str(), part, count)));
        parts.push_back(std::move(name));
    }
    return parts;
}

/// What makes a score of a text, under llama.cpp's names; some rankers have only one of them.
bool has_ranking_head(const gguf_context* gguf) {
    return gguf_find_tensor(gguf, "cls.weight") >= 0 || gguf_find_tensor(gguf, "cls.output.weight") >= 0;
}

Status add_parts(const std::string& path, const gguf_context* gguf, ModelFile& file) {
    Layers layers;
    layers.add(gguf);
    file.can_rank = has_ranking_head(gguf);
    file.parts = other_parts(path, gguf);
    for (const std::string& part : file.parts) {
        HR_ASSIGN(const Header header, read_header(part));
        Result<std::uint64_t> bytes =
            check_tensors(header.gguf.get(), header.shapes.get(), header.file_bytes);
        if (!bytes.ok()) return bytes.error().within(part);
        file.bytes += bytes.value();
        layers.add(header.gguf.get());
        file.can_rank |= has_ranking_head(header.gguf.get());
    }
    file.layers = layers.bytes();
    return success();
}

ParameterValue value_of(const gguf_context* gguf, std::int64_t id) {
    switch (gguf_get_kv_type(gguf, id)) {
        case GGUF_TYPE_UINT8: return std::int64_t{gguf_get_val_u8(gguf, id)};
        case GGUF_TYPE_INT8: return std::int64_t{gguf_get_val_i8(gguf, id)};
        case GGUF_TYPE_UINT16: return std::int64_t{gguf_get_val_u16(gguf, id)};
        case GGUF_TYPE_INT16: return std::int64_t{gguf_get_val_i16(gguf, id)};
        case GGUF_TYPE_UINT32: return std::int64_t{gguf_get_val_u32(gguf, id)};
        case GGUF_TYPE_INT32: return std::int64_t{gguf_get_val_i32(gguf, id)};
        case GGUF_TYPE_UINT64: return static_cast<std::int64_t>(gguf_get_val_u64(gguf, id));
        case GGUF_TYPE_INT64: return std::int64_t{gguf_get_val_i64(gguf, id)};
        case GGUF_TYPE_FLOAT32: return gguf_get_val_f32(gguf, id);
        case GGUF_TYPE_FLOAT64: return gguf_get_val_f64(gguf, id);
        case GGUF_TYPE_BOOL: return gguf_get_val_bool(gguf, id);
        case GGUF_TYPE_STRING: return gguf_get_val_str(gguf, id);
        default: return nullptr;
    }
}

Result<ModelFile> inspect(const gguf_context* gguf, const ggml_context* shapes, std::uint64_t file_bytes) {
    ModelFile file;
    HR_ASSIGN(file.architecture, architecture_of(gguf));
    HR_TRY(check_metadata(gguf, file.architecture));
    HR_ASSIGN(file.bytes, check_tensors(gguf, shapes, file_bytes));
    HR_TRY(check_projections(gguf, shapes, file.architecture));
    const std::int64_t trained = gguf_find_key(gguf, (file.architecture + ".context_length").c_str());
    if (trained >= 0 && gguf_get_kv_type(gguf, trained) == GGUF_TYPE_UINT32)
        file.trained_context = gguf_get_val_u32(gguf, trained);
    for (const char* key : {".ssm.state_size", ".ssm.conv_kernel", ".wkv.head_size", ".shortconv.l_cache"})
        file.is_recurrent |= gguf_find_key(gguf, (file.architecture + key).c_str()) >= 0;
    const std::int64_t causal = gguf_find_key(gguf, (file.architecture + ".attention.causal").c_str());
    for (std::int64_t id = 0; id < gguf_get_n_kv(gguf); ++id)
        file.metadata.set(gguf_get_key(gguf, id), value_of(gguf, id));
    file.embeddings =
        causal >= 0 && gguf_get_kv_type(gguf, causal) == GGUF_TYPE_BOOL && !gguf_get_val_bool(gguf, causal);
    return file;
}

}  // namespace

Result<ModelFile> inspect_model_file(const std::string& path, const std::vector<std::string>& overrides) {
    HR_ASSIGN(const Header header, read_header(path));
    for (const std::string& text : overrides) replace_value(header.gguf.get(), text);
    Result<ModelFile> file = inspect(header.gguf.get(), header.shapes.get(), header.file_bytes);
    if (!file.ok()) return file.error().within(path);
    HR_TRY(add_parts(path, header.gguf.get(), file.value()));
    return file;
}

bool pools_by(const ModelFile& file, std::string_view asked, std::string_view name, std::int64_t number) {
    if (!asked.empty()) return asked == name;
    const ParameterValue* own = file.metadata.find(file.architecture + ".pooling_type");
    const auto* kind = own ? std::get_if<std::int64_t>(own) : nullptr;
    return kind && *kind == number;
}

Result<std::uint64_t> sample_weights(const std::vector<std::string>& files) {
    constexpr std::uint64_t kSamples = 256, kBytes = 4096;
    std::string seen;
    for (const std::string& path : files) {
        std::ifstream file(path, std::ios::binary | std::ios::ate);
        const auto size = static_cast<std::uint64_t>(std::max<std::streamoff>(file.tellg(), 0));
        seen += fmt::format("{} ", size);
        for (std::uint64_t i = 0; i < kSamples; ++i) {
            const std::uint64_t last = size - std::min(size, kBytes), at = last / (kSamples - 1) * i;
            const std::size_t before = seen.size(), bytes = std::min(kBytes, size - at);
            seen.resize(before + bytes);
            file.seekg(static_cast<std::streamoff>(at));
            file.read(seen.data() + before, static_cast<std::streamsize>(bytes));
        }
        if (!file) return failure(Code::io, "{}: it cannot be read", path);
    }
    return content_hash(seen.data(), seen.size()).low;
}

Status enough_memory(std::uint64_t bytes) {
    const std::uint64_t available = available_memory();
    if (available >= bytes) return success();
    constexpr double kGib = 1024.0 * 1024.0 * 1024.0;
    return failure(
        Code::out_of_memory,
        "the model's weights need {:.2f} GiB, and {:.2f} GiB are available. Use a smaller quantisation, or "
        "close other programs",
        static_cast<double>(bytes) / kGib, static_cast<double>(available) / kGib);
}

}  // namespace headrace::llm
