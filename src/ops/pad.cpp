/// Margins around a tensor.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <type_traits>

#include "emit/emit.h"
#include "ir/expression.h"
#include "ops/composed.h"
#include "ops/extents.h"
#include "ops/indices.h"
#include "ops/infer.h"
#include "ops/nibbles.h"
#include "ops/op.h"
#include "ops/strided.h"
#include "ops/through_f32.h"

namespace headrace::ops {
namespace {

enum class PadMode : std::uint8_t { constant, edge, reflection };
constexpr std::array<std::string_view, 3> enum_names(PadMode) { return {"constant", "edge", "reflection"}; }

struct PadAttrs {
    Shape beginning_padding, ending_padding;
    PadMode mode = PadMode::constant;
    Number value = std::int64_t{0};
    static void fields(auto&& f) {
        f("beginning_padding", &PadAttrs::beginning_padding, "elements added before, in each dimension",
          kRequired);
        f("ending_padding", &PadAttrs::ending_padding, "elements added after, in each dimension", kRequired);
        f("mode", &PadAttrs::mode, "value, nearest element, or mirror image without the edge itself");
        f("value", &PadAttrs::value, "of the margin in mode constant");
    }
};

/// A number as an element. Integers wrap; a real number saturates, and NaN becomes 0.
template <class T>
T element_from(const Number& value) {
    if constexpr (!std::is_integral_v<T>) {
        return static_cast<T>(number_as<compute_t<T>>(value));
    } else {
        if (!std::holds_alternative<double>(value)) return number_as<T>(value);
        const double v = std::get<double>(value);
        if (std::isnan(v)) return 0;
        if (v <= static_cast<double>(std::numeric_limits<T>::min())) return std::numeric_limits<T>::min();
        if (v >= static_cast<double>(std::numeric_limits<T>::max())) return std::numeric_limits<T>::max();
        return static_cast<T>(v);
    }
}

/// Where an output index of one dimension reads the input; -1 in the constant margin.
std::vector<std::int64_t> source_indices(std::int64_t size, std::int64_t before, std::int64_t after,
                                         PadMode mode) {
    std::vector<std::int64_t> source(static_cast<std::size_t>(before + size + after));
    for (std::size_t i = 0; i < source.size(); ++i) {
        std::int64_t at = static_cast<std::int64_t>(i) - before;
        if (at < 0 || at >= size) {
            if (mode == PadMode::constant)
                at = -1;
            else if (mode == PadMode::edge)
                at = at < 0 ? 0 : size - 1;
            else
                at = at < 0 ? -at : 2 * (size - 1) - at;
        }
        source[i] = at;
    }
    return source;
}

/// What is padded: a dimension without padding is merged into the one before, where that does not change the
/// margin.
struct Margins {
    std::vector<std::int64_t> sizes, before, after;

    Margins(Sizes shape, const PadAttrs& a) {
        bool previous_padded = false;
        for (std::size_t i = 0; i < shape.size(); ++i) {
            const bool padded = !a.beginning_padding[i].is(0) || !a.ending_padding[i].is(0);
            const bool same_margin = a.mode == PadMode::constant || !previous_padded;
            if (!sizes.empty() && !padded && same_margin) {
                for (auto* v : {&sizes, &before, &after}) v->back() *= shape[i];
                continue;
            }
            sizes.push_back(shape[i]);
            before.push_back(a.beginning_padding[i].size());
            after.push_back(a.ending_padding[i].size());
            previous_padded = padded;
        }
        if (sizes.empty()) {
            sizes = {1};
            before = after = {0};
        }
    }
    std::vector<std::int64_t> extents() const {
        std::vector<std::int64_t> result;
        for (std::size_t i = 0; i < sizes.size(); ++i) result.push_back(before[i] + sizes[i] + after[i]);
        return result;
    }
};

template <class T>
void pad_rows(const TensorArgs& args, const PadAttrs& a) {
    const Margins m(args.in[0].shape, a);
    const auto strides = dense_strides(m.sizes), extents = m.extents();
    std::vector<std::vector<std::int64_t>> source;
    for (std::size_t d = 0; d < m.sizes.size(); ++d)
        source.push_back(source_indices(m.sizes[d], m.before[d], m.after[d], a.mode));
    const int last = static_cast<int>(m.sizes.size()) - 1;
    const std::int64_t width = extents[last], inner_end = m.before[last] + m.sizes[last];
    const T value = element_from<T>(a.value);
    const auto part = args.share.of(width == 0 ? 0 : args.out[0].elements() / width);
    for (std::int64_t row = part.begin; row < part.end; ++row) {
        const T* from = args.in[0].as<T>();
        std::int64_t rest = row;
        for (int d = last - 1; d >= 0 && from; --d) {
            const std::int64_t at = source[d][rest % extents[d]];
            rest /= extents[d];
            from = at < 0 ? nullptr : from + at * strides[d];
        }
        T* to = args.out[0].as<T>() + row * width;
        if (!from) {
            std::fill_n(to, width, value);
            continue;
        }
        const auto margin = [&](std::int64_t begin, std::int64_t end) {
            for (std::int64_t i = begin; i < end; ++i)
                to[i] = source[last][i] < 0 ? value : from[source[last][i]];
        };
        margin(0, m.before[last]);
        std::copy_n(from, m.sizes[last], to + m.before[last]);
        margin(inner_end, width);
    }
}

struct Pad {
    static constexpr std::string_view name = "pad", summary = "the input with a margin around it";
    static constexpr std::array operands{OperandRule{.name = "input", .dtypes = kAny}};
    static constexpr LayoutRule layout = LayoutRule::axes;
    using Attrs = PadAttrs;

    static Result<Types> infer(const Operands& in, const Attrs& a) {
        const std::size_t rank = in[0].shape.size();
        if (a.beginning_padding.size() != rank || a.ending_padding.size() != rank)
            return invalid("beginning_padding {} and ending_padding {} need one entry per dimension of {}",
                           str(a.beginning_padding), str(a.ending_padding), str(in[0].shape));
        TensorType out = in[0];
        for (std::size_t i = 0; i < rank; ++i) {
            HR_ASSIGN(out.shape[i], output_extent(in, in[0].shape[i], i, a));
        }
        return Types{out};
    }

    static std::optional<int> same_as(const Operands&, const Attrs& a) {
        if (is_zero(a.beginning_padding) && is_zero(a.ending_padding)) return 0;
        return std::nullopt;
    }

    static void reference(const TensorArgs& args, const Attrs& a) {
        Attrs attrs = a;
        if (bits_of(args.out[0].dtype) == 4) attrs.value = std::int64_t{element_from<std::int8_t>(a.value)};
        move_elements(args, [&](const TensorArgs& view) {
            visit_dtype(view.out[0].dtype, [&]<class T>() { pad_rows<T>(view, attrs); });
        });
    }

    static Status lowerable(const Operands& in, const Attrs& a) {
        if (in[0].dtype != DType::f32 && in[0].dtype != DType::f16)
            return unsupported("{}", name_of(in[0].dtype));
        const float value = number_as<float>(a.value);
        const bool is_constant = a.mode == PadMode::constant;
        if (is_constant && (std::isnan(value) || (value == 0 && std::signbit(value))))
            return unsupported("a margin of {}", value);
        const Margins m(in[0].sizes(), a);
        // ggml keeps extents of margins in 32 bits.
        const std::int64_t most = is_constant ? INT32_MAX : composed::kMostPositions;
        for (const std::int64_t extent : m.extents())
            if (extent > most)
                return unsupported("extent {} in mode {}", extent,
                                   enum_names(a.mode)[static_cast<int>(a.mode)]);
        return success();
    }

    static std::vector<ggml_tensor*> lower(Emit& e, std::span<ggml_tensor* const> x, const Operands& in,
                                           const Attrs& a) {
        const TensorType out = infer(in, a).value()[0];
        const Margins m(in[0].sizes(), a);
        if (m.extents() == m.sizes) return {e.shaped(x[0], out)};
        ggml_tensor* y = to_f32(e, x[0], in[0].dtype);
        const auto value = number_as<float>(a.value);
        if (a.mode == PadMode::constant && m.sizes.size() <= 4)
            return {from_f32(e, composed::pad(e, e.reshape(y, m.sizes), m.before, m.after, value), out)};
        std::vector<std::int64_t> extents = m.sizes;
        for (std::size_t i = 0; i < extents.size(); ++i) {
            const std::int64_t to = m.before[i] + m.sizes[i] + m.after[i];
            const std::array around{extent_product(extents, 0, i), extents[i],
                                    extent_product(extents, i + 1, extents.size())};
            if (to != extents[i])
                y = lower_margin(e, e.reshape(y, around), m.before[i], m.after[i], value, a.mode);
            extents[i] = to;
        }
        return {from_f32(e, y, out)};
    }
    /// Margins in the middle dimension of three.
    static ggml_tensor* lower_margin(Emit& e, ggml_tensor* x, std::int64_t before, std::int64_t after,
                                     float value, PadMode mode) {
        if (mode == PadMode::constant)
            return composed::pad(e, x, std::array<std::int64_t, 3>{0, before, 0},
                                 std::array<std::int64_t, 3>{0, after, 0}, value);
        const std::int64_t size = Emit::extent(x, 1);
        ggml_tensor* at = e.scale(e.positions(before + size + after), 1, static_cast<float>(-before));
        if (mode == PadMode::edge) return composed::picked(e, x, at);
        // There and back: |last - | |at| - last | |.
        const auto last = static_cast<float>(size - 1);
        ggml_tensor* from_last = e.unary(Unary::abs, e.scale(e.unary(Unary::abs, at), 1, -last));
        return composed::picked(e, x, e.scale(from_last, -1, last));
    }

    static bool is_padded(const Operands& in, std::span<const bool>, const void* attrs) {
        return !same_as(in, detail::attrs_ref<Attrs>(attrs));
    }
    static void run(const TensorArgs& args, const void* attrs) {
        reference(args, detail::attrs_ref<Attrs>(attrs));
    }
    /// ggml tests every element's position.
    static constexpr std::array kernels{KernelDef{.name = "pad_rows", .applies = &is_padded, .run = &run}};

    static Cost cost(const Operands& in, std::span<const TensorType> out, const Attrs&) {
        return elementwise_cost(in, out, 0);
    }

    static std::vector<Sample> samples() {
        using Integers = std::vector<std::int64_t>;
        const auto sample = [](DType t, Shape shape, Integers before, Integers after, NamedAttrs attrs = {}) {
            attrs.emplace_back("beginning_padding", std::move(before));
            attrs.emplace_back("ending_padding", std::move(after));
            return Sample{{{.type = {t, std::move(shape)}, .low = 0, .high = 7}}, std::move(attrs)};
        };
        return {sample(DType::f32, {5}, {1}, {2}),
                sample(DType::f32, {}, {}, {}),
                sample(DType::f32, {2, 3, 2, 2}, {1, 0, 0, 2}, {0, 1, 3, 0}),
                sample(DType::f32, {2, 3, 2, 2, 2}, {0, 0, 1, 0, 0}, {0, 0, 1, 0, 0}),
                sample(DType::f32, {2, 2, 2, 2, 2}, {1, 1, 1, 1, 1}, {0, 0, 0, 0, 0}),
                sample(DType::f32, {2, 3}, {1, 2}, {1, 2}, {{"value", 9.5}}),
                sample(DType::f32, {3, 4}, {2, 1}, {1, 3}, {{"mode", "edge"}}),
                sample(DType::f32, {3, 4}, {2, 1}, {1, 3}, {{"mode", "reflection"}}),
                sample(DType::f16, {2, 3}, {1, 0}, {0, 1}),
                sample(DType::i64, {2, 2}, {1, 1}, {0, 0}, {{"value", std::int64_t{-3}}}),
                sample(DType::u8, {4}, {2}, {2}, {{"mode", "reflection"}}),
                sample(DType::i4, {3}, {1}, {1}, {{"value", std::int64_t{-2}}})};
    }

private:
    static bool is_zero(const Shape& padding) {
        return std::ranges::all_of(padding, [](const Dim& n) { return n.is(0); });
    }

    static Result<Dim> output_extent(const Operands& in, const Dim& extent, std::size_t i, const Attrs& a) {
        const Dim &before = a.beginning_padding[i], &after = a.ending_padding[i];
        if (!at_least(in, before, 0) || !at_least(in, after, 0))
            return invalid("dimension {}: padding {} and {} must not be negative", i, before.str(),
                           after.str());
        if (before.is(0) && after.is(0)) return extent;
        if (a.mode == PadMode::reflection && !(reflects(in, extent, before) && reflects(in, extent, after)))
            return invalid("dimension {}: reflection padding {} and {} must be less than the extent {}", i,
                           before.str(), after.str(), extent.str());
        if (a.mode == PadMode::edge && extent.max_size() == 0)
            return invalid("dimension {}: an extent of 0 has no edge to pad with", i);
        // Bounds that are found term by term may lie below what an extent can be.
        const auto least = [](const Dim& d) { return std::max<std::int64_t>(d.min_size(), 0); };
        std::int64_t low = 0, high = 0;
        if (!total(low, least(before), least(extent), least(after)))
            return invalid(
                "dimension {}: extent {} and padding {} and {} add up to more than the largest integer", i,
                extent.str(), before.str(), after.str());
        if (!extent.is_symbolic() && !before.is_symbolic() && !after.is_symbolic()) return Dim(low);
        if (!total(high, before.max_size(), extent.max_size(), after.max_size())) high = INT64_MAX;
        return Dim::of(Expression(extent) + Expression(before) + Expression(after), {low, high});
    }

    /// Whether there is an element for each of the margin.
    static bool reflects(const Operands& in, const Dim& extent, const Dim& margin) {
        if (margin.is(0)) return true;
        if (!margin.is_symbolic()) return margin.size() < extent.max_size();  // the rest when it is run
        return at_least(in, extent, sum(margin, 1));
    }

    static bool total(std::int64_t& sum, std::int64_t a, std::int64_t b, std::int64_t c) {
        return !__builtin_add_overflow(a, b, &sum) && !__builtin_add_overflow(sum, c, &sum);
    }
};

}  // namespace

std::span<const OpDef> pad_ops() { return OpList<Pad>::defs(); }

}  // namespace headrace::ops
