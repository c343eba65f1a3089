#include "backends/mlx/host/attention_loop.h"

#include <mlx/backend/cpu/encoder.h>
#include <mlx/primitives.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <stdexcept>

#include "backends/mlx/arrays/layout.h"
#include "backends/mlx/host/dot.h"
#include "base/half.h"
#include "kernels/tensor/convert_f32.h"

namespace headrace::mlx {
namespace {

/// An array's memory, of four axes in any order.
struct Memory {
    const char* data;
    Shape shape;
    Strides strides;
    bool is_half;

    explicit Memory(const array& x)
        : data(x.data<char>()), shape(x.shape()), strides(x.strides()), is_half(x.dtype() == mx::float16) {}

    std::int64_t element(int i, int j, int k) const {
        return i % shape[0] * strides[0] + j % shape[1] * strides[1] + k % shape[2] * strides[2];
    }
    /// A row as f32, in `scratch` unless it lies in memory like that.
    const float* row(int i, int j, int k, std::vector<float>& scratch) const {
        const std::int64_t at = element(i, j, k), stride = strides[3];
        const auto width = static_cast<std::size_t>(shape[3]);
        if (!is_half && stride == 1) return reinterpret_cast<const float*>(data) + at;
        scratch.resize(width);
        const auto* half_floats = reinterpret_cast<const Half*>(data) + at;
        if (is_half && stride == 1)
            kernels::convert_f32(half_floats, scratch.data(), width, 0, 1);
        else
            for (std::size_t n = 0; n < width; ++n)
                scratch[n] = is_half ? half_to_float(half_floats[n * stride].bits)
                                     : reinterpret_cast<const float*>(data)[at + n * stride];
        return scratch.data();
    }
};

/// The queries of one batch that share one key head: heads times positions.
class Group {
public:
    Group(const std::vector<Memory>& in, bool has_mask, const AttentionScores& scores, float* out)
        : q_(in[0]),
          k_(in[1]),
          v_(in[2]),
          mask_(has_mask ? &in[3] : nullptr),
          sinks_(in.size() > 3u + has_mask ? &in[3 + has_mask] : nullptr),
          scores_(scores),
          out_(out),
          heads_(q_.shape[1] / k_.shape[1]),
          queries_(q_.shape[2]),
          keys_(k_.shape[2]),
          weights_(static_cast<std::size_t>(heads_) * queries_ * keys_) {}

    void run(int batch, int key_head) {
        const int shared_batch = batch / (q_.shape[0] / k_.shape[0]);
        note_visible_keys(batch, key_head);
        for (int key = 0; key < keys_; ++key) {
            if (!visible_[key]) {
                each([&](int, int, float* weights) { weights[key] = 0; });  // the mask hides it
                continue;
            }
            const float* row = k_.row(shared_batch, key_head, key, scratch_);
            each([&](int h, int n, float* weights) {
                const float* query = q_.row(batch, key_head * heads_ + h, n, query_scratch_);
                weights[key] = dot(query, row, k_.shape[3]);
            });
        }
        each([&](int h, int n, float* weights) { to_weights(batch, key_head * heads_ + h, n, weights); });
        const int width = v_.shape[3];
        each(
            [&](int h, int n, float*) { std::fill_n(result(batch, key_head * heads_ + h, n), width, 0.0f); });
        for (int key = 0; key < keys_; ++key) {
            if (!visible_[key]) continue;
            const float* row = v_.row(shared_batch, key_head, key, scratch_);
            each([&](int h, int n, float* weights) {
                const float weight = weights[key];
                if (weight == 0) return;
                float* sum = result(batch, key_head * heads_ + h, n);
                for (int i = 0; i < width; ++i) sum[i] += weight * row[i];
            });
        }
    }

private:
    template <class Body>
    void each(Body&& body) {
        for (int h = 0; h < heads_; ++h)
            for (int n = 0; n < queries_; ++n)
                body(h, n, weights_.data() + (static_cast<std::size_t>(h) * queries_ + n) * keys_);
    }

    /// Most places of a cache are empty at first, and a mask hides them from every query.
    void note_visible_keys(int batch, int key_head) {
        visible_.assign(keys_, !mask_);
        if (!mask_) return;
        for (int h = 0; h < (mask_->shape[1] == 1 ? 1 : heads_); ++h)
            for (int n = 0; n < queries_; ++n) {
                const float* mask = mask_->row(batch, key_head * heads_ + h, n, mask_scratch_);
                for (int key = 0; key < keys_; ++key) visible_[key] |= mask[key] != -INFINITY;
            }
    }

    float* result(int batch, int head, int query) const {
        return out_ +
               ((static_cast<std::size_t>(batch) * queries_ + query) * q_.shape[1] + head) * v_.shape[3];
    }

    /// Turns products, in place, into the weights of a softmax.
    void to_weights(int batch, int head, int query, float* weights) {
        const float* mask = mask_ ? mask_->row(batch, head, query, mask_scratch_) : nullptr;
        const float sink = sinks_ ? reinterpret_cast<const float*>(sinks_->data)[head] : -INFINITY;
        float largest = sink;
        for (int key = 0; key < keys_; ++key) {
            float score = weights[key] * scores_.scale;
            if (scores_.cap != 0) score = scores_.cap * std::tanh(score / scores_.cap);
            weights[key] = mask ? score + mask[key] : score;
            largest = std::max(largest, weights[key]);
        }
        float sum = sinks_ ? std::exp(sink - largest) : 0.0f;
        for (int key = 0; key < keys_; ++key) {
            weights[key] = weights[key] == -INFINITY ? 0.0f : std::exp(weights[key] - largest);
            sum += weights[key];
        }
        for (int key = 0; key < keys_ && sum > 0; ++key) weights[key] /= sum;
    }

    const Memory &q_, &k_, &v_;
    const Memory *mask_, *sinks_;
    AttentionScores scores_;
    float* out_;
    int heads_, queries_, keys_;
    std::vector<float> weights_, scratch_, query_scratch_, mask_scratch_;
    std::vector<char> visible_;  ///< keys, to any query
};

class Attention : public mx::Primitive {
public:
    Attention(mx::Stream stream, bool has_mask, const AttentionScores& scores)
        : Primitive(stream), has_mask_(has_mask), scores_(scores) {}

    void eval_cpu(const std::vector<array>& inputs, std::vector<array>& outputs) override {
        outputs[0].set_data(mx::allocator::malloc(outputs[0].nbytes()));
        std::vector<Memory> memory(inputs.begin(), inputs.end());
        mx::cpu::get_command_encoder(stream()).dispatch([memory = std::move(memory), has_mask = has_mask_,
                                                         scores = scores_, out = outputs[0].data<float>()] {
            Group group(memory, has_mask, scores, out);
            for (int batch = 0; batch < memory[0].shape[0]; ++batch)
                for (int head = 0; head < memory[1].shape[1]; ++head) group.run(batch, head);
        });
    }
    void eval_gpu(const std::vector<array>&, std::vector<array>&) override {
        throw std::runtime_error("attention's loop was put on a GPU stream; it belongs to the CPU's");
    }
    const char* name() const override { return "AttentionLoop"; }

private:
    bool has_mask_;
    AttentionScores scores_;
};

}  // namespace

array attention_loop(mx::Stream stream, const array& q, const array& k, const array& v,
                     const std::optional<array>& mask, const std::optional<array>& sinks,
                     const AttentionScores& scores) {
    std::vector<array> inputs{q, k, v};
    if (mask) inputs.push_back(*mask);
    if (sinks) inputs.push_back(in_row_order(*sinks));
    return array({q.shape(0), q.shape(2), q.shape(1), v.shape(3)}, mx::float32,
                 std::make_shared<Attention>(stream, mask.has_value(), scores), std::move(inputs));
}

}  // namespace headrace::mlx
