/// Choices among elements whose number the elements decide: results have room for all, and say how many they
/// are.
#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <optional>

#include "base/run_stop.h"
#include "ops/infer.h"
#include "ops/op.h"
#include "ops/strided.h"

namespace headrace::ops {
namespace {

/// Corners of a box, low before high.
struct Corners {
    float low[2], high[2];
    float area;
};

Corners corners_of(const float* box, bool is_centered) {
    Corners c{};
    for (int d = 0; d < 2; ++d) {
        const float a = is_centered ? box[d] - box[d + 2] / 2 : box[d];
        const float b = is_centered ? box[d] + box[d + 2] / 2 : box[d + 2];
        c.low[d] = std::min(a, b);
        c.high[d] = std::max(a, b);
    }
    c.area = (c.high[0] - c.low[0]) * (c.high[1] - c.low[1]);
    return c;
}

bool overlap_more(const Corners& a, const Corners& b, float threshold) {
    const float height = std::min(a.high[0], b.high[0]) - std::max(a.low[0], b.low[0]);
    const float width = std::min(a.high[1], b.high[1]) - std::max(a.low[1], b.low[1]);
    if (!(height > 0 && width > 0)) return false;
    const float common = height * width;
    return common / (a.area + b.area - common) > threshold;
}

struct NonMaxSuppression {
    static constexpr std::string_view
        name = "non_max_suppression",
        summary =
            "boxes of the highest scores that overlap no better one: rows of batch, class and box, of which "
            "the second result says how many count; the others are 0";
    static constexpr std::array operands{
        OperandRule{.name = "boxes", .dtypes = {DType::f32}, .min_rank = 3, .max_rank = 3},
        OperandRule{.name = "scores", .dtypes = {DType::f32}, .min_rank = 3, .max_rank = 3},
        OperandRule{.name = "most", .dtypes = {DType::i64}, .max_rank = 1},
        OperandRule{.name = "overlap", .dtypes = {DType::f32}, .max_rank = 1},
        OperandRule{.name = "least_score", .dtypes = {DType::f32}, .optional = true, .max_rank = 1}};
    static constexpr int outputs = 2;

    struct Attrs {
        bool centered = false;
        std::optional<std::int64_t> room;
        static void fields(auto&& f) {
            f("centered", &Attrs::centered,
              "boxes are x, y of the centre, width, height; else two opposite corners, each y, x");
            f("room", &Attrs::room, "boxes of each batch and class that there is room for; absent: all");
        }
    };

    static Result<Types> infer(const Operands& in, const Attrs& a) {
        const Shape &boxes = in[0].shape, &scores = in[1].shape;
        if (!same_extent(in, boxes[0], scores[0]) || !same_extent(in, boxes[1], scores[2]) || !boxes[2].is(4))
            return invalid("boxes {} and scores {} must be [batches, boxes, 4] and [batches, classes, boxes]",
                           str(boxes), str(scores));
        for (int i = 2; i < in.size(); ++i)
            if (in.has(i) && in[i].rank() == 1 && !same_extent(in, in[i].shape[0], 1))
                return invalid("operand {} is {}; it must be one element", operands[i].name, in[i].str());
        if (a.room && *a.room < 0) return invalid("room is {}; it must be at least 0", *a.room);
        const Dim each = a.room ? Dim::of(Expression::least({Expression(boxes[1]), *a.room})) : boxes[1];
        return Types{{DType::i64, {product({scores[0], scores[1], each}), 3}}, {DType::i64, {1}}};
    }

    static void reference(const TensorArgs& args, const Attrs& a) {
        if (!args.share.first()) return;
        const std::int64_t batches = args.in[1].shape[0], classes = args.in[1].shape[1],
                           boxes = args.in[1].shape[2];
        const std::int64_t most =
            std::clamp<std::int64_t>(*args.in[2].as<std::int64_t>(), 0, a.room.value_or(INT64_MAX));
        auto* rows = args.out[0].as<std::int64_t>();
        std::int64_t count = 0;
        std::vector<Corners> corners(static_cast<std::size_t>(boxes));
        for (std::int64_t b = 0; b < batches; ++b) {
            for (std::int64_t i = 0; i < boxes; ++i)
                corners[i] = corners_of(args.in[0].as<float>() + (b * boxes + i) * 4, a.centered);
            for (std::int64_t c = 0; c < classes; ++c)
                for (const std::int64_t i : chosen(args, b * classes + c, corners, most)) {
                    const std::int64_t row[] = {b, c, i};
                    std::copy_n(row, 3, rows + 3 * count++);
                }
        }
        std::fill(rows + 3 * count, rows + 3 * args.out[0].shape[0], 0);
        *args.out[1].as<std::int64_t>() = count;
    }

    static Cost cost(const Operands& in, std::span<const TensorType> out, const Attrs&) {
        return elementwise_cost(in, out, 50);
    }

    static std::vector<Sample> samples() {
        const auto sample = [](Shape boxes, Shape scores, NamedAttrs attrs, bool has_least) {
            Sample s{{{.type = {DType::f32, std::move(boxes)}, .low = 0, .high = 4},
                      {.type = {DType::f32, std::move(scores)}, .low = 0, .high = 1},
                      {.type = {DType::i64, {1}}, .low = 3, .high = 3},
                      {.type = {DType::f32, {}}, .low = 0.3, .high = 0.5}},
                     std::move(attrs)};
            if (has_least) s.operands.push_back({.type = {DType::f32, {1}}, .low = 0.2, .high = 0.3});
            return s;
        };
        return {sample({1, 6, 4}, {1, 2, 6}, {}, false),
                sample({2, 5, 4}, {2, 1, 5}, {{"centered", true}}, true),
                sample({1, 8, 4}, {1, 3, 8}, {{"room", std::int64_t{4}}}, true)};
    }

private:
    /// Boxes of one batch and class, the best first; of equal scores the first.
    static std::vector<std::int64_t> chosen(const TensorArgs& args, std::int64_t line,
                                            const std::vector<Corners>& corners, std::int64_t most) {
        const auto boxes = static_cast<std::int64_t>(corners.size());
        const float* scores = args.in[1].as<float>() + line * boxes;
        const float overlap = *args.in[3].as<float>();
        std::vector<std::int64_t> candidates, kept;
        for (std::int64_t i = 0; i < boxes; ++i)
            if (!args.has(4) || scores[i] > *args.in[4].as<float>()) candidates.push_back(i);
        // A heap, for most often only a few of many are asked for.
        const auto is_worse = [&](std::int64_t i, std::int64_t j) {
            return scores[i] < scores[j] || (scores[i] == scores[j] && i > j);
        };
        std::ranges::make_heap(candidates, is_worse);
        while (!candidates.empty() && static_cast<std::int64_t>(kept.size()) < most) {
            check_stop();  // as many boxes may be kept as there are
            std::ranges::pop_heap(candidates, is_worse);
            const std::int64_t i = candidates.back();
            candidates.pop_back();
            if (std::ranges::none_of(kept,
                                     [&](auto k) { return overlap_more(corners[i], corners[k], overlap); }))
                kept.push_back(i);
        }
        return kept;
    }
};

struct Unique {
    static constexpr std::string_view
        name = "unique",
        summary =
            "the different rows of a matrix, or elements of a list: where each is first, which one every row "
            "is, how often each is there, and how many there are; places after so many are 0";
    static constexpr std::array operands{OperandRule{
        .name = "input", .dtypes = kNumeric | DTypeSet{DType::boolean}, .min_rank = 1, .max_rank = 2}};
    static constexpr int outputs = 4;

    struct Attrs {
        bool sorted = true;
        static void fields(auto&& f) {
            f("sorted", &Attrs::sorted, "in ascending order, NaN last; else as they come first");
        }
    };

    static Result<Types> infer(const Operands& in, const Attrs&) {
        const TensorType each{DType::i64, {in[0].shape[0]}};
        return Types{each, each, each, {DType::i64, {1}}};
    }

    static void reference(const TensorArgs& args, const Attrs& a) {
        if (!args.share.first()) return;
        const std::int64_t rows = args.in[0].shape[0];
        const std::int64_t width = args.in[0].rank() == 2 ? args.in[0].shape[1] : 1;
        std::vector<std::int64_t> order(static_cast<std::size_t>(rows)), group(order.size());
        std::iota(order.begin(), order.end(), 0);
        std::vector<std::int64_t> first;
        StopCheck may_stop;
        visit_dtype(args.in[0].dtype, [&]<class T>() {
            const T* x = args.in[0].as<T>();
            const auto less = [&](std::int64_t i, std::int64_t j) {
                may_stop();
                return is_less(x + i * width, x + j * width, width);
            };
            std::ranges::stable_sort(order, less);
            for (std::size_t k = 0; k < order.size(); ++k) {
                if (k == 0 || less(order[k - 1], order[k])) first.push_back(order[k]);
                group[static_cast<std::size_t>(order[k])] = static_cast<std::int64_t>(first.size()) - 1;
            }
        });
        std::vector<std::int64_t> place(first.size());
        std::iota(place.begin(), place.end(), 0);
        if (!a.sorted) std::ranges::sort(place, {}, [&](std::int64_t g) { return first[g]; });
        std::vector<std::int64_t> at(first.size());
        for (std::size_t p = 0; p < place.size(); ++p) at[place[p]] = static_cast<std::int64_t>(p);
        auto* firsts = args.out[0].as<std::int64_t>();
        auto* inverse = args.out[1].as<std::int64_t>();
        auto* counts = args.out[2].as<std::int64_t>();
        std::fill_n(firsts, rows, 0);
        std::fill_n(counts, rows, 0);
        for (std::size_t g = 0; g < first.size(); ++g) firsts[at[g]] = first[g];
        for (std::int64_t i = 0; i < rows; ++i) ++counts[inverse[i] = at[group[i]]];
        *args.out[3].as<std::int64_t>() = static_cast<std::int64_t>(first.size());
    }

    static Cost cost(const Operands& in, std::span<const TensorType> out, const Attrs&) {
        return elementwise_cost(in, out, 20);
    }

    static std::vector<Sample> samples() {
        const auto sample = [](DType t, Shape shape, NamedAttrs attrs) {
            return Sample{{{.type = {t, std::move(shape)}, .low = 0, .high = 3}}, std::move(attrs)};
        };
        return {sample(DType::i64, {9}, {}), sample(DType::f32, {6, 2}, {{"sorted", false}}),
                sample(DType::u8, {5, 1}, {}), sample(DType::f16, {4}, {})};
    }

private:
    /// Row by row; NaN is larger than all numbers.
    template <class T>
    static bool is_less(const T* a, const T* b, std::int64_t width) {
        for (std::int64_t i = 0; i < width; ++i) {
            const auto x = static_cast<compute_t<T>>(a[i]), y = static_cast<compute_t<T>>(b[i]);
            if (x < y || (x == x && y != y)) return true;
            if (y < x || (y == y && x != x)) return false;
        }
        return false;
    }
};

}  // namespace

std::span<const OpDef> selection_ops() { return OpList<NonMaxSuppression, Unique>::defs(); }

}  // namespace headrace::ops
