#include "doors/onnx/ops/linear_algebra.h"

#include <cmath>

/// Products, determinants and inverses of matrices.
namespace headrace::onnx {
namespace {

/// Every product by itself, since integers wrap: [..., m, k, 1] times [..., 1, k, n], summed over k.
Operand whole_product(OpWriter& g, const Operand& a, const Operand& b) {
    Shape columns = g.shape(b);
    columns.insert(columns.end() - 2, 1);
    const Operand products = g.op("mul", {g.add_axes(a, 1), g.reshape(b, columns)});
    const std::vector<std::int64_t> axes{g.rank(products) - 2};
    return g.op("reduce_sum", {products}, {{"axes", axes}});
}

Operand matmul(OpWriter& g, const Node& node) { return matrix_product(g, node.x(), node.operand(1)); }

/// Whether C is what the kernels of the op gemm add: rows as long as the product's.
bool is_addend(OpWriter& g, const Operand& a, const Operand& b, const Operand& c, bool is_transposed) {
    if (!a->is_float()) return false;
    if (!c) return true;
    return g.rank(c) > 0 && is_same(g.shape(c).back(), g.shape(b)[is_transposed ? 0 : 1]);
}

bool is_whole(double number) { return number == std::trunc(number); }

/// alpha A B + beta C, A and B perhaps transposed
Operand gemm(OpWriter& g, const Node& node) {
    Operand a = node.x(), b = node.operand(1), c = node.optional(2);
    const double alpha = node.real("alpha", 1), beta = node.real("beta", 1);
    const bool turns_a = node.flag("transA", false), turns_b = node.flag("transB", false);
    invalid_if(g.rank(a) != 2 || g.rank(b) != 2, "A and B have {} and {} dimensions, not 2", g.rank(a),
               g.rank(b));
    if (beta == 0) c = nullptr;
    if (alpha == 1 && (beta == 0 || beta == 1) && !turns_a && is_addend(g, a, b, c, turns_b))
        return g.op("gemm", {a, b, c}, {{"b_transpose", turns_b}});
    if (turns_a) a = g.transpose(a, {1, 0});
    if (turns_b) b = g.transpose(b, {1, 0});
    const Operand y = matrix_product(g, a, b);
    if (!a->is_float() && !(is_whole(alpha) && is_whole(beta)))
        throw Refused(fmt::format("alpha is {} and beta {}, and the operands are {}; whole numbers are read",
                                  alpha, beta, name_of(a->type)),
                      "Cast the operands to float before it");
    const Operand scaled = g.times(y, alpha);
    return c ? g.op("add", {scaled, g.times(c, beta)}) : scaled;
}

// --- of square matrices

/// In f64 or f32.
Operand of_square(OpWriter& g, std::string_view op, const Operand& x) {
    invalid_if(g.rank(x) < 2, "the input has {} dimensions; 2 are the least", g.rank(x));
    const ElementType through = x->type == ElementType::f64 ? ElementType::f64 : ElementType::f32;
    return g.cast(g.op(op, {g.cast(x, through)}), x->type);
}

Operand determinant(OpWriter& g, const Node& node) { return of_square(g, "determinant", node.x()); }
Operand inverse(OpWriter& g, const Node& node) { return of_square(g, "matrix_inverse", node.x()); }

}  // namespace

Operand matrix_product(OpWriter& g, Operand a, Operand b) {
    invalid_if(g.rank(a) == 0 || g.rank(b) == 0, "the operands have {} and {} dimensions; 1 is the least",
               g.rank(a), g.rank(b));
    const bool is_row = g.rank(a) == 1, is_column = g.rank(b) == 1;
    if (is_row) a = g.reshape(a, {1, g.shape(a)[0]});
    if (is_column) b = g.add_axes(b, 1);
    const Operand y = a->is_float() ? g.op("matmul", {a, b}) : whole_product(g, a, b);
    Shape shape = g.shape(y);
    if (is_column) shape.pop_back();
    if (is_row) shape.erase(shape.end() - (is_column ? 1 : 2));
    return g.reshape(y, shape);
}

std::span<const Operator> linear_algebra_operators() {
    static const Operator kOperators[] = {
        {"Det", 11, determinant, "1 -> 1"},
        {"Gemm", 1, gemm,
         "3 -> 1, alpha float, beta float, broadcast int, transA int, transB int; 7: 3 -> 1, alpha float, "
         "beta float, transA int, transB int; 11: 2..3 -> 1, alpha float, beta float, transA int, transB "
         "int"},
        {"Inverse", 1, inverse, "1 -> 1", kMicrosoft},
        {"MatMul", 1, matmul, "2 -> 1"}};
    return kOperators;
}

}  // namespace headrace::onnx
