#include "ops/product.h"

#include "ops/infer.h"
#include "ops/repetition.h"
#include "ops/through_f32.h"

namespace headrace::ops {

std::int64_t Product::batches() const {
    std::int64_t count = 1;
    for (const BatchGroup& g : batch) count *= g.size;
    return count;
}

std::array<std::int64_t, 2> Product::starts(std::int64_t i) const {
    std::array<std::int64_t, 2> at{0, 0};
    for (std::size_t g = batch.size(); g-- > 0;) {
        const std::int64_t index = i % batch[g].size;
        i /= batch[g].size;
        at[0] += index * a_batch[g];
        at[1] += index * b_batch[g];
    }
    return at;
}

Product dense_product(Sizes a, Sizes b, bool b_transposed) {
    Product p;
    p.m = a[a.size() - 2];
    p.k = a[a.size() - 1];
    p.n = b[b.size() - (b_transposed ? 2 : 1)];
    p.a_row = p.k;
    p.b_inner = b_transposed ? 1 : p.n;
    p.b_column = b_transposed ? p.k : 1;

    const std::size_t rank = std::max(a.size(), b.size());
    const auto extent = [&](Sizes s, std::size_t d) {
        return d + s.size() < rank ? 1 : s[d + s.size() - rank];
    };
    for (std::size_t d = 0; d + 2 < rank; ++d) {
        const std::int64_t in_a = extent(a, d), in_b = extent(b, d);
        if (in_a == 1 && in_b == 1) continue;
        const BatchGroup group{in_a == 1 ? in_b : in_a, in_a == 1, in_b == 1};
        if (!p.batch.empty() && p.batch.back().a_repeats == group.a_repeats &&
            p.batch.back().b_repeats == group.b_repeats)
            p.batch.back().size *= group.size;
        else
            p.batch.push_back(group);
    }
    if (!p.batch.empty() && p.batch.back().b_repeats) {
        p.m *= p.batch.back().size;
        p.batch.pop_back();
    }
    p.a_batch.resize(p.batch.size());
    p.b_batch.resize(p.batch.size());
    std::int64_t a_stride = p.m * p.k, b_stride = p.k * p.n;
    for (std::size_t g = p.batch.size(); g-- > 0;) {
        if (!p.batch[g].a_repeats) p.a_batch[g] = std::exchange(a_stride, a_stride * p.batch[g].size);
        if (!p.batch[g].b_repeats) p.b_batch[g] = std::exchange(b_stride, b_stride * p.batch[g].size);
    }
    return p;
}

Cost product_cost(const Operands& in, std::span<const TensorType> out, const Product& p) {
    Cost cost = elementwise_cost(in, out, 0);
    cost.flops = 2.0 * static_cast<double>(p.batches()) * static_cast<double>(p.m) *
                 static_cast<double>(p.n) * static_cast<double>(p.k);
    return cost;
}

Status product_lowerable(const Operands& in, const Product&) { return works_through_f32(in[0].dtype); }

ggml_tensor* lower_product(Emit& e, ggml_tensor* a, ggml_tensor* b, const Operands& in, const Product& p) {
    std::vector<std::int64_t> full, a_extents, b_extents;
    for (const BatchGroup& g : p.batch) {
        full.push_back(g.size);
        a_extents.push_back(g.a_repeats ? 1 : g.size);
        b_extents.push_back(g.b_repeats ? 1 : g.size);
    }
    if (full.size() > 2) {  // ggml has two batch dimensions: one is left if both operands are written out
        const auto whole = [&](ggml_tensor* x, std::vector<std::int64_t>& extents, std::int64_t matrix) {
            std::vector<std::int64_t> from = extents, to = full;
            from.push_back(matrix);
            to.push_back(matrix);
            extents = {p.batches()};
            return repeat_to(e, x, from, to);
        };
        a = whole(a, a_extents, p.m * p.k);
        b = whole(b, b_extents, p.k * p.n);
        full = a_extents;
    }
    const bool a_repeats = full != a_extents;
    full.insert(full.end(), {p.m, p.k});
    a_extents.insert(a_extents.end(), {p.m, p.k});
    const bool b_transposed = p.b_inner == 1 && p.b_column == p.k;
    b_extents.insert(b_extents.end(), {b_transposed ? p.n : p.k, b_transposed ? p.k : p.n});

    a = to_f32(e, e.reshape(a, a_extents), in[0].dtype);
    if (a_repeats) a = e.repeat(a, full);  // only b may repeat in mul_mat

    // The same function of f16 differs between processors in how it sums; f32 everywhere is accurate
    // everywhere.
    b = e.reshape(b, b_extents);
    if (b_transposed) return e.mat_mul_transposed(a, to_f32(e, b, in[1].dtype));
    if (in[1].dtype == DType::f32) return e.mat_mul(a, b);
    std::vector<int> swap_last;
    for (int i = 0; i < static_cast<int>(b_extents.size()); ++i) swap_last.push_back(i);
    std::swap(swap_last[swap_last.size() - 1], swap_last[swap_last.size() - 2]);
    return e.mat_mul_transposed(a, to_f32(e, e.permute(b, swap_last), in[1].dtype));
}

std::size_t packed_matrix_bytes(const Operands& in, bool b_transposed) {
    const auto b = in[1].sizes();
    const std::size_t rows = static_cast<std::size_t>(b[b.size() - 2]),
                      columns = static_cast<std::size_t>(b.back());
    return b_transposed ? kernels::packed_bytes(columns, rows) : kernels::packed_bytes(rows, columns);
}

void pack_matrix(const ConstView& b, bool b_transposed, std::byte* packed) {
    pack_in_parts<float>(b, b_transposed, reinterpret_cast<float*>(packed), &kernels::pack);
}

kernels::GemmArgs packed_gemm_args(const TensorArgs& args, bool b_transposed) {
    const ConstView &a = args.in[0], &b = args.in[1];
    const std::int64_t k = a.shape.back();
    const std::int64_t n = b.shape[b.shape.size() - (b_transposed ? 2 : 1)];
    return {.m = static_cast<std::size_t>(a.elements() / k),
            .n = static_cast<std::size_t>(n),
            .k = static_cast<std::size_t>(k),
            .a = a.as<float>(),
            .lda = static_cast<std::ptrdiff_t>(k),
            .packed_b = b.as<float>(),
            .c = args.out[0].as<float>(),
            .ldc = static_cast<std::ptrdiff_t>(n)};
}

}  // namespace headrace::ops
