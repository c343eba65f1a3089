#include "backends/packed/row_product.h"

#include <cstddef>
#include <cstdint>
#include <vector>

#include "ggml-cpu.h"

namespace headrace::packed {
namespace {

/// Rows as the weights' type is multiplied with them.
class Rows {
public:
    void fill(const ggml_tensor* rows, const ggml_type_traits_cpu& weights) {
        const auto count = static_cast<std::size_t>(ggml_nrows(rows));
        const char* from = static_cast<const char*>(rows->data);
        if (weights.vec_dot_type == GGML_TYPE_F32) {
            first_ = from, stride_ = rows->nb[1];
            return;
        }
        stride_ = ggml_row_size(weights.vec_dot_type, rows->ne[0]);
        if (bytes_.size() < count * stride_) bytes_.resize(count * stride_);
        const ggml_from_float_t round = ggml_get_type_traits_cpu(weights.vec_dot_type)->from_float;
        for (std::size_t r = 0; r < count; ++r)
            round(reinterpret_cast<const float*>(from + r * rows->nb[1]), bytes_.data() + r * stride_,
                  rows->ne[0]);
        first_ = bytes_.data();
    }
    const char* operator[](std::size_t row) const { return first_ + row * stride_; }

private:
    std::vector<char> bytes_;
    const char* first_ = nullptr;
    std::size_t stride_ = 0;
};

class RowProduct : public ggml::cpu::tensor_traits {
public:
    bool work_size(int, const ggml_tensor*, std::size_t& size) override {
        size = 0;
        return true;
    }
    /// One thread's share: a run of the weights' rows. Each thread rounds all rows that these are multiplied
    /// with.
    bool compute_forward(ggml_compute_params* params, ggml_tensor* node) override {
        static thread_local Rows rows;
        const ggml_tensor *weights = node->src[0], *input = node->src[1];
        const ggml_type_traits_cpu& traits = *ggml_get_type_traits_cpu(weights->type);
        rows.fill(input, traits);
        const std::int64_t first = weights->ne[1] * params->ith / params->nth,
                           end = weights->ne[1] * (params->ith + 1) / params->nth, count = ggml_nrows(input);
        for (std::int64_t column = first; column < end; ++column) {
            const char* of_weights =
                static_cast<const char*>(weights->data) + static_cast<std::size_t>(column) * weights->nb[1];
            for (std::int64_t row = 0; row < count; ++row)
                traits.vec_dot(static_cast<int>(weights->ne[0]),
                               static_cast<float*>(node->data) + row * node->ne[0] + column, 0, of_weights, 0,
                               rows[static_cast<std::size_t>(row)], 0, 1);
        }
        return true;
    }
};

bool is_plain(const ggml_tensor* weights) {
    const ggml_backend_buffer_t buffer = weights->buffer;
    return buffer && ggml_backend_buffer_get_usage(buffer) != GGML_BACKEND_BUFFER_USAGE_COMPUTE &&
           ggml_backend_buffer_is_host(buffer) && ggml_is_contiguous(weights) && weights->ne[2] == 1 &&
           weights->ne[3] == 1;
}

}  // namespace

bool has_row_product(const ggml_tensor* node) {
    const ggml_tensor *weights = node->src[0], *rows = node->src[1];
    constexpr int kHint = 1;  // of products that are no plain ones
    if (!is_plain(weights) || rows->type != GGML_TYPE_F32 || !ggml_is_contiguous(rows) ||
        !ggml_is_contiguous(node) || node->op_params[kHint] != 0)
        return false;
    const ggml_type_traits_cpu* traits = ggml_get_type_traits_cpu(weights->type);
    return traits->vec_dot && (traits->vec_dot_type == GGML_TYPE_F32 ||
                               ggml_get_type_traits_cpu(traits->vec_dot_type)->from_float);
}

ggml::cpu::tensor_traits* row_product() {
    static RowProduct instance;
    return &instance;
}

}  // namespace headrace::packed
