#include "backends/mlx/single_op.h"

#include <cstring>
#include <stdexcept>
#include <string>

#include "backends/mlx/arrays/tensors.h"
#include "backends/mlx/graph/builder.h"
#include "backends/mlx/memory/memory_primitives.h"
#include "backends/mlx/ops/table.h"

namespace headrace::mlx {
namespace {

std::array<std::int64_t, 4> extents_of(const ggml_tensor* t) {
    return {t->ne[0], t->ne[1], t->ne[2], t->ne[3]};
}

void require(bool fine, const char* op, const std::string& problem,
             std::initializer_list<const ggml_tensor*> given) {
    if (fine) return;
    std::string message = std::string(op) + ": " + problem + "; given";
    for (const ggml_tensor* t : given) message += " " + to_string(t);
    throw std::invalid_argument(message);
}

std::int64_t convolved(std::int64_t length, std::int64_t size, int stride, int padding, int dilation) {
    return (length + 2 * padding - dilation * (size - 1) - 1) / stride + 1;
}

}  // namespace

ggml_tensor describe(ggml_type type, std::array<std::int64_t, 4> extents) {
    ggml_tensor t{};
    t.type = type;
    t.nb[0] = ggml_type_size(type);
    for (int d = 0; d < 4; ++d) t.ne[d] = extents[d];
    t.nb[1] = ggml_row_size(type, extents[0]);
    for (int d = 2; d < 4; ++d) t.nb[d] = t.nb[d - 1] * extents[d - 1];
    return t;
}

std::string to_string(const ggml_tensor* t) {
    std::string text = std::string(ggml_type_name(t->type)) + " [" + std::to_string(t->ne[0]);
    for (int d = 1; d < 4; ++d) text += " x " + std::to_string(t->ne[d]);
    return text + "]";
}

void require_memory(const ggml_tensor* t, const std::string& name) {
    if (!t) throw std::invalid_argument(name + " is NULL; it must be a tensor");
    if (!t->data && !ggml_is_empty(t))
        throw std::invalid_argument(name + ", " + to_string(t) +
                                    ", has no memory; allocate its context or graph first");
}

SingleOp::SingleOp(ggml_op op, std::initializer_list<const ggml_tensor*> sources, Extents extents)
    : node_(describe(GGML_TYPE_F32, extents)) {
    node_.op = op;
    int i = 0;
    for (const ggml_tensor* source : sources) node_.src[i++] = const_cast<ggml_tensor*>(source);
}

void SingleOp::set(int index, float value) { std::memcpy(&node_.op_params[index], &value, sizeof value); }

bool SingleOp::is_supported() const { return supports(&node_); }

array SingleOp::express(Builder& builder) const {
    if (!is_supported()) {
        std::string message = std::string(ggml_op_desc(&node_)) + ": not for these operands, of types";
        for (const ggml_tensor* source : node_.src)
            if (source) message += std::string(" ") + ggml_type_name(source->type);
        throw std::invalid_argument(message + "; f32, f16 and bf16 always are, quantised ones as weights");
    }
    find_op(&node_)->translate(builder, &node_);
    return *builder.find(&node_);
}

SingleOp SingleOp::mul_mat(const ggml_tensor* a, const ggml_tensor* b) {
    require(a->ne[0] == b->ne[0] && b->ne[2] % a->ne[2] == 0 && b->ne[3] % a->ne[3] == 0, "mul_mat",
            "the first dimensions must be equal and the others of src1 multiples of src0's", {a, b});
    return {GGML_OP_MUL_MAT, {a, b}, {a->ne[1], b->ne[1], b->ne[2], b->ne[3]}};
}

SingleOp SingleOp::binary(ggml_op op, const ggml_tensor* a, const ggml_tensor* b) {
    require(ggml_can_repeat(b, a), ggml_op_name(op), "src1 must repeat to src0's shape", {a, b});
    return {op, {a, b}, extents_of(a)};
}

SingleOp SingleOp::unary(ggml_unary_op op, const ggml_tensor* x) {
    SingleOp made(GGML_OP_UNARY, {x}, extents_of(x));
    made.set(0, static_cast<int>(op));
    return made;
}

SingleOp SingleOp::norm(ggml_op op, const ggml_tensor* x, float eps) {
    SingleOp made(op, {x}, extents_of(x));
    made.set(0, eps);
    return made;
}

SingleOp SingleOp::soft_max(const ggml_tensor* x) {
    SingleOp made(GGML_OP_SOFT_MAX, {x}, extents_of(x));
    made.set(0, 1.0f);
    return made;
}

SingleOp SingleOp::flash_attention(const ggml_tensor* q, const ggml_tensor* k, const ggml_tensor* v,
                                   const ggml_tensor* mask, float scale) {
    require(q->ne[0] == k->ne[0] && k->ne[1] == v->ne[1] && k->ne[2] == v->ne[2] &&
                q->ne[2] % k->ne[2] == 0 && k->ne[3] == v->ne[3] && q->ne[3] % k->ne[3] == 0,
            "flash_attn",
            "q and k need the same head size, k and v the same positions and heads, q a multiple of them",
            {q, k, v});
    if (mask)
        require(mask->ne[0] == k->ne[1] && mask->ne[1] >= q->ne[1] && q->ne[2] % mask->ne[2] == 0 &&
                    q->ne[3] % mask->ne[3] == 0,
                "flash_attn", "the mask must be positions x tokens", {q, k, mask});
    SingleOp made(GGML_OP_FLASH_ATTN_EXT, {q, k, v, mask}, {v->ne[0], q->ne[2], q->ne[1], q->ne[3]});
    made.set(0, scale);
    return made;
}

SingleOp SingleOp::conv_2d(const ggml_tensor* kernel, const ggml_tensor* image, const Steps& s) {
    require(kernel->ne[2] == image->ne[2], "conv", "kernel and image must have as many input channels",
            {kernel, image});
    Extents extents{0, 0, kernel->ne[3], image->ne[3]};
    for (int d = 0; d < 2; ++d) {
        require(s.stride[d] > 0 && s.dilation[d] > 0 && s.padding[d] >= 0, "conv",
                "stride and dilation must be at least 1 and the padding at least 0", {kernel, image});
        require(image->ne[d] + 2 * s.padding[d] > s.dilation[d] * (kernel->ne[d] - 1), "conv",
                "the kernel is larger than the padded image", {kernel, image});
        extents[d] = convolved(image->ne[d], kernel->ne[d], s.stride[d], s.padding[d], s.dilation[d]);
    }
    SingleOp made(GGML_OP_CONV_2D, {kernel, image}, extents);
    for (int d = 0; d < 2; ++d) {
        made.set(d, s.stride[d]);
        made.set(2 + d, s.padding[d]);
        made.set(4 + d, s.dilation[d]);
    }
    return made;
}

void store_in_tensor(const array& value, const ggml_tensor* t) {
    require_memory(t, "dst");
    if (static_cast<std::int64_t>(value.size()) != ggml_nelements(t))
        throw std::invalid_argument("store: the value has " + std::to_string(value.size()) +
                                    " elements, and dst is " + to_string(t));
    const ggml_type_traits& traits = *ggml_get_type_traits(t->type);
    if (!dtype_of(t->type) && !traits.from_float_ref)
        throw std::invalid_argument("store: dst is " + to_string(t) +
                                    ", a type that nothing is converted to; f32 always works");
    const mx::Dtype dtype = ggml_is_quantized(t->type) ? mx::float32 : require_dtype(t->type);
    array contiguous = mx::contiguous(mx::astype(value, dtype));
    contiguous.eval();
    write_tensor(t, contiguous.data<char>());
}

}  // namespace headrace::mlx
