#include <algorithm>
#include <cstring>
#include <span>

#include "ggml.h"
#include "lower/node_lowering.h"
#include "plan/placement.h"

namespace headrace {
namespace {

using Tensors = std::span<ggml_tensor* const>;

bool has_elements(const ggml_tensor* tensor) { return ggml_nelements(tensor) > 0; }

void take_extents(ggml_tensor* to, const ggml_tensor* from) {
    std::ranges::copy(from->ne, to->ne);
    std::ranges::copy(from->nb, to->nb);
    std::memcpy(to->op_params, from->op_params, sizeof(to->op_params));
    to->view_offs = from->view_offs;
    if (to->view_src && to->view_src->data) to->data = static_cast<char*>(to->view_src->data) + to->view_offs;
}

/// The node's tensors as they are, and as they would be made now.
class Pair {
public:
    Pair(Tensors old, Tensors made) : old_(old), made_(made) {}

    /// The same operations on the same tensors, with other extents at most.
    bool are_alike() const {
        if (old_.size() != made_.size()) return false;
        for (std::size_t i = 0; i < old_.size(); ++i) {
            const ggml_tensor &a = *old_[i], &b = *made_[i];
            if (a.op != b.op || a.type != b.type || !stands_for(a.view_src, b.view_src)) return false;
            for (int s = 0; s < GGML_MAX_SRC; ++s)
                if (!stands_for(a.src[s], b.src[s])) return false;
            if (!has_elements(&a) || !has_elements(&b)) return false;
        }
        return true;
    }
    bool stands_for(const ggml_tensor* old, const ggml_tensor* made) const {
        const auto at = std::ranges::find(made_, made);
        return at == made_.end() ? old == made : old == old_[static_cast<std::size_t>(at - made_.begin())];
    }
    void change() const {
        for (std::size_t i = 0; i < old_.size(); ++i) take_extents(old_[i], made_[i]);
    }

private:
    Tensors old_, made_;
};

class Relowering {
public:
    Relowering(LoweredGraph& lowered, const Plan& now) : lowered_(lowered), now_(now), nodes_(now, lowered) {}

    bool take_inputs() {
        for (std::size_t i = 0; i < lowered_.inputs.size(); ++i) {
            if (!clear_scratch(1)) return false;
            const ggml_tensor* made = emit_.leaf(now_.graph.value(now_.graph.inputs[i]).type);
            if (ggml_are_same_shape(lowered_.inputs[i], made)) continue;
            if (!has_elements(made) || !has_elements(lowered_.inputs[i])) return false;
            take_extents(lowered_.inputs[i], made);
        }
        return true;
    }

    /// Whether it reads a view that has moved within its tensor, as views of that did.
    bool reads_moved(std::size_t n) const {
        return !moved_.empty() && std::ranges::any_of(now_.graph.nodes[n].inputs, [&](ValueId id) {
            return id != kNoValue && std::ranges::find(moved_, id) != moved_.end();
        });
    }

    bool take_node(std::size_t n) {
        const Node& node = now_.graph.nodes[n];
        if (!clear_scratch(most_tensors(now_.graph, node))) return false;
        CustomNodes customs;
        const auto outputs = nodes_.lower(n, emit_, customs);
        std::vector<ggml_tensor*> made;
        for (ggml_tensor* t = ggml_get_first_tensor(emit_.context()); t;
             t = ggml_get_next_tensor(emit_.context(), t))
            made.push_back(t);
        const std::size_t begin = n ? lowered_.tensor_ends[n - 1] : 0,
                          first = n ? lowered_.custom_ends[n - 1] : 0;
        const Pair pair(Tensors(lowered_.node_tensors).subspan(begin, lowered_.tensor_ends[n] - begin), made);
        if (customs.size() != lowered_.custom_ends[n] - first || !pair.are_alike()) return false;
        for (std::size_t o = 0; o < outputs.size(); ++o) {
            const ggml_tensor* old = lowered_.values[node.outputs[o]];
            if (!pair.stands_for(old, outputs[o])) return false;
            if (old->view_offs != outputs[o]->view_offs) moved_.push_back(node.outputs[o]);
        }
        pair.change();
        std::ranges::move(customs, lowered_.custom_nodes.begin() + static_cast<std::ptrdiff_t>(first));
        return true;
    }

private:
    bool clear_scratch(std::size_t tensors) {
        GgmlContext& scratch = lowered_.scratch;
        const std::size_t bytes = tensors * ggml_tensor_overhead();
        if (scratch && ggml_get_mem_size(scratch.get()) >= bytes)
            ggml_reset(scratch.get());
        else
            scratch.reset(ggml_init({.mem_size = bytes, .mem_buffer = nullptr, .no_alloc = true}));
        emit_ = Emit(scratch.get());
        return scratch != nullptr;
    }

    LoweredGraph& lowered_;
    const Plan& now_;
    NodeLowering nodes_;
    Emit emit_{nullptr};
    std::vector<ValueId> moved_;
};

}  // namespace

bool relower(LoweredGraph& lowered, const Plan& now, const std::vector<bool>& changed_nodes) {
    Relowering relowering(lowered, now);
    if (!relowering.take_inputs()) return false;
    for (std::size_t i = 0; i < now.graph.nodes.size(); ++i)
        if ((changed_nodes[i] || relowering.reads_moved(i)) && !relowering.take_node(i)) return false;
    return true;
}

}  // namespace headrace
