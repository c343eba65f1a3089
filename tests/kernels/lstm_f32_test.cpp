#include "kernels/lstm_f32.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <memory>
#include <vector>

#include "kernels/each_target.h"
#include "kernels/gemm_f32.h"
#include "kernels/matrix.h"

namespace headrace::kernels {
namespace {

using testing::for_each_target;
using testing::random_floats;

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

// One row of the batch in one direction, in double precision; gates in the order i, o, f, g.
struct ByHand {
    const LstmArgs& g;
    std::vector<double> hidden, cell;

    void step(size_t direction, size_t t, size_t row) {
        const auto gate = [&](size_t place, size_t j) {
            const size_t r = direction * 4 * g.hidden + place * g.hidden + j;
            const size_t rows = g.directions * 4 * g.hidden;
            double sum = g.gate_input[(t * g.batch + row) * rows + r];
            for (size_t i = 0; i < g.hidden; ++i) sum += g.recurrent_weight[r * g.hidden + i] * hidden[i];
            return sum;
        };
        std::vector<double> next(g.hidden);
        for (size_t j = 0; j < g.hidden; ++j) {
            cell[j] =
                sigmoid(gate(g.forget, j)) * cell[j] + sigmoid(gate(0, j)) * std::tanh(gate(g.candidate, j));
            next[j] = sigmoid(gate(g.output, j)) * std::tanh(cell[j]);
        }
        hidden = next;
    }
};

void expect_lstm(size_t steps, size_t batch, size_t directions, bool backward, bool given, int nth) {
    SCOPED_TRACE(::testing::Message()
                 << steps << " steps of " << batch << ", " << directions << " directions, backward "
                 << backward << ", states " << given << ", threads " << nth);
    constexpr size_t kHidden = 19;
    const size_t slots = directions * batch;
    const auto gate_input = random_floats(steps * slots * 4 * kHidden, 1);
    const auto recurrent = random_floats(directions * 4 * kHidden * kHidden, 3, -0.3f, 0.3f);
    const auto hidden = random_floats(slots * kHidden, 6), cell = random_floats(slots * kHidden, 7);
    std::vector<float> last_hidden(slots * kHidden), last_cell(slots * kHidden),
        sequence(steps * slots * kHidden);
    LstmArgs g;
    g.steps = steps, g.batch = batch, g.hidden = kHidden, g.directions = directions;
    g.backward = backward, g.gate_input = gate_input.data(), g.recurrent_weight = recurrent.data();
    if (given) {
        g.hidden_state = hidden.data(), g.cell_state = cell.data();
        g.output = 3, g.forget = 1, g.candidate = 2;
    }
    g.last_hidden = last_hidden.data(), g.last_cell = last_cell.data(), g.sequence = sequence.data();
    const std::unique_ptr<float, decltype(&std::free)> packed(
        static_cast<float*>(
            std::aligned_alloc(kPackedAlignment, packed_recurrent_bytes(directions, kHidden))),
        &std::free);
    pack_recurrent(recurrent.data(), directions, kHidden, packed.get());
    if (given) g.packed_recurrent = packed.get();
    for (int ith = 0; ith < nth; ++ith) lstm_f32(g, ith, nth);

    for (size_t slot = 0; slot < slots; ++slot) {
        const size_t direction = slot / batch;
        ByHand row{g, std::vector<double>(kHidden), std::vector<double>(kHidden)};
        for (size_t j = 0; given && j < kHidden; ++j)
            row.hidden[j] = hidden[slot * kHidden + j], row.cell[j] = cell[slot * kHidden + j];
        for (size_t i = 0; i < steps; ++i) {
            const size_t t = direction == 1 || backward ? steps - 1 - i : i;
            row.step(direction, t, slot % batch);
            for (size_t j = 0; j < kHidden; ++j)
                ASSERT_NEAR(sequence[(t * slots + slot) * kHidden + j], row.hidden[j], 1e-5);
        }
        for (size_t j = 0; j < kHidden; ++j) {
            ASSERT_NEAR(last_hidden[slot * kHidden + j], row.hidden[j], 1e-5);
            ASSERT_NEAR(last_cell[slot * kHidden + j], row.cell[j], 1e-5);
        }
    }
}

TEST(LstmF32, MatchesDoublePrecisionInEachDirection) {
    for_each_target([] {
        for (const size_t batch : {1, 2, 5})
            for (const bool given : {false, true})
                for (const int nth : {1, 2, 3}) {
                    expect_lstm(6, batch, 1, false, given, nth);
                    expect_lstm(6, batch, 1, true, given, nth);
                    expect_lstm(6, batch, 2, false, given, nth);
                }
    });
}

}  // namespace
}  // namespace headrace::kernels
