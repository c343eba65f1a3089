#pragma once
#include <algorithm>
#include <array>
#include <vector>

#include "kernels/tensor/reduce_f32.h"
#include "ops/arithmetic.h"
#include "ops/strided.h"

/// How reductions walk over their operand.
namespace headrace::ops {

/// The input's dimensions as alternating kept and reduced ones: neighbours of a kind merged, extents of 1
/// dropped.
struct Groups {
    struct Group {
        std::int64_t size, stride;
        bool reduced;
    };
    std::vector<Group> groups;

    Groups(Sizes shape, const std::vector<int>& axes) {
        const auto strides = dense_strides(shape);
        for (int d = 0; d < static_cast<int>(shape.size()); ++d) {
            if (shape[d] == 1) continue;
            const bool reduced = std::find(axes.begin(), axes.end(), d) != axes.end();
            if (!groups.empty() && groups.back().reduced == reduced)
                groups.back() = {groups.back().size * shape[d], strides[d], reduced};
            else
                groups.push_back({shape[d], strides[d], reduced});
        }
    }
    std::int64_t count(bool reduced) const {
        std::int64_t n = 1;
        for (const Group& g : groups)
            if (g.reduced == reduced) n *= g.size;
        return n;
    }
    /// Where the index-th (row-major) combination of kept or of reduced dimensions begins in the input.
    std::int64_t offset(std::int64_t index, bool reduced) const {
        std::int64_t offset = 0;
        for (auto g = groups.rbegin(); g != groups.rend(); ++g) {
            if (g->reduced != reduced) continue;
            offset += index % g->size * g->stride;
            index /= g->size;
        }
        return offset;
    }
};

/// Op has start<A>() -> state, take(state, A) and result(state, count); A accumulates elements of type T.
template <class Op, class T>
struct OneByOne {
    using A = accumulator_t<T>;
    using State = decltype(Op::template start<A>());
    static State start() { return Op::template start<A>(); }
    static A load(T v) { return static_cast<A>(static_cast<compute_t<T>>(v)); }
    static void take_run(State& state, const T* run, std::int64_t n) {
        for (std::int64_t i = 0; i < n; ++i) Op::take(state, load(run[i]));
    }
    static void take_rows(State* states, const T* row, std::int64_t stride, std::int64_t rows,
                          std::int64_t n) {
        for (std::int64_t r = 0; r < rows; ++r, row += stride)
            for (std::int64_t i = 0; i < n; ++i) Op::take(states[i], load(row[i]));
    }
};

/// Taker says how runs of elements are accumulated.
template <class Op, class Taker, class T>
void reduce(const T* x, T* y, Groups split, Share share) {
    using State = typename Taker::State;
    const std::int64_t count = split.count(true);
    const auto finish = [&](const State& state) { return convert<T>(Op::result(state, count)); };
    auto& groups = split.groups;

    if (groups.empty() || groups.back().reduced) {  // each output element from runs of neighbours
        const std::int64_t run = groups.empty() ? 1 : groups.back().size;
        if (!groups.empty()) groups.pop_back();
        const std::int64_t rows = split.count(true);
        const auto part = share.of(split.count(false), 8);
        for (std::int64_t o = part.begin; o < part.end; ++o) {
            State state = Taker::start();
            for (std::int64_t r = 0; r < rows; ++r)
                Taker::take_run(state, x + split.offset(o, false) + split.offset(r, true), run);
            y[o] = finish(state);
        }
        return;
    }

    // Neighbouring outputs at a time, so that the input is read in runs that the hardware prefetches.
    constexpr std::int64_t kWidest = 1024, kNarrowest = 64;
    const std::int64_t inner = groups.back().size;
    groups.pop_back();
    const Groups::Group last = groups.empty() ? Groups::Group{1, 0, true} : groups.back();
    if (!groups.empty()) groups.pop_back();
    const std::int64_t outer = split.count(false), rows = split.count(true);
    const std::int64_t each = outer >= share.nth ? inner : (inner + share.nth - 1) / share.nth;
    const std::int64_t tile = std::clamp(each, kNarrowest, kWidest), tiles = (inner + tile - 1) / tile;
    const auto part = share.of(outer * tiles);
    for (std::int64_t t = part.begin; t < part.end; ++t) {
        const std::int64_t begin = t % tiles * tile, width = std::min(tile, inner - begin);
        std::array<State, kWidest> states;
        std::fill_n(states.begin(), width, Taker::start());
        const T* base = x + split.offset(t / tiles, false) + begin;
        for (std::int64_t r = 0; r < rows; ++r)
            Taker::take_rows(states.data(), base + split.offset(r, true), last.stride, last.size, width);
        T* out = y + t / tiles * inner + begin;
        for (std::int64_t i = 0; i < width; ++i) out[i] = finish(states[i]);
    }
}

/// Takers of f32 whose state is one of the vector reductions.
template <kernels::Reduction kKind>
struct ByVectors {
    using State = double;
    static State start() { return headrace::kernels::first_total(kKind); }
    static void take_run(State& state, const float* run, std::int64_t n) {
        constexpr std::int64_t kShort = 16;  // not worth a call
        if (n >= kShort) {
            const double part = headrace::kernels::reduce_run_f32(kKind, run, static_cast<std::size_t>(n));
            state = headrace::kernels::combined(kKind, state, part);
        } else {
            for (std::int64_t i = 0; i < n; ++i)
                state = headrace::kernels::combined(kKind, state, headrace::kernels::term(kKind, run[i]));
        }
    }
    static void take_rows(State* states, const float* row, std::int64_t stride, std::int64_t rows,
                          std::int64_t n) {
        headrace::kernels::reduce_rows_f32(kKind, row, stride, static_cast<std::size_t>(rows),
                                           static_cast<std::size_t>(n), states);
    }
};

}  // namespace headrace::ops
