#pragma once
#include <array>
#include <initializer_list>
#include <string>

#include "backends/mlx/arrays/mlx_api.h"
#include "ggml.h"

namespace headrace::mlx {

class Builder;

/// A node of ggml's that belongs to no graph, made from checked operands: ggml's own functions abort the
/// program when operands do not go together. All makers throw std::invalid_argument instead.
class SingleOp {
public:
    const ggml_tensor* node() const { return &node_; }
    bool is_supported() const;
    /// Its value. Throws std::invalid_argument for types that the backend does not take.
    array express(Builder& builder) const;

    static SingleOp mul_mat(const ggml_tensor* a, const ggml_tensor* b);
    /// GGML_OP_ADD, SUB, MUL or DIV.
    static SingleOp binary(ggml_op op, const ggml_tensor* a, const ggml_tensor* b);
    static SingleOp unary(ggml_unary_op op, const ggml_tensor* x);
    /// GGML_OP_NORM or RMS_NORM.
    static SingleOp norm(ggml_op op, const ggml_tensor* x, float eps);
    static SingleOp soft_max(const ggml_tensor* x);
    static SingleOp flash_attention(const ggml_tensor* q, const ggml_tensor* k, const ggml_tensor* v,
                                    const ggml_tensor* mask, float scale);
    /// Along width and height.
    struct Steps {
        int stride[2], padding[2], dilation[2];
    };
    static SingleOp conv_2d(const ggml_tensor* kernel, const ggml_tensor* image, const Steps& steps);

private:
    using Extents = std::array<std::int64_t, 4>;
    SingleOp(ggml_op op, std::initializer_list<const ggml_tensor*> sources, Extents extents);
    void set(int index, float value);
    void set(int index, int value) { node_.op_params[index] = value; }

    ggml_tensor node_{};
};

/// A tensor of that type and shape without memory.
ggml_tensor describe(ggml_type type, std::array<std::int64_t, 4> extents);

/// "f32 [4 x 3 x 1 x 1]"
std::string to_string(const ggml_tensor* t);

/// Throws std::invalid_argument where there is no tensor or none with memory; `name` is what the caller calls
/// it.
void require_memory(const ggml_tensor* t, const std::string& name);

/// Computes the value and puts it into the tensor's memory, in its type and layout, wherever that is. Throws
/// std::invalid_argument when the number of elements differs.
void store_in_tensor(const array& value, const ggml_tensor* t);

}  // namespace headrace::mlx
