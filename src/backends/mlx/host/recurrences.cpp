#include "backends/mlx/host/recurrences.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "backends/mlx/host/dot.h"

namespace headrace::mlx {
namespace {

/// What a recurrence goes over. A head's state is a matrix, and each token gives one value for each of its
/// rows.
struct Extents {
    int sequences, tokens, heads, rows, columns;
    int states = 1;  ///< that are kept of a sequence: after the last token, after the one before it …

    std::size_t state_size() const { return static_cast<std::size_t>(rows) * columns; }
    /// Elements of the states of all heads and sequences.
    std::size_t states_size() const { return state_size() * heads * sequences; }
    std::size_t results() const { return static_cast<std::size_t>(sequences) * tokens * heads * rows; }
    std::size_t token_of(int sequence, int token) const {
        return static_cast<std::size_t>(sequence) * tokens + token;
    }
};

/// Calls step(sequence, token, head, state, result) in the tokens' order.
template <class Step>
void each_token(const Extents& e, const float* before, float* out, Step&& step) {
    float* const last = out + e.results();
    std::copy_n(before, e.states_size(), last);
    std::fill_n(last + e.states_size(), e.states_size() * (e.states - 1), 0.0f);
    for (int sequence = 0; sequence < e.sequences; ++sequence)
        for (int head = 0; head < e.heads; ++head) {
            float* const state =
                last + (static_cast<std::size_t>(sequence) * e.heads + head) * e.state_size();
            for (int token = 0; token < e.tokens; ++token) {
                step(sequence, token, head, state,
                     out + (e.token_of(sequence, token) * e.heads + head) * e.rows);
                const int age = e.tokens - 1 - token;
                if (age > 0 && age < e.states)
                    std::copy_n(state, e.state_size(), state + age * e.states_size());
            }
        }
}

/// The extents of an op whose operands have all sequences' tokens one after the other, and square states.
Extents extents_of(const HostValues& tokens, const HostValues& state) {
    const int sequences = state.shape[2], size = tokens.shape[3];
    return {sequences, tokens.shape[1] / sequences, tokens.shape[2], size, size};
}

/// The row of a head within an operand of such an op.
const float* row(const HostValues& values, const Extents& e, int sequence, int token, int head) {
    return values.data + (e.token_of(sequence, token) * e.heads + head) * e.rows;
}

float softplus(float x) { return x > 20.0f ? x : std::log1p(std::exp(x)); }

}  // namespace

void rwkv_wkv6(const std::vector<HostValues>& in, double, float* out) {
    const Extents e = extents_of(in[0], in[5]);
    each_token(e, in[5].data, out, [&](int sequence, int token, int head, float* state, float* result) {
        const auto at = [&](int operand) { return row(in[operand], e, sequence, token, head); };
        const float *k = at(0), *v = at(1), *r = at(2), *w = at(4), *u = in[3].data + head * e.rows;
        std::fill_n(result, e.rows, 0.0f);
        for (int i = 0; i < e.rows; ++i, state += e.columns)
            for (int j = 0; j < e.columns; ++j) {
                const float product = k[i] * v[j];
                result[j] += (product * u[i] + state[j]) * r[i];
                state[j] = state[j] * w[i] + product;
            }
    });
}

void gated_linear_attention(const std::vector<HostValues>& in, double, float* out) {
    const Extents e = extents_of(in[0], in[4]);
    each_token(e, in[4].data, out, [&](int sequence, int token, int head, float* state, float* result) {
        const auto at = [&](int operand) { return row(in[operand], e, sequence, token, head); };
        const float *k = at(0), *v = at(1), *q = at(2), *g = at(3);
        std::fill_n(result, e.rows, 0.0f);
        for (int i = 0; i < e.rows; ++i, state += e.columns)
            for (int j = 0; j < e.columns; ++j) {
                state[j] = state[j] * g[i] + k[i] * v[j];
                result[j] += state[j] * q[i];
            }
    });
}

void rwkv_wkv7(const std::vector<HostValues>& in, double, float* out) {
    const Extents e = extents_of(in[2], in[6]);
    each_token(e, in[6].data, out, [&](int sequence, int token, int head, float* state, float* result) {
        const auto at = [&](int operand) { return row(in[operand], e, sequence, token, head); };
        const float *r = at(0), *w = at(1), *k = at(2), *v = at(3), *a = at(4), *b = at(5);
        for (int i = 0; i < e.rows; ++i, state += e.columns) {
            const float removed = dot(a, state, e.columns);
            for (int j = 0; j < e.columns; ++j) state[j] = state[j] * w[j] + v[i] * k[j] + removed * b[j];
            result[i] = dot(state, r, e.columns);
        }
    });
}

void gated_delta_net(const std::vector<HostValues>& in, double states, float* out) {
    const HostValues &q = in[0], &k = in[1], &v = in[2], &g = in[3], &beta = in[4];
    const int size = v.shape[3];
    const Extents e{v.shape[0], v.shape[1], v.shape[2], size, size, static_cast<int>(states)};
    const float scale = 1.0f / std::sqrt(static_cast<float>(size));
    // Queries and keys may have fewer heads, which repeat, and fewer sequences, each of which several share.
    const auto shared = [&](const HostValues& x, int sequence, int token, int head) {
        const int of = sequence / (e.sequences / x.shape[0]);
        return x.data + (e.token_of(of, token) * x.shape[2] + head % x.shape[2]) * size;
    };
    std::vector<float> kept(size);
    each_token(e, in[5].data, out, [&](int sequence, int token, int head, float* state, float* result) {
        const float *query = shared(q, sequence, token, head), *key = shared(k, sequence, token, head);
        const std::size_t at = e.token_of(sequence, token) * e.heads + head;
        const float *value = v.data + at * size, *gate = g.data + at * g.shape[3];
        for (int i = 0; i < size; ++i) kept[i] = i < g.shape[3] ? std::exp(gate[i]) : kept[0];
        for (int j = 0; j < size; ++j, state += size) {
            for (int i = 0; i < size; ++i) state[i] *= kept[i];
            const float delta = (value[j] - dot(state, key, size)) * beta.data[at];
            for (int i = 0; i < size; ++i) state[i] += key[i] * delta;
            result[j] = dot(state, query, size) * scale;
        }
    });
}

void ssm_scan(const std::vector<HostValues>& in, double states, float* out) {
    const HostValues &s = in[0], &x = in[1], &dt = in[2], &decay = in[3], &b = in[4], &c = in[5];
    const Extents e{x.shape[0], x.shape[1], x.shape[2], x.shape[3], s.shape[3], static_cast<int>(states)};
    const int groups = b.shape[2], size = e.columns;
    each_token(e, s.data, out, [&](int sequence, int token, int head, float* state, float* result) {
        const std::size_t at = e.token_of(sequence, token);
        const float step = softplus(dt.data[at * e.heads + head]);
        const float* a = decay.data + head * decay.shape[3];
        const float* value = x.data + (at * e.heads + head) * e.rows;
        const std::size_t group = (at * groups + head / (e.heads / groups)) * size;
        const float *enters = b.data + group, *leaves = c.data + group;
        for (int i = 0; i < e.rows; ++i, state += size) {
            const float amount = value[i] * step;
            if (decay.shape[3] == 1) {
                const float kept = std::exp(step * a[0]);
                for (int j = 0; j < size; ++j) state[j] = state[j] * kept + enters[j] * amount;
            } else {
                for (int j = 0; j < size; ++j)
                    state[j] = state[j] * std::exp(step * a[j]) + enters[j] * amount;
            }
            result[i] = dot(state, leaves, size);
        }
    });
}

void solve_triangular(const std::vector<HostValues>& in, double, float* out) {
    const int systems = in[0].shape[0] * in[0].shape[1], n = in[0].shape[3], columns = in[1].shape[3];
    const std::size_t size = static_cast<std::size_t>(n) * columns;
    for (int system = 0; system < systems; ++system) {
        const float* a = in[0].data + static_cast<std::size_t>(system) * n * n;
        float* x = out + system * size;
        std::copy_n(in[1].data + system * size, size, x);
        for (int i = 0; i < n; ++i, a += n) {
            float* solved = x + static_cast<std::size_t>(i) * columns;
            for (int k = 0; k < i; ++k)
                for (int j = 0; j < columns; ++j)
                    solved[j] -= a[k] * x[static_cast<std::size_t>(k) * columns + j];
            for (int j = 0; j < columns; ++j) solved[j] /= a[i];
        }
    }
}

}  // namespace headrace::mlx
