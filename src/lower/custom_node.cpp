#include "lower/custom_node.h"

#include <array>

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
    try {
        if (node->stop_ && node->stop_->may_stop())
            node->execute_in_pieces(dst, {ith, nth});
        else
            node->execute(dst, {ith, nth});
    } catch (const RunStopped&) {  // the run says so itself
    } catch (...) {  // an exception may not cross ggml's C frames; the session reports it after the run
        if (!node->failed_.exchange(true)) node->thrown_ = std::current_exception();
    }
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
