/// Gated recurrent units (arXiv:1406.1078), a whole sequence or one step.
#include <array>

#include "ops/elementwise.h"
#include "ops/gru.h"
#include "ops/infer.h"
#include "ops/op.h"
#include "ops/recurrent_lowering.h"

namespace headrace::ops {
namespace {

struct Gru {
    static constexpr std::string_view name = "gru", summary = "gated recurrent unit over a sequence";
    static constexpr std::array operands{
        OperandRule{.name = "input", .dtypes = kFloats, .min_rank = 3, .max_rank = 3},
        required("weight", 3),
        required("recurrent_weight", 3),
        optional("bias", 2),
        optional("recurrent_bias", 2),
        optional("initial_hidden_state", 3)};
    static constexpr int outputs = -1;

    struct Attrs : GruSequenceAttrs {
        std::optional<std::int64_t> steps;
        static void fields(auto&& f) {
            cell_fields<Attrs>(f);
            f("steps", &Attrs::steps, "number of steps; absent: the input's");
            sequence_fields<Attrs>(f);
        }
    };

    static Result<Types> infer(const Operands& in, const Attrs& a) {
        HR_TRY(check_hidden_size(a.hidden_size));
        HR_TRY(parse_activations(a.activations, 2));
        const Shape& input = in[0].shape;
        if (a.steps) HR_TRY(check_steps(in, input[0], *a.steps));
        const Dim count = directions(a.direction), hidden = a.hidden_size, rows = 3 * a.hidden_size;
        HR_TRY(check_shape(in, operands, 1, {count, rows, input[2]}));
        HR_TRY(check_shape(in, operands, 2, {count, rows, hidden}));
        for (int i : {3, 4}) HR_TRY(check_shape(in, operands, i, {count, rows}));
        HR_TRY(check_shape(in, operands, 5, {count, input[1], hidden}));
        return gru_types(in[0], a);
    }

    static void reference(const TensorArgs& args, const Attrs& a) {
        visit_dtype(args.in[0].dtype, [&]<class T>() {
            run_gru<T>(args, a, 5, [&](std::int64_t d) {
                return gates_of<T>(args, {1, 2, 3, 4}, d, 3, a.hidden_size);
            });
        });
    }

    static Status lowerable(const Operands& in, const Attrs& a) {
        return recurrence_lowerable(in[0], in[0].shape[0].size(), a.direction, a);
    }
    static std::vector<ggml_tensor*> lower(Emit& e, std::span<ggml_tensor* const> x, const Operands& in,
                                           const Attrs& a) {
        const SequenceOperands which{
            .weight = 1, .bias = 3, .recurrent_weight = 2, .recurrent_bias = 4, .hidden = 5, .gates = 3};
        const auto directions = lowered_directions(e, x, in, which, a.direction, a.hidden_size);
        return as_types(e, lower_gru(e, a, directions), infer(in, a).value());
    }
    /// ggml takes every step apart.
    static constexpr std::array kernels{OnePass<Gru>::kKernel};

    static Cost cost(const Operands& in, std::span<const TensorType> out, const Attrs&) {
        return recurrence_cost(in, out, in[1].elements() + in[2].elements(),
                               in[0].shape[0].size() * in[0].shape[1].size());
    }

    static std::vector<Sample> samples() {
        std::vector<Sample> list;
        const auto add = [&](DType t, std::int64_t count, bool optional, NamedAttrs attrs,
                             std::int64_t h = 5) {
            attrs.emplace_back("hidden_size", h);
            const RecurrentSample operand{t};
            list.push_back({{operand({4, 2, 3}), operand({count, 3 * h, 3}), operand({count, 3 * h, h}),
                             operand({count, 3 * h}, !optional), operand({count, 3 * h}, !optional),
                             operand({count, 2, h}, !optional)},
                            std::move(attrs),
                            operand.tolerance()});
        };
        add(DType::f32, 1, false, {});
        add(DType::f32, 2, true,
            {{"direction", std::string("both")}, {"return_sequence", true}, {"steps", std::int64_t{4}}});
        add(DType::f32, 2, true, {{"direction", std::string("both")}}, 16);  // wide enough for the pass
        add(DType::f16, 1, true, {{"direction", std::string("backward")}, {"reset_after", false}});
        add(DType::f64, 1, true,
            {{"layout", std::string("rzn")}, {"activations", std::string("relu,sigmoid")}});
        return list;
    }
};

struct GruCell {
    static constexpr std::string_view name = "gru_cell", summary = "one step of a gated recurrent unit";
    static constexpr std::array operands{
        OperandRule{.name = "input", .dtypes = kFloats, .min_rank = 2, .max_rank = 2},
        required("weight", 2),
        required("recurrent_weight", 2),
        required("hidden_state", 2),
        optional("bias", 1),
        optional("recurrent_bias", 1)};

    struct Attrs : GruAttrs {
        static void fields(auto&& f) { cell_fields<Attrs>(f); }
    };

    static Result<Types> infer(const Operands& in, const Attrs& a) {
        HR_TRY(check_hidden_size(a.hidden_size));
        HR_TRY(parse_activations(a.activations, 2));
        const Shape& input = in[0].shape;
        const Dim hidden = a.hidden_size, rows = 3 * a.hidden_size;
        HR_TRY(check_shape(in, operands, 1, {rows, input[1]}));
        HR_TRY(check_shape(in, operands, 2, {rows, hidden}));
        HR_TRY(check_shape(in, operands, 3, {input[0], hidden}));
        for (int i : {4, 5}) HR_TRY(check_shape(in, operands, i, {rows}));
        return Types{{in[0].dtype, {input[0], hidden}}};
    }

    static void reference(const TensorArgs& args, const Attrs& a) {
        const std::int64_t size = a.hidden_size, inputs = args.in[0].shape[1];
        const auto part = args.share.of(args.in[0].shape[0]);
        visit_dtype(args.in[0].dtype, [&]<class T>() {
            for (std::int64_t row = part.begin; row < part.end; ++row) {
                GruState state(a, gates_of<T>(args, {1, 2, 4, 5}, 0, 3, size),
                               read_row(args.in[3].as<T>() + row * size, size));
                state.step(read_row(args.in[0].as<T>() + row * inputs, inputs));
                write_row(state.hidden(), args.out[0].as<T>() + row * size);
            }
        });
    }

    static Status lowerable(const Operands& in, const Attrs& a) {
        return recurrence_lowerable(in[0], 1, Direction::forward, a);
    }
    static std::vector<ggml_tensor*> lower(Emit& e, std::span<ggml_tensor* const> x, const Operands& in,
                                           const Attrs& a) {
        const DType dtype = in[0].dtype;
        const auto operand = [&](int i) { return in.has(i) ? to_f32(e, x[i], dtype) : nullptr; };
        const LoweredDirection step{.input = cell_input(e, operand(0), operand(1), operand(4)),
                                    .recurrent_weight = operand(2),
                                    .recurrent_bias = operand(5),
                                    .hidden = operand(3)};
        return as_types(e, lower_gru(e, {a}, {step}), infer(in, a).value());
    }
    /// ggml takes every step apart.
    static constexpr std::array kernels{OnePass<GruCell>::kKernel};

    static Cost cost(const Operands& in, std::span<const TensorType> out, const Attrs&) {
        return recurrence_cost(in, out, in[1].elements() + in[2].elements(), in[0].shape[0].size());
    }

    static std::vector<Sample> samples() {
        std::vector<Sample> list;
        for (DType t : {DType::f32, DType::f16, DType::f64})
            for (const bool optional : {false, true}) {
                const std::int64_t h =
                    t == DType::f32 && !optional ? 16 : 5;  // wide enough for the pass, or not
                const RecurrentSample operand{t};
                list.push_back({{operand({2, 3}), operand({3 * h, 3}), operand({3 * h, h}), operand({2, h}),
                                 operand({3 * h}, !optional), operand({3 * h}, !optional)},
                                {{"hidden_size", h}, {"reset_after", optional}},
                                operand.tolerance()});
            }
        return list;
    }
};

}  // namespace

std::span<const OpDef> gru_ops() { return OpList<Gru, GruCell>::defs(); }

}  // namespace headrace::ops
