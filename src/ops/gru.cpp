/// Gated recurrent units (arXiv:1406.1078), a whole sequence or one step.
#include <array>

#include "ops/infer.h"
#include "ops/op.h"
#include "ops/recurrent.h"

namespace headrace::ops {
namespace {

/// Order of the gates in weights and biases: update z, reset r, new n.
enum class GruLayout : std::uint8_t { zrn, rzn };
constexpr auto enum_names(GruLayout) { return std::array<std::string_view, 2>{"zrn", "rzn"}; }

struct GruAttrs {
    std::int64_t hidden_size = 0;
    bool reset_after = true;
    GruLayout layout = GruLayout::zrn;
    std::string activations = "sigmoid,tanh";

    template <class A>
    static void cell_fields(auto&& f) {
        f("hidden_size", &A::hidden_size, "number of values in the state", kRequired);
        f("reset_after", &A::reset_after,
          "the reset gate scales the state after its product with the weights");
        f("layout", &A::layout, "order of the gates: update z, reset r, new n");
        f("activations", &A::activations, "functions of the gates z and r, and of n");
    }
};

/// One direction's state, and how a step changes it.
template <class T>
class GruState {
public:
    GruState(const GruAttrs& a, Gates<T> gates, std::vector<double> hidden)
        : gates_(gates),
          reset_after_(a.reset_after),
          update_(a.layout == GruLayout::zrn ? 0 : 1),
          functions_(parse_activations(a.activations, 2).value()),
          hidden_(std::move(hidden)),
          scaled_(hidden_.size()),
          next_(hidden_.size()) {}

    void step(const std::vector<double>& x) {
        const auto size = static_cast<std::int64_t>(hidden_.size());
        const std::int64_t reset = 1 - update_;
        constexpr std::int64_t kNew = 2;
        for (std::int64_t j = 0; j < size; ++j) {
            const double r = activate(functions_[0], gates_.sum(reset, j, x, hidden_));
            scaled_[j] = reset_after_ ? r * gates_.recurrent(kNew, j, hidden_) : r * hidden_[j];
        }
        for (std::int64_t j = 0; j < size; ++j) {
            const double recurrent = reset_after_ ? scaled_[j] : gates_.recurrent(kNew, j, scaled_);
            const double n = activate(functions_[1], gates_.input(kNew, j, x) + recurrent);
            const double z = activate(functions_[0], gates_.sum(update_, j, x, hidden_));
            next_[j] = z * hidden_[j] + (1 - z) * n;
        }
        hidden_.swap(next_);
    }
    const std::vector<double>& hidden() const { return hidden_; }

private:
    Gates<T> gates_;
    bool reset_after_;
    std::int64_t update_;
    std::vector<GateFunction> functions_;
    std::vector<double> hidden_, scaled_, next_;
};

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

    struct Attrs : GruAttrs {
        std::optional<std::int64_t> steps;
        bool return_sequence = false;
        Direction direction = Direction::forward;
        static void fields(auto&& f) {
            cell_fields<Attrs>(f);
            f("steps", &Attrs::steps, "number of steps; absent: the input's");
            f("return_sequence", &Attrs::return_sequence, "a second output has the state after every step");
            f("direction", &Attrs::direction,
              "both: two networks, one of them from the end to the beginning");
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
        const Shape state{count, input[1], hidden};
        HR_TRY(check_shape(in, operands, 5, state));
        Types out{{in[0].dtype, state}};
        if (a.return_sequence) out.push_back({in[0].dtype, {input[0], count, input[1], hidden}});
        return out;
    }

    static void reference(const TensorArgs& args, const Attrs& a) {
        visit_dtype(args.in[0].dtype, [&]<class T>() {
            std::optional<GruState<T>> state;
            const std::int64_t size = a.hidden_size;
            walk_sequence<T>(
                args, a.direction,
                [&](std::int64_t d, std::int64_t slot) {
                    const T* initial = args.has(5) ? args.in[5].as<T>() + slot * size : nullptr;
                    state.emplace(a, gates_of<T>(args, {1, 2, 3, 4}, d, 3, size), read_row(initial, size));
                },
                [&](const std::vector<double>& x) { state->step(x); },
                [&](std::int64_t place) {
                    if (a.return_sequence) write_row(state->hidden(), args.out[1].as<T>() + place * size);
                },
                [&](std::int64_t slot) { write_row(state->hidden(), args.out[0].as<T>() + slot * size); });
        });
    }

    static Cost cost(const Operands& in, std::span<const TensorType> out, const Attrs&) {
        Cost cost = elementwise_cost(in, out, 0);
        cost.flops = 2.0 * static_cast<double>(in[1].elements() + in[2].elements()) *
                     static_cast<double>(in[0].shape[0].size() * in[0].shape[1].size());
        return cost;
    }

    static std::vector<Sample> samples() {
        std::vector<Sample> list;
        const auto add = [&](DType t, std::int64_t count, bool optional, NamedAttrs attrs) {
            attrs.emplace_back("hidden_size", std::int64_t{5});
            const auto operand = [&](Shape shape, bool absent = false) {
                return SampleOperand{.type = {t, std::move(shape)}, .low = -1, .high = 1, .absent = absent};
            };
            list.push_back({{operand({4, 2, 3}), operand({count, 15, 3}), operand({count, 15, 5}),
                             operand({count, 15}, !optional), operand({count, 15}, !optional),
                             operand({count, 2, 5}, !optional)},
                            std::move(attrs),
                            t == DType::f16 ? 4e-3 : 1e-5});
        };
        add(DType::f32, 1, false, {});
        add(DType::f32, 2, true,
            {{"direction", std::string("both")}, {"return_sequence", true}, {"steps", std::int64_t{4}}});
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
                GruState<T> state(a, gates_of<T>(args, {1, 2, 4, 5}, 0, 3, size),
                                  read_row(args.in[3].as<T>() + row * size, size));
                state.step(read_row(args.in[0].as<T>() + row * inputs, inputs));
                write_row(state.hidden(), args.out[0].as<T>() + row * size);
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
            for (const bool optional : {false, true}) {
                const auto operand = [&](Shape shape, bool absent = false) {
                    return SampleOperand{
                        .type = {t, std::move(shape)}, .low = -1, .high = 1, .absent = absent};
                };
                list.push_back({{operand({2, 3}), operand({15, 3}), operand({15, 5}), operand({2, 5}),
                                 operand({15}, !optional), operand({15}, !optional)},
                                {{"hidden_size", std::int64_t{5}}, {"reset_after", optional}},
                                t == DType::f16 ? 4e-3 : 1e-5});
            }
        return list;
    }
};

}  // namespace

std::span<const OpDef> gru_ops() { return OpList<Gru, GruCell>::defs(); }

}  // namespace headrace::ops
