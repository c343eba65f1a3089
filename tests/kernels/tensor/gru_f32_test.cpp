#include "kernels/tensor/gru_f32.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <memory>
#include <vector>

#include "kernels/each_target.h"
#include "kernels/gemm/gemm_f32.h"
#include "kernels/guarded.h"
#include "kernels/matrix.h"

namespace headrace::kernels {
namespace {

using testing::for_each_target;
using testing::Guarded;
using testing::random_floats;

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

// One row of the batch in one direction, in double precision.
struct GruByHand {
    const GruArgs& g;
    std::vector<double> hidden;

    void step(size_t direction, size_t t, size_t row) {
        const size_t rows = 3 * g.hidden;
        const auto input = [&](size_t place, size_t j) {
            const size_t at = (t * g.batch + row) * g.directions + direction;
            return static_cast<double>(g.gate_input[at * rows + place * g.hidden + j]);
        };
        const auto recurrent = [&](size_t place, size_t j, const std::vector<double>& h) {
            const size_t r = direction * rows + place * g.hidden + j;
            double sum = g.recurrent_bias ? g.recurrent_bias[r] : 0;
            for (size_t i = 0; i < g.hidden; ++i) sum += g.recurrent_weight[r * g.hidden + i] * h[i];
            return sum;
        };
        std::vector<double> reset(g.hidden), scaled(g.hidden), next(g.hidden);
        for (size_t j = 0; j < g.hidden; ++j) {
            reset[j] = sigmoid(input(g.reset, j) + recurrent(g.reset, j, hidden));
            scaled[j] = reset[j] * hidden[j];
        }
        for (size_t j = 0; j < g.hidden; ++j) {
            const double share = g.reset_after ? reset[j] * recurrent(2, j, hidden) : recurrent(2, j, scaled);
            const double update = sigmoid(input(g.update, j) + recurrent(g.update, j, hidden));
            next[j] = update * hidden[j] + (1 - update) * std::tanh(input(2, j) + share);
        }
        hidden = next;
    }
};

void expect_gru(size_t kHidden, size_t batch, size_t directions, bool backward, unsigned turn, int nth) {
    const bool given = turn % 2, is_packed = turn / 2 % 2, is_rzn = turn / 4 % 2, after = turn / 8 % 2;
    constexpr size_t steps = 6;
    SCOPED_TRACE(::testing::Message()
                 << kHidden << " values, " << batch << " rows, " << directions << " directions, backward "
                 << backward << ", state and bias " << given << ", packed " << is_packed << ", rzn " << is_rzn
                 << ", reset after " << after << ", threads " << nth);
    const auto side = turn % 3 ? Guarded::Side::back : Guarded::Side::front;
    const size_t slots = directions * batch;
    Guarded gate_input(random_floats(steps * slots * 3 * kHidden, 1), side);
    Guarded recurrent(random_floats(directions * 3 * kHidden * kHidden, 3, -0.3f, 0.3f), side);
    Guarded hidden(random_floats(slots * kHidden, 6), side),
        bias(random_floats(directions * 3 * kHidden, 7), side);
    Guarded last_hidden(std::vector<float>(slots * kHidden), side),
        sequence(std::vector<float>(steps * slots * kHidden), side);
    GruArgs g;
    g.steps = steps, g.batch = batch, g.hidden = kHidden, g.directions = directions;
    g.backward = backward, g.gate_input = gate_input.data(), g.recurrent_weight = recurrent.data();
    g.reset_after = after;
    if (given) g.hidden_state = hidden.data(), g.recurrent_bias = bias.data();
    if (is_rzn) g.update = 1, g.reset = 0;
    g.last_hidden = last_hidden.data(), g.sequence = sequence.data();
    const std::unique_ptr<float, decltype(&std::free)> packed(
        static_cast<float*>(
            std::aligned_alloc(kPackedAlignment, packed_gru_recurrent_bytes(directions, kHidden))),
        &std::free);
    pack_gru_recurrent(recurrent.data(), directions, kHidden, packed.get());
    if (is_packed) g.packed_recurrent = packed.get();
    for (int ith = 0; ith < nth; ++ith) gru_f32(g, ith, nth);

    for (size_t slot = 0; slot < slots; ++slot) {
        const size_t direction = slot / batch;
        GruByHand row{g, std::vector<double>(kHidden)};
        for (size_t j = 0; given && j < kHidden; ++j) row.hidden[j] = hidden.data()[slot * kHidden + j];
        for (size_t i = 0; i < steps; ++i) {
            const size_t t = direction == 1 || backward ? steps - 1 - i : i;
            row.step(direction, t, slot % batch);
            for (size_t j = 0; j < kHidden; ++j)
                ASSERT_NEAR(sequence.data()[(t * slots + slot) * kHidden + j], row.hidden[j], 1e-5);
        }
        for (size_t j = 0; j < kHidden; ++j)
            ASSERT_NEAR(last_hidden.data()[slot * kHidden + j], row.hidden[j], 1e-5);
    }
}

TEST(GruF32, MatchesDoublePrecisionInEachDirection) {
    for_each_target([] {
        unsigned turn = 0;
        for (const size_t hidden : {1, 16, 19, 70})
            for (const size_t batch : {1, 2, 5})
                for (const int nth : {1, 2, 3, 7}) {
                    expect_gru(hidden, batch, 1, false, turn++, nth);
                    expect_gru(hidden, batch, 1, true, turn++, nth);
                    expect_gru(hidden, batch, 2, false, turn++, nth);
                }
    });
}

TEST(GruF32, KeepsNaNInTheRowThatMeetsIt) {
    for_each_target([] {
        constexpr size_t kHidden = 20, kBatch = 3;
        for (const bool after : {false, true}) {
            std::vector<float> input(2 * kBatch * 3 * kHidden, 0.25f),
                recurrent(3 * kHidden * kHidden, 0.01f), h(kBatch * kHidden);
            input[3 * kHidden + kHidden + 3] = NAN;  // row 1, the gate that resets
            GruArgs g;
            g.steps = 2, g.batch = kBatch, g.hidden = kHidden, g.gate_input = input.data();
            g.recurrent_weight = recurrent.data(), g.reset_after = after, g.last_hidden = h.data();
            gru_f32(g, 0, 1);
            for (size_t j = 0; j < kHidden; ++j) {
                EXPECT_TRUE(std::isnan(h[kHidden + j])) << j;
                EXPECT_EQ(h[j], h[2 * kHidden + j]) << j;
                EXPECT_TRUE(std::isfinite(h[j])) << j;
            }
        }
    });
}

}  // namespace
}  // namespace headrace::kernels
