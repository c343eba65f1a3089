#include "lower/custom_node.h"

#include <array>
#include <chrono>

#include "ggml.h"

namespace headrace {

void CustomNode::add_input(const TensorType& type, int source) {
    inputs_.push_back({.dtype = type.dtype, .format = type.format, .shape = type.sizes(), .source = source});
}

void CustomNode::add_packed(const TensorType& type, std::shared_ptr<const std::byte> packed) {
    inputs_.push_back(
        {.dtype = type.dtype, .format = type.format, .shape = type.sizes(), .packed = std::move(packed)});
}

void CustomNode::add_output(const TensorType& type, std::size_t offset) {
    outputs_.push_back({.dtype = type.dtype, .shape = type.sizes(), .offset = offset});
}

void CustomNode::compute(ggml_tensor* dst, int ith, int nth, void* self) noexcept {
    auto* node = static_cast<CustomNode*>(self);
    if (node->one_thread_) {
        if (ith > 0) return;
        nth = 1;
    }
    const Share share{ith, nth};
    const bool in_pieces = node->stop_ && node->stop_->may_stop();
    node->keep_failure([&] {
        if (in_pieces)
            node->execute_in_pieces(dst, share);
        else
            node->execute(dst, share);
    });
    if (in_pieces) node->ask_while_others_compute(share);
}

/// An exception may not cross ggml's C frames; the session reports it after the run.
template <class Work>
void CustomNode::keep_failure(const Work& work) noexcept {
    try {
        work();
    } catch (const RunStopped&) {  // the run says so itself
    } catch (...) {
        if (!failed_.exchange(true)) thrown_ = std::current_exception();
    }
}

/// The first thread alone asks the run's caller, so it goes on to when its own part has ended.
void CustomNode::ask_while_others_compute(Share share) noexcept {
    using Clock = std::chrono::steady_clock;
    constexpr auto kBetween = std::chrono::milliseconds(1);
    if (!share.first()) {
        ended_.fetch_add(1, std::memory_order_release);
        return;
    }
    for (auto next = Clock::now() + kBetween; ended_.load(std::memory_order_acquire) < share.nth - 1;) {
        if (Clock::now() < next) continue;
        keep_failure([&] { static_cast<void>(stop_->asked()); });
        next = Clock::now() + kBetween;
    }
    ended_.store(0, std::memory_order_relaxed);
}

/// As so many more threads would, one after the other: kernels split their work by shares alone.
void CustomNode::execute_in_pieces(ggml_tensor* dst, Share share) const {
    const PartOfRun part(*stop_, share.first());
    const int each = (pieces_ + share.nth - 1) / share.nth;
    for (int piece = 0; piece < each; ++piece) {
        if (each > 1) check_stop();
        execute(dst, {share.ith * each + piece, share.nth * each});
    }
}

void CustomNode::execute(ggml_tensor* dst, Share share) const {
    // Nearly every op fits the arrays on the stack; split and concat may have more.
    constexpr std::size_t kInline = 12;
    std::array<ConstView, kInline> in_array;
    std::array<MutView, kInline> out_array;
    std::vector<MutView> out_heap;
    static constexpr std::byte
        kEmpty{};  // a tensor without elements may have no memory, but it is not absent
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
        const Slot& slot = inputs_[i];
        const std::byte* data = nullptr;
        if (slot.packed) {
            data = slot.packed.get();
        } else if (slot.source >= 0) {
            data = static_cast<const std::byte*>(dst->src[slot.source]->data);
            if (!data) data = &kEmpty;
        }
        in_array[i] = {slot.dtype, slot.shape, data, slot.format};
    }
    if (outputs_.size() > kInline) out_heap.resize(outputs_.size());
    MutView* out = outputs_.size() > kInline ? out_heap.data() : out_array.data();
    for (std::size_t i = 0; i < outputs_.size(); ++i)
        out[i] = {outputs_[i].dtype, outputs_[i].shape,
                  static_cast<std::byte*>(dst->data) + outputs_[i].offset};
    run_({{in_array.data(), inputs_.size()}, {out, outputs_.size()}, share}, attrs_.get());
}

}  // namespace headrace
