#include "backends/packed/attention.h"

#include <cstring>

#include "backends/packed/invariance.h"
#include "kernels/tensor/decode_attention.h"
#include "kernels/tensor/order_free_attention.h"

namespace headrace::packed {
namespace {

struct Options {
    float scale, max_bias, softcap;
};

Options options_of(const ggml_tensor* node) {
    Options options;
    std::memcpy(&options, node->op_params, sizeof(options));
    return options;
}

template <typename T>
const T* at(const ggml_tensor* tensor, std::int64_t i3) {
    return reinterpret_cast<const T*>(static_cast<const char*>(tensor->data) +
                                      i3 * static_cast<std::int64_t>(tensor->nb[3]));
}

template <typename T>
std::ptrdiff_t stride(const ggml_tensor* tensor, int dimension) {
    return static_cast<std::ptrdiff_t>(tensor->nb[dimension] / sizeof(T));
}

bool is_cache(const ggml_tensor* tensor) {
    return tensor->type == GGML_TYPE_F16 && tensor->nb[0] == sizeof(std::uint16_t);
}

bool is_supported(const ggml_tensor* node) {
    const ggml_tensor *q = node->src[0], *k = node->src[1], *v = node->src[2], *mask = node->src[3];
    return q->type == GGML_TYPE_F32 && q->nb[0] == sizeof(float) && is_cache(k) && is_cache(v) &&
           k->ne[2] == v->ne[2] && q->ne[2] % k->ne[2] == 0 && k->ne[3] == q->ne[3] && v->ne[3] == q->ne[3] &&
           (!mask || (is_cache(mask) && mask->ne[2] == 1)) && options_of(node).max_bias == 0 &&
           kernels::has_cached_attention<std::uint16_t>(static_cast<std::size_t>(k->ne[0]),
                                                        static_cast<std::size_t>(v->ne[0]));
}

kernels::DecodeAttentionArgs<std::uint16_t> arguments_of(const ggml_tensor* node, std::int64_t sequence) {
    const ggml_tensor *q = node->src[0], *k = node->src[1], *v = node->src[2], *mask = node->src[3];
    const Options options = options_of(node);
    kernels::DecodeAttentionArgs<std::uint16_t> g;
    g.tokens = static_cast<std::size_t>(q->ne[1]), g.heads = static_cast<std::size_t>(q->ne[2]);
    g.kv_heads = static_cast<std::size_t>(k->ne[2]), g.keys = static_cast<std::size_t>(k->ne[1]);
    g.width = static_cast<std::size_t>(k->ne[0]), g.width_v = static_cast<std::size_t>(v->ne[0]);
    g.q = at<float>(q, sequence), g.q_token = stride<float>(q, 1), g.q_head = stride<float>(q, 2);
    g.k = at<std::uint16_t>(k, sequence), g.k_row = stride<std::uint16_t>(k, 1),
    g.k_head = stride<std::uint16_t>(k, 2);
    g.v = at<std::uint16_t>(v, sequence), g.v_row = stride<std::uint16_t>(v, 1),
    g.v_head = stride<std::uint16_t>(v, 2);
    if (mask) {
        g.mask = at<std::uint16_t>(mask, sequence % mask->ne[3]);
        g.mask_token = stride<std::uint16_t>(mask, 1);
    }
    if (node->src[4]) g.sinks = static_cast<const float*>(node->src[4]->data);
    g.o = const_cast<float*>(at<float>(node, sequence));
    g.o_token = stride<float>(node, 2), g.o_head = stride<float>(node, 1);
    g.scale = options.scale, g.softcap = options.softcap;
    return g;
}

class Attention : public ggml::cpu::tensor_traits {
public:
    /// ggml's own kernel may have to run after all, with fewer pieces of work than threads.
    bool work_size(int, const ggml_tensor*, std::size_t&) override { return false; }
    /// One thread's share.
    bool compute_forward(ggml_compute_params* params, ggml_tensor* node) override {
        const ggml_tensor *q = node->src[0], *k = node->src[1];
        const std::int64_t rows = q->ne[1] * q->ne[2] / k->ne[2];
        if ((rows + 3) / 4 * k->ne[2] < params->nth) return false;
        for (std::int64_t sequence = 0; sequence < q->ne[3]; ++sequence)
            kernels::decode_attention(arguments_of(node, sequence), params->ith, params->nth);
        return true;
    }
};

class InvariantAttention : public ggml::cpu::tensor_traits {
public:
    bool work_size(int, const ggml_tensor*, std::size_t& size) override {
        size = 0;
        return true;
    }
    bool compute_forward(ggml_compute_params* params, ggml_tensor* node) override {
        for (std::int64_t sequence = 0; sequence < node->src[0]->ne[3]; ++sequence)
            kernels::order_free_attention(arguments_of(node, sequence), params->ith, params->nth);
        return true;
    }
};

bool is_supported_invariantly(const ggml_tensor* node) {
    return kernels::has_order_free_attention(static_cast<std::size_t>(node->src[1]->ne[0]),
                                             static_cast<std::size_t>(node->src[2]->ne[0]));
}

}  // namespace

ggml::cpu::tensor_traits* attention_of(const ggml_tensor* node) {
    static Attention attention;
    static InvariantAttention invariant;
    if (node->op != GGML_OP_FLASH_ATTN_EXT || !is_supported(node)) return nullptr;
    if (!is_invariant(node)) return &attention;
    return is_supported_invariantly(node) ? &invariant : nullptr;
}

}  // namespace headrace::packed
