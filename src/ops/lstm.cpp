/// Long short-term memory, a whole sequence or one step.
#include <array>

#include "ops/elementwise.h"
#include "ops/infer.h"
#include "ops/lstm.h"
#include "ops/op.h"
#include "ops/recurrent_lowering.h"

namespace headrace::ops {
namespace {

struct Lstm {
    static constexpr std::string_view name = "lstm", summary = "long short-term memory over a sequence";
    static constexpr std::array operands{
        OperandRule{.name = "input", .dtypes = kFloats, .min_rank = 3, .max_rank = 3},
        required("weight", 3),
        required("recurrent_weight", 3),
        optional("bias", 2),
        optional("recurrent_bias", 2),
        optional("peephole_weight", 2),
        optional("initial_hidden_state", 3),
        optional("initial_cell_state", 3)};
    static constexpr int outputs = -1;

    struct Attrs : LstmSequenceAttrs {
        std::optional<std::int64_t> steps;
        static void fields(auto&& f) {
            cell_fields<Attrs>(f);
            f("steps", &Attrs::steps, "number of steps; absent: the input's");
            sequence_fields<Attrs>(f);
        }
    };

    static Result<Types> infer(const Operands& in, const Attrs& a) {
        HR_TRY(check_hidden_size(a.hidden_size));
        HR_TRY(parse_activations(a.activations, 3));
        const Shape& input = in[0].shape;
        if (a.steps) HR_TRY(check_steps(in, input[0], *a.steps));
        const Dim count = directions(a.direction), hidden = a.hidden_size, rows = 4 * a.hidden_size;
        HR_TRY(check_shape(in, operands, 1, {count, rows, input[2]}));
        HR_TRY(check_shape(in, operands, 2, {count, rows, hidden}));
        for (int i : {3, 4}) HR_TRY(check_shape(in, operands, i, {count, rows}));
        HR_TRY(check_shape(in, operands, 5, {count, 3 * a.hidden_size}));
        const Shape state{count, input[1], hidden};
        for (int i : {6, 7}) HR_TRY(check_shape(in, operands, i, state));
        return lstm_types(in[0], a);
    }

    static void reference(const TensorArgs& args, const Attrs& a) {
        visit_dtype(args.in[0].dtype, [&]<class T>() {
            run_lstm<T>(args, a, 5, [&](std::int64_t d) {
                return gates_of<T>(args, {1, 2, 3, 4}, d, 4, a.hidden_size);
            });
        });
    }

    static Status lowerable(const Operands& in, const Attrs& a) {
        return recurrence_lowerable(in[0], in[0].shape[0].size(), a.direction, a);
    }
    static std::vector<ggml_tensor*> lower(Emit& e, std::span<ggml_tensor* const> x, const Operands& in,
                                           const Attrs& a) {
        const SequenceOperands which{.weight = 1,
                                     .bias = 3,
                                     .recurrent_weight = 2,
                                     .recurrent_bias = 4,
                                     .peephole = 5,
                                     .hidden = 6,
                                     .cell = 7,
                                     .gates = 4};
        const auto directions = lowered_directions(e, x, in, which, a.direction, a.hidden_size);
        return as_types(e, lower_lstm(e, a, directions), infer(in, a).value());
    }
    /// ggml takes every step apart.
    static constexpr std::array kernels{OnePass<Lstm>::kKernel};

    static Cost cost(const Operands& in, std::span<const TensorType> out, const Attrs&) {
        return recurrence_cost(in, out, in[1].elements() + in[2].elements(),
                               in[0].shape[0].size() * in[0].shape[1].size());
    }

    static std::vector<Sample> samples() {
        std::vector<Sample> list;
        const auto add = [&](DType t, std::int64_t count, bool given, NamedAttrs attrs, std::int64_t h = 5) {
            attrs.emplace_back("hidden_size", h);
            const RecurrentSample operand{t};
            list.push_back({{operand({4, 2, 3}), operand({count, 4 * h, 3}), operand({count, 4 * h, h}),
                             operand({count, 4 * h}, !given), operand({count, 4 * h}, !given),
                             operand({count, 3 * h}, !given), operand({count, 2, h}, !given),
                             operand({count, 2, h}, !given)},
                            std::move(attrs),
                            operand.tolerance()});
        };
        add(DType::f32, 1, false, {});
        add(DType::f32, 2, true,
            {{"direction", std::string("both")}, {"return_sequence", true}, {"steps", std::int64_t{4}}});
        add(DType::f32, 2, true, {{"direction", std::string("both")}}, 16);  // wide enough for the pass
        list.back().operands[5].absent = true;
        add(DType::f16, 1, true, {{"direction", std::string("backward")}, {"return_sequence", true}});
        add(DType::f64, 1, true,
            {{"layout", std::string("ifgo")}, {"activations", std::string("relu,sigmoid,relu")}});
        return list;
    }
};

struct LstmCell {
    static constexpr std::string_view name = "lstm_cell", summary = "one step of a long short-term memory";
    static constexpr std::array operands{
        OperandRule{.name = "input", .dtypes = kFloats, .min_rank = 2, .max_rank = 2},
        required("weight", 2),
        required("recurrent_weight", 2),
        required("hidden_state", 2),
        required("cell_state", 2),
        optional("bias", 1),
        optional("recurrent_bias", 1),
        optional("peephole_weight", 1)};
    static constexpr int outputs = 2;

    struct Attrs : LstmAttrs {
        static void fields(auto&& f) { cell_fields<Attrs>(f); }
    };

    static Result<Types> infer(const Operands& in, const Attrs& a) {
        HR_TRY(check_hidden_size(a.hidden_size));
        HR_TRY(parse_activations(a.activations, 3));
        const Shape& input = in[0].shape;
        const Dim hidden = a.hidden_size, rows = 4 * a.hidden_size;
        const Shape state{input[0], hidden};
        HR_TRY(check_shape(in, operands, 1, {rows, input[1]}));
        HR_TRY(check_shape(in, operands, 2, {rows, hidden}));
        for (int i : {3, 4}) HR_TRY(check_shape(in, operands, i, state));
        for (int i : {5, 6}) HR_TRY(check_shape(in, operands, i, {rows}));
        HR_TRY(check_shape(in, operands, 7, {3 * a.hidden_size}));
        return Types{{in[0].dtype, state}, {in[0].dtype, state}};
    }

    static void reference(const TensorArgs& args, const Attrs& a) {
        const std::int64_t size = a.hidden_size, inputs = args.in[0].shape[1];
        const auto part = args.share.of(args.in[0].shape[0]);
        visit_dtype(args.in[0].dtype, [&]<class T>() {
            for (std::int64_t row = part.begin; row < part.end; ++row) {
                LstmState state(a, gates_of<T>(args, {1, 2, 5, 6}, 0, 4, size),
                                args.has(7) ? args.in[7].as<T>() : nullptr,
                                read_row(args.in[3].as<T>() + row * size, size),
                                read_row(args.in[4].as<T>() + row * size, size));
                state.step(read_row(args.in[0].as<T>() + row * inputs, inputs));
                write_row(state.hidden(), args.out[0].as<T>() + row * size);
                write_row(state.cell(), args.out[1].as<T>() + row * size);
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
        const LoweredDirection step{.input = cell_input(e, operand(0), operand(1), operand(5)),
                                    .recurrent_weight = operand(2),
                                    .recurrent_bias = operand(6),
                                    .peephole = operand(7),
                                    .hidden = operand(3),
                                    .cell = operand(4)};
        return as_types(e, lower_lstm(e, {a}, {step}), infer(in, a).value());
    }
    /// ggml takes every step apart.
    static constexpr std::array kernels{OnePass<LstmCell>::kKernel};

    static Cost cost(const Operands& in, std::span<const TensorType> out, const Attrs&) {
        return recurrence_cost(in, out, in[1].elements() + in[2].elements(), in[0].shape[0].size());
    }

    static std::vector<Sample> samples() {
        std::vector<Sample> list;
        for (DType t : {DType::f32, DType::f16, DType::f64})
            for (const bool given : {false, true}) {
                const std::int64_t h =
                    t == DType::f32 && !given ? 16 : 5;  // wide enough for the pass, or not
                const RecurrentSample operand{t};
                list.push_back({{operand({2, 3}), operand({4 * h, 3}), operand({4 * h, h}), operand({2, h}),
                                 operand({2, h}), operand({4 * h}, !given), operand({4 * h}, !given),
                                 operand({3 * h}, !given)},
                                {{"hidden_size", h}},
                                operand.tolerance()});
            }
        return list;
    }
};

}  // namespace

std::span<const OpDef> lstm_ops() { return OpList<Lstm, LstmCell>::defs(); }

}  // namespace headrace::ops
