#include "backends/packed/product.h"

#include "backends/packed/attention.h"
#include "backends/packed/format.h"
#include "backends/packed/invariance.h"
#include "backends/packed/row_product.h"

// Their virtual destructors, which ggml's CPU library has too: this one must not need a certain file name of
// it.
namespace ggml::cpu {
tensor_traits::~tensor_traits() = default;
extra_buffer_type::~extra_buffer_type() = default;
}  // namespace ggml::cpu

namespace headrace::packed {
namespace {

class Product : public ggml::cpu::tensor_traits {
public:
    bool work_size(int, const ggml_tensor*, std::size_t& size) override {
        size = 0;
        return true;
    }
    /// One thread's share.
    bool compute_forward(ggml_compute_params* params, ggml_tensor* node) override {
        const ggml_tensor *weights = node->src[0], *rows = node->src[1];
        kernels::GemmArgs g;
        g.m = static_cast<std::size_t>(ggml_nrows(rows));
        g.n = static_cast<std::size_t>(weights->ne[1]), g.k = static_cast<std::size_t>(weights->ne[0]);
        g.a = static_cast<const float*>(rows->data), g.lda = static_cast<std::ptrdiff_t>(g.k);
        g.c = static_cast<float*>(node->data), g.ldc = static_cast<std::ptrdiff_t>(g.n);
        packed_format(weights)->multiply(g, static_cast<const std::byte*>(weights->data), params->ith,
                                         params->nth);
        return true;
    }
};

class Products : public ggml::cpu::extra_buffer_type {
public:
    bool supports_op(ggml_backend_dev_t, const ggml_tensor* node) override {
        return is_product(node) && packed_format(node->src[0]) && node->src[1]->type == GGML_TYPE_F32 &&
               ggml_is_contiguous(node->src[1]) && ggml_is_contiguous(node);
    }
    ggml::cpu::tensor_traits* get_tensor_traits(const ggml_tensor* node) override {
        static Product product;
        if (is_product(node)) return &product;
        return node->op == GGML_OP_MUL_MAT && is_invariant(node) ? row_product() : attention_of(node);
    }

private:
    bool is_product(const ggml_tensor* node) const {
        return node->op == GGML_OP_MUL_MAT && node->src[0]->buffer &&
               node->src[0]->buffer->buft->context == this;
    }
};

}  // namespace

ggml::cpu::extra_buffer_type* products() {
    static Products instance;
    return &instance;
}

}  // namespace headrace::packed
