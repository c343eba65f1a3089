#include "fuzz/gguf_image.h"

#include <ggml.h>
#include <gguf.h>

#include <cstring>
#include <stdexcept>

namespace headrace::fuzz {
namespace {

constexpr std::uint64_t kAlignment = 32;
constexpr std::uint64_t kMostData = 1u << 28;

template <class T>
void put(std::string& out, T value) {
    out.append(reinterpret_cast<const char*>(&value), sizeof(value));
}
void put_text(std::string& out, std::string_view text) {
    put<std::uint64_t>(out, text.size());
    out += text;
}

std::size_t size_of(std::uint32_t type) {
    switch (type) {
        case GGUF_TYPE_UINT8:
        case GGUF_TYPE_INT8:
        case GGUF_TYPE_BOOL: return 1;
        case GGUF_TYPE_UINT16:
        case GGUF_TYPE_INT16: return 2;
        case GGUF_TYPE_UINT64:
        case GGUF_TYPE_INT64:
        case GGUF_TYPE_FLOAT64: return 8;
        default: return 4;
    }
}

class Reader {
public:
    explicit Reader(std::string_view bytes) : bytes_(bytes) {}
    template <class T>
    T take() {
        T value;
        std::memcpy(&value, take(sizeof(T)).data(), sizeof(T));
        return value;
    }
    std::string_view take(std::size_t size) {
        if (size > bytes_.size()) throw std::runtime_error("the sound model is cut short");
        const std::string_view piece = bytes_.substr(0, size);
        bytes_.remove_prefix(size);
        return piece;
    }
    std::string text() { return std::string(take(take<std::uint64_t>())); }
    std::string value(std::uint32_t type) {
        const std::string_view before = bytes_;
        skip(type);
        return std::string(before.substr(0, before.size() - bytes_.size()));
    }

private:
    void skip(std::uint32_t type) {
        if (type == GGUF_TYPE_STRING) {
            take(take<std::uint64_t>());
        } else if (type == GGUF_TYPE_ARRAY) {
            const auto element = take<std::uint32_t>();
            for (auto count = take<std::uint64_t>(); count > 0; --count) skip(element);
        } else {
            take(size_of(type));
        }
    }
    std::string_view bytes_;
};

/// 0 when ggml knows no such tensor.
std::uint64_t bytes_of(const GgufImage::Tensor& tensor) {
    if (tensor.type >= GGML_TYPE_COUNT) return 0;
    const auto type = static_cast<ggml_type>(tensor.type);
    if (ggml_blck_size(type) == 0) return 0;
    double elements = 1;
    for (const std::uint64_t size : tensor.shape) elements *= static_cast<double>(size);
    const double bytes =
        elements / static_cast<double>(ggml_blck_size(type)) * static_cast<double>(ggml_type_size(type));
    return bytes < static_cast<double>(kMostData) ? static_cast<std::uint64_t>(bytes) : 0;
}

std::uint64_t padded(std::uint64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

}  // namespace

GgufImage GgufImage::read(std::string_view file) {
    Reader reader(file);
    if (reader.take(4) != "GGUF" || reader.take<std::uint32_t>() != 3)
        throw std::runtime_error("the sound model is no GGUF of version 3");
    GgufImage image;
    image.tensors.resize(reader.take<std::uint64_t>());
    image.keys.resize(reader.take<std::uint64_t>());
    for (Key& key : image.keys) {
        key.name = reader.text();
        key.type = reader.take<std::uint32_t>();
        key.value = reader.value(key.type);
    }
    for (Tensor& tensor : image.tensors) {
        tensor.name = reader.text();
        tensor.shape.resize(reader.take<std::uint32_t>());
        for (std::uint64_t& size : tensor.shape) size = reader.take<std::uint64_t>();
        tensor.type = reader.take<std::uint32_t>();
        tensor.offset = reader.take<std::uint64_t>();
    }
    return image;
}

std::string GgufImage::header() const {
    std::string out = "GGUF";
    put<std::uint32_t>(out, 3);
    put<std::uint64_t>(out, tensors.size());
    put<std::uint64_t>(out, keys.size());
    for (const Key& key : keys) {
        put_text(out, key.name);
        put(out, key.type);
        out += key.value;
    }
    for (const Tensor& tensor : tensors) {
        put_text(out, tensor.name);
        put(out, static_cast<std::uint32_t>(tensor.shape.size()));
        for (const std::uint64_t size : tensor.shape) put(out, size);
        put(out, tensor.type);
        put(out, tensor.offset);
    }
    return out;
}

void GgufImage::add(const std::string& name, std::uint32_t value) {
    put(keys.emplace_back(Key{name, GGUF_TYPE_UINT32, ""}).value, value);
}
void GgufImage::add(const std::string& name, float value) {
    put(keys.emplace_back(Key{name, GGUF_TYPE_FLOAT32, ""}).value, value);
}
void GgufImage::add(const std::string& name, bool value) {
    put<std::uint8_t>(keys.emplace_back(Key{name, GGUF_TYPE_BOOL, ""}).value, value);
}
void GgufImage::add(const std::string& name, std::string_view value) {
    put_text(keys.emplace_back(Key{name, GGUF_TYPE_STRING, ""}).value, value);
}
void GgufImage::add(const std::string& name, const std::vector<std::string>& values) {
    std::string& out = keys.emplace_back(Key{name, GGUF_TYPE_ARRAY, ""}).value;
    put<std::uint32_t>(out, GGUF_TYPE_STRING);
    put<std::uint64_t>(out, values.size());
    for (const std::string& value : values) put_text(out, value);
}

GgufImage::Key* GgufImage::find(std::string_view name) {
    for (Key& key : keys)
        if (key.name == name) return &key;
    return nullptr;
}

void GgufImage::place_tensors() {
    std::uint64_t offset = 0;
    for (Tensor& tensor : tensors) {
        tensor.offset = offset;
        offset += padded(bytes_of(tensor));
    }
}

std::uint64_t GgufImage::data_bytes() const {
    std::uint64_t bytes = 0;
    for (const Tensor& tensor : tensors) bytes += padded(bytes_of(tensor));
    return bytes < kMostData ? bytes : 0;
}

GgufImage small_bert() {
    constexpr std::uint32_t width = 32, inner = 64, context = 64;
    GgufImage image;
    image.add("general.architecture", std::string_view("bert"));
    image.add("bert.context_length", context);
    image.add("bert.embedding_length", width);
    image.add("bert.feed_forward_length", inner);
    image.add("bert.block_count", 1u);
    image.add("bert.attention.head_count", 4u);
    image.add("bert.attention.layer_norm_epsilon", 1e-12f);
    image.add("bert.attention.causal", false);
    image.add("bert.pooling_type", 1u);
    image.add("tokenizer.ggml.model", std::string_view("bert"));
    image.add("tokenizer.ggml.token_type_count", 2u);
    image.add("tokenizer.ggml.bos_token_id", 2u);
    image.add("tokenizer.ggml.unknown_token_id", 1u);
    image.add("tokenizer.ggml.seperator_token_id", 3u);  // GGUF's spelling
    image.add("tokenizer.ggml.padding_token_id", 0u);
    std::vector<std::string> tokens{"[PAD]", "[UNK]", "[CLS]", "[SEP]"};
    for (char c = 'a'; c <= 'z'; ++c) tokens.push_back(std::string("\xE2\x96\x81") + c);
    image.add("tokenizer.ggml.tokens", tokens);
    auto tensor = [&](const std::string& name, std::vector<std::uint64_t> shape) {
        image.tensors.push_back({name, std::move(shape), GGML_TYPE_F32, 0});
    };
    auto layer = [&](const std::string& name, std::uint64_t in, std::uint64_t out) {
        tensor(name + ".weight", {in, out});
        tensor(name + ".bias", {out});
    };
    auto norm = [&](const std::string& name) {
        tensor(name + ".weight", {width});
        tensor(name + ".bias", {width});
    };
    tensor("token_embd.weight", {width, tokens.size()});
    tensor("position_embd.weight", {width, context});
    tensor("token_types.weight", {width, 2});
    norm("token_embd_norm");
    for (const char* name : {"attn_q", "attn_k", "attn_v", "attn_output"})
        layer(std::string("blk.0.") + name, width, width);
    norm("blk.0.attn_output_norm");
    layer("blk.0.ffn_up", width, inner);
    layer("blk.0.ffn_down", inner, width);
    norm("blk.0.layer_output_norm");
    image.place_tensors();
    return image;
}

}  // namespace headrace::fuzz
