/// What hoist_recurrent_input_projection leaves of lstm and lstm_cell: the steps, of which each needs the one
/// before.
#include "kernels/gemm/bf16_gemm_f32.h"
#include "kernels/tensor/lstm_f32.h"

#include <array>

#include "ops/elementwise.h"
#include "ops/infer.h"
#include "ops/lstm.h"
#include "ops/op.h"
#include "ops/product.h"
#include "ops/recurrence_kernel.h"
#include "ops/recurrent_lowering.h"

namespace headrace::ops {
namespace {

struct LstmRecurrence {
    static constexpr std::string_view name = "lstm_recurrence",
                                      summary =
                                          "long short-term memory over what its gates get from a "
                                          "sequence: weight · input + biases, of each direction";
    static constexpr std::array operands{
        OperandRule{.name = "gate_input", .dtypes = kFloats, .min_rank = 3, .max_rank = 3},
        required("recurrent_weight", 3), optional("peephole_weight", 2), optional("initial_hidden_state", 3),
        optional("initial_cell_state", 3)};
    static constexpr int kPeephole = 2;
    static constexpr int outputs = -1;

    struct Attrs : LstmSequenceAttrs {
        bool round_to_bf16 = false;
        static void fields(auto&& f) {
            cell_fields<Attrs>(f);
            sequence_fields<Attrs>(f);
            f("round_to_bf16", &Attrs::round_to_bf16,
              "weights and hidden states, where they are f32, may be rounded to bf16 as they are multiplied");
        }
    };

    static Result<Types> infer(const Operands& in, const Attrs& a) {
        HR_TRY(check_hidden_size(a.hidden_size));
        HR_TRY(parse_activations(a.activations, 3));
        const Shape& input = in[0].shape;
        const std::int64_t count = directions(a.direction), hidden = a.hidden_size;
        HR_TRY(check_shape(in, operands, 0, {input[0], input[1], count * 4 * hidden}));
        HR_TRY(check_shape(in, operands, 1, {count, 4 * hidden, hidden}));
        HR_TRY(check_shape(in, operands, kPeephole, {count, 3 * hidden}));
        for (int i : {3, 4}) HR_TRY(check_shape(in, operands, i, {count, input[1], hidden}));
        return lstm_types(in[0], a);
    }

    static void reference(const TensorArgs& args, const Attrs& a) {
        const std::int64_t size = a.hidden_size;
        visit_dtype(args.in[0].dtype, [&]<class T>() {
            const T* weight = args.in[1].as<T>();
            run_lstm<T>(args, a, kPeephole, [&](std::int64_t d) {
                return KnownInputGates<T>{{.recurrent_weight = weight + d * 4 * size * size, .hidden = size},
                                          d * 4 * size};
            });
        });
    }

    static Status lowerable(const Operands& in, const Attrs& a) {
        return recurrence_lowerable(in[0], in[0].shape[0].size(), a.direction, a);
    }
    static std::vector<ggml_tensor*> lower(Emit& e, std::span<ggml_tensor* const> x, const Operands& in,
                                           const Attrs& a) {
        const SequenceOperands which{
            .recurrent_weight = 1, .peephole = kPeephole, .hidden = 3, .cell = 4, .gates = 4};
        const auto directions = lowered_directions(e, x, in, which, a.direction, a.hidden_size);
        return as_types(e, lower_lstm(e, a, directions), infer(in, a).value());
    }

    static bool kernel_applies(const Operands& in, std::span<const bool>, const void* attrs) {
        return in[0].dtype == DType::f32 && !in.has(kPeephole) &&
               detail::attrs_ref<Attrs>(attrs).activations == "sigmoid,tanh,tanh";
    }
    static bool packed_applies(const Operands& in, std::span<const bool> is_constant, const void* attrs) {
        return kernel_applies(in, is_constant, attrs) && is_constant[1];
    }
    static std::size_t packed_bytes(const Operands& in, const void*) {
        const auto shape = in[1].sizes();
        return kernels::packed_lstm_recurrent_bytes(static_cast<std::size_t>(shape[0]),
                                                    static_cast<std::size_t>(shape[2]));
    }
    static void pack(const ConstView& weight, const void*, std::byte* packed) {
        const auto directions = static_cast<std::size_t>(weight.shape[0]),
                   gates = static_cast<std::size_t>(weight.shape[1]),
                   hidden = static_cast<std::size_t>(weight.shape[2]);
        OnePassReader from(weight);
        for (std::size_t i = 0; i < directions; ++i)
            pack_transposed_rows(from, gates, hidden,
                                 reinterpret_cast<float*>(packed + i * kernels::packed_bytes(hidden, gates)),
                                 &kernels::pack);
    }
    static bool bf16_applies(const Operands& in, std::span<const bool> is_constant, const void* attrs) {
        return detail::attrs_ref<Attrs>(attrs).round_to_bf16 && packed_applies(in, is_constant, attrs) &&
               kernels::has_bf16_gemm();
    }
    static std::size_t bf16_bytes(const Operands& in, const void*) {
        const auto shape = in[1].sizes();
        return kernels::packed_lstm_bf16_bytes(static_cast<std::size_t>(shape[0]),
                                               static_cast<std::size_t>(shape[2]));
    }
    static void pack_bf16(const ConstView& weight, const void*, std::byte* packed) {
        kernels::pack_lstm_bf16(weight.as<float>(), static_cast<std::size_t>(weight.shape[0]),
                                static_cast<std::size_t>(weight.shape[2]),
                                reinterpret_cast<std::uint16_t*>(packed));
    }
    template <bool kIsPacked, bool kRounds = false>
    static void run_kernel(const TensorArgs& args, const void* attrs) {
        const Attrs& a = detail::attrs_ref<Attrs>(attrs);
        const bool ifgo = a.layout == LstmLayout::ifgo;
        kernels::LstmArgs g{recurrence_args(args, a, kIsPacked, {.hidden_state = 3, .sequence = 2})};
        g.output = ifgo ? 3 : 1;
        g.forget = ifgo ? 1 : 2;
        g.candidate = ifgo ? 2 : 3;
        g.cell_state = args.has(4) ? args.in[4].as<float>() : nullptr;
        g.last_cell = args.out[1].as<float>();
        g.round_to_bf16 = kRounds;
        kernels::lstm_f32(g, args.share.ith, args.share.nth);
    }
    static constexpr std::array kernels{
        KernelDef{"packed_lstm_bf16", &bf16_applies, 1, &bf16_bytes, &pack_bf16, &run_kernel<true, true>},
        KernelDef{.name = "packed_lstm_f32",
                  .applies = &packed_applies,
                  .packed_operand = 1,
                  .packed_bytes = &packed_bytes,
                  .pack = &pack,
                  .run = &run_kernel<true>,
                  .packs_in_one_pass = true},
        KernelDef{.name = "lstm_f32", .applies = &kernel_applies, .run = &run_kernel<false>},
        OnePass<LstmRecurrence>::kKernel};

    static Cost cost(const Operands& in, std::span<const TensorType> out, const Attrs&) {
        return recurrence_cost(in, out, in[1].elements(), in[0].shape[0].size() * in[0].shape[1].size());
    }

    static std::vector<Sample> samples() {
        std::vector<Sample> list;
        const auto add = [&](DType t, std::int64_t h, std::int64_t count, bool given, bool peephole,
                             bool constant, NamedAttrs attrs) {
            attrs.emplace_back("hidden_size", h);
            const RecurrentSample operand{t};
            list.push_back({{operand({4, 2, count * 4 * h}), operand({count, 4 * h, h}),
                             operand({count, 3 * h}, !peephole), operand({count, 2, h}, !given),
                             operand({count, 2, h}, !given)},
                            std::move(attrs),
                            operand.tolerance()});
            list.back().operands[1].constant = constant;
        };
        const NamedAttrs backward{{"direction", std::string("backward")}};
        for (const bool constant : {false, true}) {
            add(DType::f32, 16, 1, false, false, constant, {});
            add(DType::f32, 17, 1, true, false, constant, backward);
            for (const char* layout : {"iofg", "ifgo"})
                add(DType::f32, 18, 2, true, false, constant,
                    {{"direction", std::string("both")},
                     {"return_sequence", true},
                     {"layout", std::string(layout)}});
        }
        add(DType::f32, 19, 2, true, false, true,
            {{"direction", std::string("both")}, {"return_sequence", true}, {"round_to_bf16", true}});
        list.back().tolerance = 0.05;
        add(DType::f32, 5, 1, true, true, true, {{"return_sequence", true}});
        add(DType::f16, 5, 1, true, true, false, backward);
        add(DType::f64, 5, 1, true, true, false,
            {{"layout", std::string("ifgo")}, {"activations", std::string("relu,sigmoid,relu")}});
        return list;
    }
};

}  // namespace

std::span<const OpDef> lstm_recurrence_ops() { return OpList<LstmRecurrence>::defs(); }

}  // namespace headrace::ops
