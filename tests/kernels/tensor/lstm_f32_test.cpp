#include "kernels/tensor/lstm_f32.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <limits>
#include <memory>
#include <vector>

#include "kernels/each_target.h"
#include "kernels/gemm/bf16_gemm_f32.h"
#include "kernels/gemm/gemm_f32.h"
#include "kernels/guarded.h"
#include "kernels/matrix.h"

namespace headrace::kernels {
namespace {

using testing::for_each_target;
using testing::Guarded;
using testing::random_floats;

double logistic(double x) { return 1 / (1 + std::exp(-x)); }

// One row of the batch in one direction, in double precision; gates in the order i, o, f, g.
struct LstmByHand {
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
            cell[j] = logistic(gate(g.forget, j)) * cell[j] +
                      logistic(gate(0, j)) * std::tanh(gate(g.candidate, j));
            next[j] = logistic(gate(g.output, j)) * std::tanh(cell[j]);
        }
        hidden = next;
    }
};

void expect_lstm(size_t kHidden, size_t batch, size_t directions, bool backward, unsigned turn, int nth,
                 bool rounds = false) {
    const bool given = turn % 2, is_packed = turn / 2 % 2, is_ifgo = turn / 4 % 2;
    constexpr size_t steps = 6;
    SCOPED_TRACE(::testing::Message()
                 << kHidden << " values, " << batch << " rows, " << directions << " directions, backward "
                 << backward << ", states " << given << ", packed " << is_packed << ", ifgo " << is_ifgo
                 << ", threads " << nth);
    const auto side = turn % 3 ? Guarded::Side::back : Guarded::Side::front;
    const size_t slots = directions * batch;
    Guarded gate_input(random_floats(steps * slots * 4 * kHidden, 1), side);
    Guarded recurrent(random_floats(directions * 4 * kHidden * kHidden, 3, -0.3f, 0.3f), side);
    Guarded hidden(random_floats(slots * kHidden, 6), side), cell(random_floats(slots * kHidden, 7), side);
    const std::vector<float> nothing(slots * kHidden);
    Guarded last_hidden(nothing, side), last_cell(nothing, side),
        sequence(std::vector<float>(steps * slots * kHidden), side);
    LstmArgs g;
    g.steps = steps, g.batch = batch, g.hidden = kHidden, g.directions = directions;
    g.backward = backward, g.gate_input = gate_input.data(), g.recurrent_weight = recurrent.data();
    if (given) {
        g.hidden_state = hidden.data(), g.cell_state = cell.data();
    }
    if (is_ifgo) g.output = 3, g.forget = 1, g.candidate = 2;
    g.last_hidden = last_hidden.data(), g.last_cell = last_cell.data(), g.sequence = sequence.data();
    const std::unique_ptr<float, decltype(&std::free)> packed(
        static_cast<float*>(
            std::aligned_alloc(kPackedAlignment, packed_lstm_recurrent_bytes(directions, kHidden))),
        &std::free);
    pack_lstm_recurrent(recurrent.data(), directions, kHidden, packed.get());
    if (is_packed) g.packed_recurrent = packed.get();
    if (rounds) {
        pack_lstm_bf16(recurrent.data(), directions, kHidden, reinterpret_cast<std::uint16_t*>(packed.get()));
        g.packed_recurrent = packed.get(), g.round_to_bf16 = true;
    }
    const double most = rounds ? 0.02 : 1e-5;
    for (int ith = 0; ith < nth; ++ith) lstm_f32(g, ith, nth);

    for (size_t slot = 0; slot < slots; ++slot) {
        const size_t direction = slot / batch;
        LstmByHand row{g, std::vector<double>(kHidden), std::vector<double>(kHidden)};
        for (size_t j = 0; given && j < kHidden; ++j)
            row.hidden[j] = hidden.data()[slot * kHidden + j], row.cell[j] = cell.data()[slot * kHidden + j];
        for (size_t i = 0; i < steps; ++i) {
            const size_t t = direction == 1 || backward ? steps - 1 - i : i;
            row.step(direction, t, slot % batch);
            for (size_t j = 0; j < kHidden; ++j)
                ASSERT_NEAR(sequence.data()[(t * slots + slot) * kHidden + j], row.hidden[j], most);
        }
        for (size_t j = 0; j < kHidden; ++j) {
            ASSERT_NEAR(last_hidden.data()[slot * kHidden + j], row.hidden[j], most);
            ASSERT_NEAR(last_cell.data()[slot * kHidden + j], row.cell[j], most);
        }
    }
}

TEST(LstmF32, MatchesDoublePrecisionInEachDirection) {
    for_each_target([] {
        unsigned turn = 0;
        for (const size_t hidden : {1, 16, 19, 70})
            for (const size_t batch : {1, 2, 5})
                for (const int nth : {1, 2, 3, 7}) {
                    expect_lstm(hidden, batch, 1, false, turn++, nth);
                    expect_lstm(hidden, batch, 1, true, turn++, nth);
                    expect_lstm(hidden, batch, 2, false, turn++, nth);
                }
    });
}

TEST(LstmBf16, IsNearDoublePrecisionInEachDirection) {
    if (!has_bf16_gemm()) GTEST_SKIP() << "this processor does not multiply bf16";
    unsigned turn = 0;
    for (const size_t hidden : {1, 16, 19, 70})
        for (const size_t batch : {1, 2, 5})
            for (const size_t directions : {1, 2}) {
                const int nth = static_cast<int>(turn % 3) + 1;
                expect_lstm(hidden, batch, directions, turn % 2 == 0, turn, nth, true);
                ++turn;
            }
}

TEST(LstmF32, KeepsNaNInTheRowThatMeetsItAndInfinityWhereGatesAreShut) {
    for_each_target([] {
        constexpr size_t kHidden = 20, kBatch = 3;
        std::vector<float> input(2 * kBatch * 4 * kHidden, 0.25f), cell(kBatch * kHidden, 0.5f),
            recurrent(4 * kHidden * kHidden, 0.01f), h(kBatch * kHidden), c(kBatch * kHidden);
        input[4 * kHidden + 2 * kHidden + 3] = NAN;                  // row 1, the gate that forgets
        cell[2 * kHidden] = std::numeric_limits<float>::infinity();  // row 2
        LstmArgs g;
        g.steps = 2, g.batch = kBatch, g.hidden = kHidden, g.gate_input = input.data();
        g.recurrent_weight = recurrent.data(), g.cell_state = cell.data();
        g.last_hidden = h.data(), g.last_cell = c.data();
        lstm_f32(g, 0, 1);
        for (size_t j = 0; j < kHidden; ++j) {
            EXPECT_TRUE(std::isfinite(h[j]) && std::isfinite(c[j])) << j;
            EXPECT_TRUE(std::isnan(h[kHidden + j]) && std::isnan(c[kHidden + j])) << j;  // by the product
            EXPECT_TRUE(std::isfinite(h[2 * kHidden + j])) << j;
            EXPECT_EQ(std::isinf(c[2 * kHidden + j]), j == 0) << j;
        }
    });
}

}  // namespace
}  // namespace headrace::kernels
