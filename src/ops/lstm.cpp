/// Long short-term memory, a whole sequence or one step.
#include <array>

#include "kernels/lstm_f32.h"
#include "ops/infer.h"
#include "ops/op.h"
#include "ops/recurrent.h"

namespace headrace::ops {
namespace {

/// Order of the gates in weights and biases: input i, output o, forget f, cell g.
enum class LstmLayout : std::uint8_t { iofg, ifgo };
constexpr auto enum_names(LstmLayout) { return std::array<std::string_view, 2>{"iofg", "ifgo"}; }

struct CellAttrs {
    std::int64_t hidden_size = 0;
    LstmLayout layout = LstmLayout::iofg;
    std::string activations = "sigmoid,tanh,tanh";

    template <class A>
    static void cell_fields(auto&& f) {
        f("hidden_size", &A::hidden_size, "number of values in the state", kRequired);
        f("layout", &A::layout, "order of the gates: input i, output o, forget f, cell g");
        f("activations", &A::activations,
          "functions of the gates i, o and f, of g, and of the cell in the output");
    }
};

/// One direction's state, and how a step changes it.
template <class T>
class LstmState {
public:
    /// `peephole` is null or has the weights with which the cell enters the gates i, o and f, in this order.
    LstmState(const CellAttrs& a, Gates<T> gates, const T* peephole, std::vector<double> hidden,
              std::vector<double> cell)
        : gates_(gates),
          peephole_(peephole),
          ifgo_(a.layout == LstmLayout::ifgo),
          functions_(parse_activations(a.activations, 3).value()),
          hidden_(std::move(hidden)),
          cell_(std::move(cell)),
          next_(hidden_.size()) {}

    void step(const std::vector<double>& x) {
        const auto size = static_cast<std::int64_t>(hidden_.size());
        const std::int64_t out = ifgo_ ? 3 : 1, forget = ifgo_ ? 1 : 2, candidate = ifgo_ ? 2 : 3;
        for (std::int64_t j = 0; j < size; ++j) {
            // All three gates see the previous cell, as in the specification; ONNX's o sees the new one.
            const auto peep = [&](int gate) {
                return peephole_ ? convert<double>(peephole_[gate * size + j]) * cell_[j] : 0.0;
            };
            const double i = activate(functions_[0], gates_.sum(0, j, x, hidden_) + peep(0));
            const double o = activate(functions_[0], gates_.sum(out, j, x, hidden_) + peep(1));
            const double f = activate(functions_[0], gates_.sum(forget, j, x, hidden_) + peep(2));
            const double g = activate(functions_[1], gates_.sum(candidate, j, x, hidden_));
            cell_[j] = f * cell_[j] + i * g;
            next_[j] = o * activate(functions_[2], cell_[j]);
        }
        hidden_.swap(next_);
    }
    const std::vector<double>& hidden() const { return hidden_; }
    const std::vector<double>& cell() const { return cell_; }

private:
    Gates<T> gates_;
    const T* peephole_;
    bool ifgo_;
    std::vector<GateFunction> functions_;
    std::vector<double> hidden_, cell_, next_;
};

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

    struct Attrs : CellAttrs {
        std::optional<std::int64_t> steps;
        bool return_sequence = false;
        Direction direction = Direction::forward;
        static void fields(auto&& f) {
            cell_fields<Attrs>(f);
            f("steps", &Attrs::steps, "number of steps; absent: the input's");
            f("return_sequence", &Attrs::return_sequence, "a third output has the state after every step");
            f("direction", &Attrs::direction,
              "both: two networks, one of them from the end to the beginning");
        }
    };

    static Result<Types> infer(const Operands& in, const Attrs& a) {
        HR_TRY(check_hidden_size(a.hidden_size));
        HR_TRY(parse_activations(a.activations, 3));
        const Shape& input = in[0].shape;
        if (a.steps) HR_TRY(check_steps(input[0], *a.steps));
        const Dim count = directions(a.direction), hidden = a.hidden_size, rows = 4 * a.hidden_size;
        HR_TRY(check_shape(in, operands, 1, {count, rows, input[2]}));
        HR_TRY(check_shape(in, operands, 2, {count, rows, hidden}));
        for (int i : {3, 4}) HR_TRY(check_shape(in, operands, i, {count, rows}));
        HR_TRY(check_shape(in, operands, 5, {count, 3 * a.hidden_size}));
        const Shape state{count, input[1], hidden};
        for (int i : {6, 7}) HR_TRY(check_shape(in, operands, i, state));
        Types out{{in[0].dtype, state}, {in[0].dtype, state}};
        if (a.return_sequence) out.push_back({in[0].dtype, {input[0], count, input[1], hidden}});
        return out;
    }

    static void reference(const TensorArgs& args, const Attrs& a) {
        visit_dtype(args.in[0].dtype, [&]<class T>() {
            std::optional<LstmState<T>> state;
            const std::int64_t size = a.hidden_size;
            const auto initial = [&](int operand, std::int64_t at) {
                return args.has(operand) ? args.in[operand].as<T>() + at : nullptr;
            };
            walk_sequence<T>(
                args, a.direction,
                [&](std::int64_t d, std::int64_t slot) {
                    state.emplace(a, gates_of<T>(args, {1, 2, 3, 4}, d, 4, size), initial(5, d * 3 * size),
                                  read_row(initial(6, slot * size), size),
                                  read_row(initial(7, slot * size), size));
                },
                [&](const std::vector<double>& x) { state->step(x); },
                [&](std::int64_t place) {
                    if (a.return_sequence) write_row(state->hidden(), args.out[2].as<T>() + place * size);
                },
                [&](std::int64_t slot) {
                    write_row(state->hidden(), args.out[0].as<T>() + slot * size);
                    write_row(state->cell(), args.out[1].as<T>() + slot * size);
                });
        });
    }

    static bool kernel_applies(const Operands& in, std::span<const bool>, const void* attrs) {
        const Attrs& a = headrace::detail::attrs_ref<Attrs>(attrs);
        // The reference, in double, is as fast for a few values, and exact.
        constexpr std::int64_t kLeastHidden = 16;
        return in[0].dtype == DType::f32 && a.hidden_size >= kLeastHidden && !in.has(5) &&
               a.activations == "sigmoid,tanh,tanh";
    }
    static bool packed_applies(const Operands& in, std::span<const bool> is_constant, const void* attrs) {
        return kernel_applies(in, is_constant, attrs) && is_constant[2];
    }
    static std::size_t packed_bytes(const Operands& in, const void*) {
        const auto shape = in[2].sizes();
        return kernels::packed_recurrent_bytes(static_cast<std::size_t>(shape[0]),
                                               static_cast<std::size_t>(shape[2]));
    }
    static void pack(const ConstView& weight, const void*, std::byte* packed) {
        kernels::pack_recurrent(reinterpret_cast<const float*>(weight.data),
                                static_cast<std::size_t>(weight.shape[0]),
                                static_cast<std::size_t>(weight.shape[2]), reinterpret_cast<float*>(packed));
    }
    template <bool kIsPacked>
    static void run_kernel(const TensorArgs& args, const void* attrs) {
        const Attrs& a = headrace::detail::attrs_ref<Attrs>(attrs);
        const auto shape = args.in[0].shape;
        const auto data = [&](int i) { return args.has(i) ? args.in[i].as<float>() : nullptr; };
        const bool ifgo = a.layout == LstmLayout::ifgo;
        kernels::lstm_f32({.steps = static_cast<std::size_t>(shape[0]),
                           .batch = static_cast<std::size_t>(shape[1]),
                           .inputs = static_cast<std::size_t>(shape[2]),
                           .hidden = static_cast<std::size_t>(a.hidden_size),
                           .directions = static_cast<std::size_t>(directions(a.direction)),
                           .backward = a.direction == Direction::backward,
                           .output = ifgo ? 3u : 1u,
                           .forget = ifgo ? 1u : 2u,
                           .candidate = ifgo ? 2u : 3u,
                           .x = data(0),
                           .weight = data(1),
                           .recurrent_weight = kIsPacked ? nullptr : data(2),
                           .packed_recurrent = kIsPacked ? data(2) : nullptr,
                           .bias = data(3),
                           .recurrent_bias = data(4),
                           .hidden_state = data(6),
                           .cell_state = data(7),
                           .last_hidden = args.out[0].as<float>(),
                           .last_cell = args.out[1].as<float>(),
                           .sequence = a.return_sequence ? args.out[2].as<float>() : nullptr},
                          args.share.ith, args.share.nth);
    }
    static constexpr std::array kernels{
        KernelDef{.name = "packed_lstm_f32",
                  .applies = &packed_applies,
                  .packed_operand = 2,
                  .packed_bytes = &packed_bytes,
                  .pack = &pack,
                  .run = &run_kernel<true>},
        KernelDef{.name = "lstm_f32", .applies = &kernel_applies, .run = &run_kernel<false>}};

    static Cost cost(const Operands& in, std::span<const TensorType> out, const Attrs&) {
        Cost cost = elementwise_cost(in, out, 0);
        cost.flops = 2.0 * static_cast<double>(in[1].elements() + in[2].elements()) *
                     static_cast<double>(in[0].shape[0].size() * in[0].shape[1].size());
        return cost;
    }

    static std::vector<Sample> samples() {
        std::vector<Sample> list;
        const auto add = [&](DType t, std::int64_t count, bool given, NamedAttrs attrs, std::int64_t h = 5) {
            attrs.emplace_back("hidden_size", h);
            const auto operand = [&](Shape shape, bool absent = false) {
                return SampleOperand{.type = {t, std::move(shape)}, .low = -1, .high = 1, .absent = absent};
            };
            list.push_back({{operand({4, 2, 3}), operand({count, 4 * h, 3}), operand({count, 4 * h, h}),
                             operand({count, 4 * h}, !given), operand({count, 4 * h}, !given),
                             operand({count, 3 * h}, !given), operand({count, 2, h}, !given),
                             operand({count, 2, h}, !given)},
                            std::move(attrs),
                            t == DType::f16 ? 4e-3 : 1e-5});
        };
        add(DType::f32, 1, false, {});
        add(DType::f32, 2, true,
            {{"direction", std::string("both")}, {"return_sequence", true}, {"steps", std::int64_t{4}}});
        // For the kernel: wide enough, without peepholes.
        const NamedAttrs both{{"direction", std::string("both")}, {"return_sequence", true}};
        add(DType::f32, 1, false, {}, 16);
        add(DType::f32, 1, false, {{"direction", std::string("backward")}}, 17);
        list.back().operands[2].constant = true;
        for (const char* layout : {"iofg", "ifgo"}) {
            add(DType::f32, 2, true, both, 18);
            list.back().attrs.emplace_back("layout", std::string(layout));
            list.back().operands[5].absent = true;
        }
        list.back().operands[2].constant = true;
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

    struct Attrs : CellAttrs {
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
                LstmState<T> state(a, gates_of<T>(args, {1, 2, 5, 6}, 0, 4, size),
                                   args.has(7) ? args.in[7].as<T>() : nullptr,
                                   read_row(args.in[3].as<T>() + row * size, size),
                                   read_row(args.in[4].as<T>() + row * size, size));
                state.step(read_row(args.in[0].as<T>() + row * inputs, inputs));
                write_row(state.hidden(), args.out[0].as<T>() + row * size);
                write_row(state.cell(), args.out[1].as<T>() + row * size);
            }
        });
    }

    static Cost cost(const Operands& in, std::span<const TensorType> out, const Attrs&) {
        Cost cost = elementwise_cost(in, out, 0);
        cost.flops = 2.0 * static_cast<double>(in[1].elements() + in[2].elements()) *
                     static_cast<double>(in[0].shape[0].size());
        return cost;
    }

    static std::vector<Sample> samples() {
        std::vector<Sample> list;
        for (DType t : {DType::f32, DType::f16, DType::f64})
            for (const bool given : {false, true}) {
                const auto operand = [&](Shape shape, bool absent = false) {
                    return SampleOperand{
                        .type = {t, std::move(shape)}, .low = -1, .high = 1, .absent = absent};
                };
                list.push_back(
                    {{operand({2, 3}), operand({20, 3}), operand({20, 5}), operand({2, 5}), operand({2, 5}),
                      operand({20}, !given), operand({20}, !given), operand({15}, !given)},
                     {{"hidden_size", std::int64_t{5}}},
                     t == DType::f16 ? 4e-3 : 1e-5});
            }
        return list;
    }
};

}  // namespace

std::span<const OpDef> lstm_ops() { return OpList<Lstm, LstmCell>::defs(); }

}  // namespace headrace::ops
