#include "run/free_pieces.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "ggml-backend.h"
#include "ggml.h"

namespace headrace {
namespace {

/// Between two free pieces lies something that is alive, and some room is left for what ggml adds.
constexpr std::size_t kMostAlive = 240;

struct Life {
    ggml_tensor* tensor;  ///< null: the scheduler's copy
    int first, last;      ///< nodes; what is never freed lives to the end
};

class Lives {
public:
    Lives(const LoweredGraph& lowered, ggml_backend_sched* sched)
        : nodes_(ggml_graph_n_nodes(lowered.graph)), sched_(sched) {
        for (ggml_tensor* input : lowered.inputs) add(input, 0);
        for (int i = 0; i < nodes_; ++i) {
            ggml_tensor* node = ggml_graph_node(lowered.graph, i);
            add(node, i);
            for (ggml_tensor* source : node->src)
                if (source) read(source, node, i);
        }
        for (int i = 0; i < nodes_; ++i) keep_unread(ggml_graph_node(lowered.graph, i));
    }

    std::size_t copies() const { return copies_.size(); }
    std::size_t most_at_once() const {
        std::vector<std::ptrdiff_t> change(static_cast<std::size_t>(nodes_) + 2);
        const auto count = [&](const Life& life) {
            ++change[static_cast<std::size_t>(life.first)];
            --change[static_cast<std::size_t>(life.last) + 1];
        };
        for (const Life& life : owners_) count(life);
        for (const auto& [copied, life] : copies_) count(life);
        std::ptrdiff_t alive = 0, most = 0;
        for (const std::ptrdiff_t c : change) most = std::max(most, alive += c);
        return static_cast<std::size_t>(most);
    }
    /// What is freed before the end, the largest first.
    std::vector<ggml_tensor*> freed() const {
        std::vector<ggml_tensor*> list;
        for (const Life& life : owners_)
            if (life.last < nodes_) list.push_back(life.tensor);
        std::stable_sort(list.begin(), list.end(), [](const ggml_tensor* a, const ggml_tensor* b) {
            return ggml_nbytes(a) > ggml_nbytes(b);
        });
        return list;
    }

private:
    static const ggml_tensor* root_of(const ggml_tensor* t) { return t->view_src ? t->view_src : t; }

    void add(ggml_tensor* t, int node) {
        if (t->view_src || t->data || index_.contains(t)) return;
        index_[t] = owners_.size();
        owners_.push_back({t, node, t->flags & GGML_TENSOR_FLAG_OUTPUT ? nodes_ : node});
    }
    Life* find(const ggml_tensor* t) {
        const auto it = index_.find(root_of(t));
        return it == index_.end() ? nullptr : &owners_[it->second];
    }
    void read(ggml_tensor* source, ggml_tensor* reader, int node) {
        ++readers_[source];
        Life* life = find(source);
        if (life) life->last = std::max(life->last, node);
        if (!sched_) return;
        ggml_backend_t there = ggml_backend_sched_get_tensor_backend(sched_, reader);
        if (there == ggml_backend_sched_get_tensor_backend(sched_, source)) return;
        const int made = life ? life->first : 0;
        copies_.try_emplace({source, there}, Life{nullptr, made, node}).first->second.last = node;
    }
    /// What nobody reads is not given back, and neither is what it is a view of.
    void keep_unread(const ggml_tensor* t) {
        if (readers_.contains(t)) return;
        if (Life* life = find(t)) life->last = nodes_;
    }

    int nodes_;
    ggml_backend_sched* sched_;
    std::vector<Life> owners_;
    std::map<const ggml_tensor*, std::size_t> index_;
    std::map<const ggml_tensor*, int> readers_;
    std::map<std::pair<const ggml_tensor*, ggml_backend_t>, Life> copies_;
};

}  // namespace

Status limit_free_pieces(const LoweredGraph& lowered, ggml_backend_sched* sched) {
    if (static_cast<std::size_t>(ggml_graph_n_nodes(lowered.graph)) + lowered.inputs.size() <= kMostAlive / 2)
        return success();
    const Lives lives(lowered, sched);
    if (lives.most_at_once() <= kMostAlive) return success();
    if (lives.copies() >= kMostAlive)
        return unsupported(
            "the graph sends {} values from one device to another, and {} at most are possible where more "
            "are alive at once; the device 'cpu' computes it",
            lives.copies(), kMostAlive - 1);
    const std::vector<ggml_tensor*> freed = lives.freed();
    for (std::size_t i = kMostAlive - lives.copies(); i < freed.size(); ++i) ggml_set_output(freed[i]);
    return success();
}

}  // namespace headrace
