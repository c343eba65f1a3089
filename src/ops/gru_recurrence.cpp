/// The steps of gru and gru_cell, each of which needs the one before. Their products with the inputs are
/// hoisted out by hoist_recurrent_input_projection.
#include "kernels/tensor/gru_f32.h"

#include <array>

#include "ops/elementwise.h"
#include "ops/gru.h"
#include "ops/infer.h"
#include "ops/op.h"
#include "ops/product.h"
#include "ops/recurrence_kernel.h"
#include "ops/recurrent_lowering.h"

namespace headrace::ops {
namespace {

struct GruRecurrence {
    static constexpr std::string_view name = "gru_recurrence",
                                      summary =
                                          "gated recurrent unit over what its gates get from a sequence: "
                                          "weight · input + bias, of each direction";
    static constexpr std::array operands{
        OperandRule{.name = "gate_input", .dtypes = kFloats, .min_rank = 3, .max_rank = 3},
        required("recurrent_weight", 3), optional("recurrent_bias", 2), optional("initial_hidden_state", 3)};
    static constexpr int kBias = 2, kHidden = 3;
    static constexpr int outputs = -1;

    struct Attrs : GruSequenceAttrs {
        static void fields(auto&& f) {
            cell_fields<Attrs>(f);
            sequence_fields<Attrs>(f);
        }
    };

    static Result<Types> infer(const Operands& in, const Attrs& a) {
        HR_TRY(check_hidden_size(a.hidden_size));
        HR_TRY(parse_activations(a.activations, 2));
        const Shape& input = in[0].shape;
        const std::int64_t count = directions(a.direction), hidden = a.hidden_size;
        HR_TRY(check_shape(in, operands, 0, {input[0], input[1], count * 3 * hidden}));
        HR_TRY(check_shape(in, operands, 1, {count, 3 * hidden, hidden}));
        HR_TRY(check_shape(in, operands, kBias, {count, 3 * hidden}));
        HR_TRY(check_shape(in, operands, kHidden, {count, input[1], hidden}));
        return gru_types(in[0], a);
    }

    static void reference(const TensorArgs& args, const Attrs& a) {
        const std::int64_t size = a.hidden_size, rows = 3 * size;
        visit_dtype(args.in[0].dtype, [&]<class T>() {
            const T *weight = args.in[1].as<T>(), *bias = args.has(kBias) ? args.in[kBias].as<T>() : nullptr;
            run_gru<T>(args, a, kHidden, [&](std::int64_t d) {
                return KnownInputGates<T>{{.recurrent_weight = weight + d * rows * size,
                                           .recurrent_bias = bias ? bias + d * rows : nullptr,
                                           .hidden = size},
                                          d * rows};
            });
        });
    }

    static Status lowerable(const Operands& in, const Attrs& a) {
        return recurrence_lowerable(in[0], in[0].shape[0].size(), a.direction, a);
    }
    static std::vector<ggml_tensor*> lower(Emit& e, std::span<ggml_tensor* const> x, const Operands& in,
                                           const Attrs& a) {
        const SequenceOperands which{
            .recurrent_weight = 1, .recurrent_bias = kBias, .hidden = kHidden, .gates = 3};
        const auto directions = lowered_directions(e, x, in, which, a.direction, a.hidden_size);
        return as_types(e, lower_gru(e, a, directions), infer(in, a).value());
    }

    static bool kernel_applies(const Operands& in, std::span<const bool>, const void* attrs) {
        return in[0].dtype == DType::f32 && detail::attrs_ref<Attrs>(attrs).activations == "sigmoid,tanh";
    }
    static bool packed_applies(const Operands& in, std::span<const bool> is_constant, const void* attrs) {
        return kernel_applies(in, is_constant, attrs) && is_constant[1];
    }
    /// On the CPU few values do not repay ggml's steps.
    static bool is_for_one_pass(const Operands& in, std::span<const bool> is_constant, const void* attrs) {
        constexpr std::int64_t kFewest = 16;
        return OnePass<GruRecurrence>::applies(in, is_constant, attrs) &&
               detail::attrs_ref<Attrs>(attrs).hidden_size < kFewest;
    }
    static std::size_t packed_bytes(const Operands& in, const void*) {
        const auto shape = in[1].sizes();
        return kernels::packed_gru_recurrent_bytes(static_cast<std::size_t>(shape[0]),
                                                   static_cast<std::size_t>(shape[2]));
    }
    static void pack(const ConstView& weight, const void*, std::byte* packed) {
        const auto directions = static_cast<std::size_t>(weight.shape[0]),
                   hidden = static_cast<std::size_t>(weight.shape[2]);
        OnePassReader from(weight);
        for (std::size_t i = 0; i < directions; ++i)
            for (const std::size_t rows : {2 * hidden, hidden}) {  // the gates', the new state's
                pack_transposed_rows(from, rows, hidden, reinterpret_cast<float*>(packed), &kernels::pack);
                packed += kernels::packed_bytes(hidden, rows);
            }
    }
    template <bool kIsPacked>
    static void run_kernel(const TensorArgs& args, const void* attrs) {
        const Attrs& a = detail::attrs_ref<Attrs>(attrs);
        kernels::GruArgs g{recurrence_args(args, a, kIsPacked, {.hidden_state = kHidden, .sequence = 1})};
        g.update = a.layout == GruLayout::zrn ? 0 : 1;
        g.reset = 1 - g.update;
        g.reset_after = a.reset_after;
        g.recurrent_bias = args.has(kBias) ? args.in[kBias].as<float>() : nullptr;
        kernels::gru_f32(g, args.share.ith, args.share.nth);
    }
    static constexpr std::array kernels{
        KernelDef{.name = "packed_gru_f32",
                  .applies = &packed_applies,
                  .packed_operand = 1,
                  .packed_bytes = &packed_bytes,
                  .pack = &pack,
                  .run = &run_kernel<true>,
                  .packs_in_one_pass = true},
        KernelDef{.name = "gru_f32", .applies = &kernel_applies, .run = &run_kernel<false>},
        KernelDef{.name = "one_pass", .applies = &is_for_one_pass, .run = &OnePass<GruRecurrence>::run}};

    static Cost cost(const Operands& in, std::span<const TensorType> out, const Attrs&) {
        return recurrence_cost(in, out, in[1].elements(), in[0].shape[0].size() * in[0].shape[1].size());
    }

    static std::vector<Sample> samples() {
        std::vector<Sample> list;
        const auto add = [&](DType t, std::int64_t h, std::int64_t count, bool given, bool constant,
                             NamedAttrs attrs) {
            attrs.emplace_back("hidden_size", h);
            const RecurrentSample operand{t};
            list.push_back({{operand({4, 2, count * 3 * h}), operand({count, 3 * h, h}),
                             operand({count, 3 * h}, !given), operand({count, 2, h}, !given)},
                            std::move(attrs),
                            operand.tolerance()});
            list.back().operands[1].constant = constant;
        };
        const NamedAttrs backward{{"direction", std::string("backward")}};
        for (const bool constant : {false, true}) {
            add(DType::f32, 16, 1, false, constant, {});
            add(DType::f32, 17, 1, true, constant, backward);
            for (const char* layout : {"zrn", "rzn"})
                for (const bool after : {false, true})
                    add(DType::f32, 18, 2, true, constant,
                        {{"direction", std::string("both")},
                         {"return_sequence", true},
                         {"reset_after", after},
                         {"layout", std::string(layout)}});
        }
        add(DType::f16, 5, 1, true, false, backward);
        add(DType::f32, 5, 1, true, false, {{"activations", std::string("tanh,sigmoid")}});
        add(DType::f64, 5, 1, true, false,
            {{"layout", std::string("rzn")}, {"activations", std::string("relu,sigmoid")}});
        return list;
    }
};

}  // namespace

std::span<const OpDef> gru_recurrence_ops() { return OpList<GruRecurrence>::defs(); }

}  // namespace headrace::ops
