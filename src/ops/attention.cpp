/// Scaled dot-product attention (arXiv:1706.03762), with several query heads to a head of keys where wanted
/// (arXiv:2305.13245).
#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <vector>

#include "emit/emit.h"
#include "kernels/gemm/bf16_gemm_f32.h"
#include "kernels/tensor/attention_f32.h"
#include "ops/infer.h"
#include "ops/op.h"
#include "ops/repetition.h"
#include "ops/strided.h"
#include "ops/through_f32.h"

namespace headrace::ops {
namespace {

struct Attention {
    static constexpr std::string_view name = "scaled_dot_product_attention",
                                      summary = "softmax(scale · query · keyᵀ + mask) · value, for each head";
    static constexpr std::array operands{
        OperandRule{.name = "query", .dtypes = kFloats, .min_rank = 2},
        OperandRule{.name = "key", .dtypes = kFloats, .same_dtype_as = 0, .min_rank = 2},
        OperandRule{.name = "value", .dtypes = kFloats, .same_dtype_as = 0, .min_rank = 2},
        OperandRule{.name = "mask", .dtypes = kFloats, .same_dtype_as = 0, .optional = true}};

    struct Attrs {
        std::optional<double> scale;
        bool causal = false;
        bool zero_if_masked = true;
        bool heads_after_rows = false;
        bool round_to_bf16 = false;
        static void fields(auto&& f) {
            f("scale", &Attrs::scale, "factor of the products; absent: 1 / sqrt of the query's last extent");
            f("causal", &Attrs::causal, "query i sees keys 0 to i");
            f("zero_if_masked", &Attrs::zero_if_masked,
              "a row without any key is 0; else NaN, as softmax says");
            f("heads_after_rows", &Attrs::heads_after_rows,
              "query, key, value and result are […, rows, heads, width], as products of one matrix for all "
              "heads give them; else […, heads, rows, width]");
            f("round_to_bf16", &Attrs::round_to_bf16,
              "what is f32 may be rounded to bf16 as it is multiplied: query, key, value and softmax's "
              "results");
        }
    };

    /// Extents [batch, heads, m, n, width, width_v] of concrete operands, and the heads of keys and values.
    struct Extents {
        std::int64_t batch = 1, heads = 1, kv_heads = 1, m, n, width, width_v;

        Extents(Sizes q, Sizes k, Sizes v, const Attrs& a) : heads_after_rows(a.heads_after_rows) {
            const std::size_t rank = q.size(), row = row_axis(rank, a);
            m = q[row], width = q[rank - 1], n = k[row], width_v = v[rank - 1];
            if (rank > 2) heads = q[head_axis(rank, a)], kv_heads = k[head_axis(rank, a)];
            for (std::size_t i = 0; i + 3 < rank; ++i) batch *= q[i];
        }

        /// Elements from one batch, head or row of an operand to the next.
        struct Strides {
            std::int64_t batch, head, row;
        };
        Strides strides(std::int64_t of_heads, std::int64_t rows, std::int64_t columns) const {
            const std::int64_t batch_step = of_heads * rows * columns;
            if (heads_after_rows) return {batch_step, columns, of_heads * columns};
            return {batch_step, rows * columns, columns};
        }
        Strides of_query() const { return strides(heads, m, width); }
        Strides of_key() const { return strides(kv_heads, n, width); }
        Strides of_value() const { return strides(kv_heads, n, width_v); }
        Strides of_result() const { return strides(heads, m, width_v); }

    private:
        bool heads_after_rows;
    };

    static std::size_t row_axis(std::size_t rank, const Attrs& a) {
        return rank - (a.heads_after_rows ? 3 : 2);
    }
    static std::size_t head_axis(std::size_t rank, const Attrs& a) {
        return rank - (a.heads_after_rows ? 2 : 3);
    }

    static double scale_of(const Attrs& a, std::int64_t width) {
        return a.scale.value_or(1 / std::sqrt(static_cast<double>(width)));
    }

    static Result<Types> infer(const Operands& in, const Attrs& a) {
        const Shape &q = in[0].shape, &k = in[1].shape, &v = in[2].shape;
        const std::size_t rank = q.size();
        const auto shapes = [&] {
            return fmt::format("query {}, key {} and value {}", str(q), str(k), str(v));
        };
        if (k.size() != rank || v.size() != rank) return invalid("{} must have the same rank", shapes());
        for (std::size_t i = 0; i + 3 < rank; ++i)
            if (!same_extent(in, q[i], k[i]) || !same_extent(in, q[i], v[i]))
                return invalid("{} must have the same batch extents", shapes());
        if (rank < 3 && a.heads_after_rows) return invalid("heads_after_rows: {} have no heads", shapes());
        const std::size_t row = row_axis(rank, a), head = head_axis(rank, a);
        if (rank > 2) HR_TRY(check_heads(in, q[head], k[head], v[head]));
        if (!same_extent(in, q.back(), k.back()))
            return invalid("{}: the last extents of query and key differ", shapes());
        if (!same_extent(in, k[row], v[row]))
            return invalid("{}: there are as many values as keys", shapes());
        Shape scores = q, out = q;
        if (a.heads_after_rows) std::swap(scores[row], scores[head]);
        scores.back() = k[row];
        out.back() = v.back();
        if (in.has(3) && !broadcasts_to(in, in[3].shape, scores))
            return invalid("mask has shape {}, which does not broadcast to the scores' {}", str(in[3].shape),
                           str(scores));
        return Types{{in[0].dtype, std::move(out)}};
    }

    static Status check_heads(const Operands& in, const Dim& q, const Dim& k, const Dim& v) {
        if (!same_extent(in, k, v)) return invalid("key has {} heads and value {}", k.str(), v.str());
        if (q == k) return success();
        if (!divides(in, k, q))
            return invalid("the query's {} heads are no multiple of the key's {}", q.str(), k.str());
        return success();
    }

    static void reference(const TensorArgs& args, const Attrs& a) {
        const Extents e(args.in[0].shape, args.in[1].shape, args.in[2].shape, a);
        std::vector<std::int64_t> scores(args.in[0].shape.begin(), args.in[0].shape.end());
        if (a.heads_after_rows) std::swap(scores[scores.size() - 3], scores[scores.size() - 2]);
        scores.back() = e.n;
        std::vector<std::int64_t> mask_strides(scores.size(), 0);
        if (args.has(3)) mask_strides = broadcast_strides(args.in[3].shape, scores);
        const auto part = args.share.of(e.batch * e.heads * e.m);
        visit_dtype(args.in[0].dtype, [&]<class T>() {
            std::vector<double> row(static_cast<std::size_t>(e.n));
            for (std::int64_t r = part.begin; r < part.end; ++r) {
                const std::int64_t query = r % e.m, head = r / e.m % e.heads, batch = r / e.m / e.heads;
                const std::int64_t kv_head = head / (e.heads / e.kv_heads);
                const auto at = [&](auto* data, typename Extents::Strides step, std::int64_t h,
                                    std::int64_t i) {
                    return data + batch * step.batch + h * step.head + i * step.row;
                };
                const T* q = at(args.in[0].as<T>(), e.of_query(), head, query);
                const std::int64_t seen = a.causal ? std::min(e.n, query + 1) : e.n;
                std::fill(row.begin(), row.end(), -std::numeric_limits<double>::infinity());
                for (std::int64_t j = 0; j < seen; ++j) {
                    const T* k = at(args.in[1].as<T>(), e.of_key(), kv_head, j);
                    double sum = 0;
                    for (std::int64_t i = 0; i < e.width; ++i)
                        sum += convert<double>(q[i]) * convert<double>(k[i]);
                    row[static_cast<std::size_t>(j)] = sum * scale_of(a, e.width);
                }
                if (args.has(3)) {
                    const T* mask = args.in[3].as<T>() + offset_of(r, scores, mask_strides);
                    for (std::int64_t j = 0; j < e.n; ++j)
                        row[static_cast<std::size_t>(j)] += convert<double>(mask[j * mask_strides.back()]);
                }
                mix(row, a.zero_if_masked, at(args.in[2].as<T>(), e.of_value(), kv_head, 0), e.of_value().row,
                    at(args.out[0].as<T>(), e.of_result(), head, query), e.width_v);
            }
        });
    }

    /// Where a mask's row for row r of the scores begins.
    static std::int64_t offset_of(std::int64_t r, Sizes scores, Sizes strides) {
        std::int64_t offset = 0;
        for (int d = static_cast<int>(scores.size()) - 2; d >= 0; --d) {
            offset += r % scores[d] * strides[d];
            r /= scores[d];
        }
        return offset;
    }

    /// out = softmax(scores) · v.
    template <class T>
    static void mix(std::vector<double>& scores, bool zero_if_masked, const T* v, std::int64_t v_row, T* out,
                    std::int64_t width) {
        double largest = -std::numeric_limits<double>::infinity(), sum = 0;
        for (double s : scores) largest = std::max(largest, s);
        const bool is_hidden = std::all_of(scores.begin(), scores.end(), [](double s) {
            return s == -std::numeric_limits<double>::infinity();
        });
        const bool is_zero = scores.empty() || (zero_if_masked && is_hidden);
        for (double& s : scores) sum += s = is_zero ? 0 : std::exp(s - largest);
        for (std::int64_t i = 0; i < width; ++i) {
            double y = 0;
            for (std::size_t j = 0; j < scores.size(); ++j)
                y += scores[j] * convert<double>(v[static_cast<std::int64_t>(j) * v_row + i]);
            out[i] = convert<T>(is_zero ? 0 : y / sum);
        }
    }

    /// With the four dimensions of the scores, in which it may repeat.
    static ggml_tensor* lower_mask(Emit& e, ggml_tensor* mask, const Operands& in, const Extents& s) {
        const auto given = in[3].sizes();
        if (in[0].rank() > 4) {
            auto scores = in[0].sizes();
            const std::size_t rank = scores.size();
            scores.back() = s.n;
            scores[rank - 2] = s.m, scores[rank - 3] = s.heads;
            return e.reshape(repeat_to(e, mask, given, scores), std::array{s.batch, s.heads, s.m, s.n});
        }
        std::vector<std::int64_t> shape(4 - given.size(), 1);
        shape.insert(shape.end(), given.begin(), given.end());
        return e.reshape(mask, shape);
    }

    static Status lowerable(const Operands& in, const Attrs&) {
        for (int i = 0; i < 3; ++i)
            if (in[i].elements() == 0) return unsupported("an empty operand");
        return works_through_f32(in[0].dtype);
    }
    static std::vector<ggml_tensor*> lower(Emit& e, std::span<ggml_tensor* const> x, const Operands& in,
                                           const Attrs& a) {
        const DType t = in[0].dtype;
        const Extents s(in[0].sizes(), in[1].sizes(), in[2].sizes(), a);
        constexpr std::array exchange{0, 2, 1, 3};
        const auto view = [&](int i, std::int64_t heads, std::int64_t rows, std::int64_t width) {
            if (!a.heads_after_rows)
                return to_f32(e, e.reshape(x[i], std::array{s.batch, heads, rows, width}), t);
            ggml_tensor* as_given = to_f32(e, e.reshape(x[i], std::array{s.batch, rows, heads, width}), t);
            return e.contiguous(e.permute(as_given, exchange));
        };
        ggml_tensor* scores =
            e.mat_mul_transposed(view(0, s.heads, s.m, s.width), view(1, s.kv_heads, s.n, s.width));
        scores = e.scale(scores, static_cast<float>(scale_of(a, s.width)), 0);
        ggml_tensor* seen = nullptr;
        if (in.has(3)) {
            ggml_tensor* mask = lower_mask(e, to_f32(e, x[3], t), in, s);
            scores = e.binary(Binary::add, scores, mask);
            constexpr float kMost = std::numeric_limits<float>::max();
            if (a.zero_if_masked) {
                // ggml's softmax of nothing but -infinity is NaN: such rows get finite scores, and factor 0.
                scores = e.clamp(scores, -1e30f, kMost);
                ggml_tensor* infinite = e.binary(Binary::sub, mask, e.clamp(mask, -kMost, kMost));
                seen = e.clamp(e.sum_rows(e.unary(Unary::exp, infinite)), 0, 1);
            }
        }
        if (a.causal) scores = e.causal_mask(scores);
        constexpr std::array swap{0, 1, 3, 2};
        ggml_tensor* values = e.contiguous(e.permute(view(2, s.kv_heads, s.n, s.width_v), swap));
        ggml_tensor* y = e.mat_mul_transposed(e.soft_max(scores), values);
        if (seen) y = e.binary(Binary::mul, y, seen);
        if (a.heads_after_rows) y = e.contiguous(e.permute(y, exchange));
        Shape shape = in[0].shape;
        shape.back() = in[2].shape.back();
        return {from_f32(e, y, {t, std::move(shape)})};
    }

    static bool kernel_applies(const Operands& in, std::span<const bool>, const void*) {
        return in[0].dtype == DType::f32 && in[0].rank() <= 4;
    }
    static bool bf16_applies(const Operands& in, std::span<const bool> is_constant, const void* attrs) {
        return detail::attrs_ref<Attrs>(attrs).round_to_bf16 && kernel_applies(in, is_constant, attrs) &&
               kernels::has_bf16_gemm();
    }
    template <bool rounds>
    static void run_kernel(const TensorArgs& args, const void* attrs) {
        const Attrs& a = detail::attrs_ref<Attrs>(attrs);
        const Extents e(args.in[0].shape, args.in[1].shape, args.in[2].shape, a);
        kernels::AttentionArgs g;
        g.batch = static_cast<std::size_t>(e.batch), g.heads = static_cast<std::size_t>(e.heads);
        g.kv_heads = static_cast<std::size_t>(e.kv_heads);
        g.m = static_cast<std::size_t>(e.m), g.n = static_cast<std::size_t>(e.n);
        g.width = static_cast<std::size_t>(e.width), g.width_v = static_cast<std::size_t>(e.width_v);
        const auto matrix = [&](int i, typename Extents::Strides step) {
            return kernels::AttentionArgs::Matrix{
                args.in[i].as<float>(), static_cast<std::ptrdiff_t>(step.batch),
                static_cast<std::ptrdiff_t>(step.head), static_cast<std::ptrdiff_t>(step.row)};
        };
        g.q = matrix(0, e.of_query());
        g.k = matrix(1, e.of_key());
        g.v = matrix(2, e.of_value());
        const auto out = e.of_result();
        g.o = args.out[0].as<float>();
        g.o_batch = out.batch, g.o_head = out.head, g.o_row = out.row;
        if (args.has(3)) {
            g.mask = args.in[3].as<float>();
            const std::array scores{e.batch, e.heads, e.m, e.n};
            const auto strides = broadcast_strides(args.in[3].shape, scores);
            g.mask_batch = strides[0], g.mask_head = strides[1];
            g.mask_row = strides[2], g.mask_column = strides[3];
        }
        g.causal = a.causal;
        g.zero_if_masked = a.zero_if_masked;
        g.round_to_bf16 = rounds;
        g.scale = static_cast<float>(scale_of(a, e.width));
        kernels::attention_f32(g, args.share.ith, args.share.nth);
    }
    static constexpr std::array kernels{
        KernelDef{.name = "attention_bf16", .applies = &bf16_applies, .run = &run_kernel<true>},
        KernelDef{.name = "attention_f32", .applies = &kernel_applies, .run = &run_kernel<false>}};

    static Cost cost(const Operands& in, std::span<const TensorType> out, const Attrs& a) {
        const Extents e(in[0].sizes(), in[1].sizes(), in[2].sizes(), a);
        double bytes = static_cast<double>(out[0].bytes());
        for (int i = 0; i < in.size(); ++i)
            if (in.has(i)) bytes += static_cast<double>(in[i].bytes());
        const double scores = static_cast<double>(e.batch * e.heads * e.m) * static_cast<double>(e.n);
        return {scores * static_cast<double>(2 * (e.width + e.width_v) + 15), bytes};
    }

    static std::vector<Sample> samples() {
        std::vector<Sample> list;
        const auto add = [&](DType t, const Shape& q, const Shape& k, const Shape& v,
                             std::optional<Shape> mask, NamedAttrs attrs) {
            list.push_back({{{.type = {t, q}},
                             {.type = {t, k}},
                             {.type = {t, v}},
                             {.type = {t, mask.value_or(Shape{})}, .low = -8, .high = 0, .absent = !mask}},
                            std::move(attrs),
                            sample_tolerance(t)});
        };
        const NamedAttrs causal{{"causal", true}};
        add(DType::f32, {2, 3, 70, 32}, {2, 3, 45, 32}, {2, 3, 45, 24}, std::nullopt, {});
        add(DType::f32, {1, 8, 7, 16}, {1, 2, 19, 16}, {1, 2, 19, 16}, Shape{1, 1, 7, 19}, {});
        add(DType::f32, {2, 4, 5, 16}, {2, 4, 9, 16}, {2, 4, 9, 16}, Shape{2, 1, 1, 9}, {{"scale", 0.5}});
        add(DType::f32, {2, 4, 5, 16}, {2, 2, 9, 16}, {2, 2, 9, 16}, Shape{4, 5, 1}, {});
        add(DType::f32, {1, 4, 1, 32}, {1, 2, 33, 32}, {1, 2, 33, 32}, Shape{33}, {});
        add(DType::f32, {1, 2, 100, 16}, {1, 2, 100, 16}, {1, 2, 100, 16}, std::nullopt, causal);
        add(DType::f32, {1, 2, 9, 16}, {1, 2, 5, 16}, {1, 2, 5, 16}, Shape{9, 5}, causal);
        add(DType::f32, {3, 6, 8}, {3, 6, 8}, {3, 6, 8}, std::nullopt, causal);
        add(DType::f32, {6, 8}, {4, 8}, {4, 3}, Shape{6, 4}, {});
        add(DType::f32, {2, 2, 2, 6, 8}, {2, 2, 1, 6, 8}, {2, 2, 1, 6, 8}, Shape{2, 1, 2, 1, 6}, {});
        const NamedAttrs after{{"heads_after_rows", true}};
        add(DType::f32, {2, 70, 3, 32}, {2, 45, 3, 32}, {2, 45, 3, 24}, std::nullopt, after);
        add(DType::f32, {1, 7, 8, 16}, {1, 19, 2, 16}, {1, 19, 2, 16}, Shape{8, 7, 19}, after);
        add(DType::f32, {5, 2, 8}, {5, 2, 8}, {5, 2, 8}, std::nullopt,
            {{"heads_after_rows", true}, {"causal", true}});
        add(DType::f32, {2, 2, 6, 2, 8}, {2, 2, 6, 1, 8}, {2, 2, 6, 1, 8}, Shape{2, 1, 2, 1, 6}, after);
        add(DType::f16, {2, 5, 4, 16}, {2, 9, 2, 16}, {2, 9, 2, 16}, Shape{5, 9}, after);
        for (const NamedAttrs& attrs : {NamedAttrs{}, causal, after})
            for (const std::int64_t keys : {45, 130}) {
                const bool are_after = attrs == after;
                const Shape q = are_after ? Shape{2, 70, 4, 33} : Shape{2, 4, 70, 33};
                const Shape k = are_after ? Shape{2, keys, 2, 33} : Shape{2, 2, keys, 33};
                Shape v = k;
                v.back() = 24;
                add(DType::f32, q, k, v, std::nullopt, attrs);
                list.back().attrs.emplace_back("round_to_bf16", true);
                list.back().tolerance = 0.05;
            }
        for (DType t : {DType::f16, DType::bf16, DType::f64})
            add(t, {2, 4, 5, 16}, {2, 2, 9, 16}, {2, 2, 9, 16}, Shape{5, 9}, {});
        return list;
    }
};

}  // namespace

std::span<const OpDef> attention_ops() { return OpList<Attention>::defs(); }

}  // namespace headrace::ops
