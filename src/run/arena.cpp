#include "run/arena.h"

#include <algorithm>
#include <iterator>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "ggml-backend.h"
#include "ggml.h"

namespace headrace {
namespace {

/// Between two free pieces lies something that is alive; some room is left for what ggml adds.
constexpr std::size_t kMostAlive = 240;

struct Life {
    ggml_tensor* tensor;
    int first, last;  ///< nodes; what is never given back lives to the end
};

/// The scheduler's, for the nodes of one backend; its memory is taken before the first of a run of them.
struct Copy {
    Life life;
    ggml_backend_t backend;
    int begin;  ///< of that run
};

ggml_backend_buffer_type_t memory_of(ggml_backend_t backend) {
    if (backend) return ggml_backend_get_default_buffer_type(backend);
    return ggml_backend_dev_buffer_type(ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU));
}

std::size_t bytes_of(ggml_backend_buffer_type_t memory, const ggml_tensor* tensor) {
    return GGML_PAD(ggml_backend_buft_get_alloc_size(memory, tensor),
                    ggml_backend_buft_get_alignment(memory));
}

/// How long each activation and each copy that the scheduler makes is needed.
class Lives {
public:
    Lives(const LoweredGraph& lowered, ggml_backend_sched* sched)
        : nodes_(ggml_graph_n_nodes(lowered.graph)), sched_(sched) {
        for (ggml_tensor* input : lowered.inputs) add(input, 0);
        for (int i = 0; i < nodes_; ++i) {
            ggml_tensor* node = ggml_graph_node(lowered.graph, i);
            add(node, i);
            if (!is_view(node)) begin_run(node, i);
            for (ggml_tensor* source : node->src)
                if (source) read(source, node, i);
        }
        for (int i = 0; i < nodes_; ++i) keep_unread(ggml_graph_node(lowered.graph, i));
    }

    int nodes() const { return nodes_; }
    const std::vector<Life>& activations() const { return activations_; }
    const std::vector<Copy>& copies() const { return copies_; }
    ggml_backend_t backend_of(ggml_tensor* t) const {
        return sched_ ? ggml_backend_sched_get_tensor_backend(sched_, t) : nullptr;
    }
    std::size_t most_alive() const {
        std::vector<std::ptrdiff_t> change(static_cast<std::size_t>(nodes_) + 2);
        const auto count = [&](const Life& life) {
            ++change[static_cast<std::size_t>(life.first)];
            --change[static_cast<std::size_t>(life.last) + 1];
        };
        for (const Life& life : activations_) count(life);
        for (const Copy& copy : copies_) count(copy.life);
        std::ptrdiff_t alive = 0, most = 0;
        for (const std::ptrdiff_t c : change) most = std::max(most, alive += c);
        return static_cast<std::size_t>(most);
    }

private:
    void add(ggml_tensor* t, int node) {
        if (t->view_src || t->data || index_.contains(t)) return;
        index_[t] = activations_.size();
        activations_.push_back({t, node, t->flags & GGML_TENSOR_FLAG_OUTPUT ? nodes_ : node});
    }
    Life* find(const ggml_tensor* t) {
        const auto it = index_.find(t->view_src ? t->view_src : t);
        return it == index_.end() ? nullptr : &activations_[it->second];
    }
    /// The scheduler cuts the graph where the backend changes, and where weights are elsewhere.
    void begin_run(ggml_tensor* node, int number) {
        ggml_backend_t backend = backend_of(node);
        bool is_new = number == 0 || backend != run_backend_;
        for (ggml_tensor* source : node->src)
            is_new |= source && run_copies_ && source->buffer && backend_of(source) != backend &&
                      ggml_backend_buffer_get_usage(source->buffer) == GGML_BACKEND_BUFFER_USAGE_WEIGHTS;
        if (!is_new) return;
        run_begin_ = number;
        run_backend_ = backend;
        run_copies_ = 0;
    }
    void read(ggml_tensor* source, ggml_tensor* reader, int node) {
        is_read_.insert(source);
        Life* life = find(source);
        if (life) life->last = std::max(life->last, node);
        ggml_backend_t there = backend_of(reader);
        if (there == backend_of(source)) return;
        const auto [it, is_new] = copy_index_.try_emplace({source, there}, copies_.size());
        if (is_new) {
            copies_.push_back({{source, life ? life->first : 0, node}, there, run_begin_});
            ++run_copies_;
        }
        copies_[it->second].life.last = node;
    }
    /// Memory of unread tensors is not given back, nor that of tensors they are views of.
    void keep_unread(const ggml_tensor* t) {
        if (is_read_.contains(t)) return;
        if (Life* life = find(t)) life->last = nodes_;
    }

    int nodes_;
    ggml_backend_sched* sched_;
    std::vector<Life> activations_;  // in the order of their first node
    std::vector<Copy> copies_;       // in the order in which they are first read
    std::unordered_map<const ggml_tensor*, std::size_t> index_;
    std::unordered_set<const ggml_tensor*> is_read_;
    std::map<std::pair<const ggml_tensor*, ggml_backend_t>, std::size_t> copy_index_;
    int run_begin_ = 0, run_copies_ = 0;
    ggml_backend_t run_backend_ = nullptr;
};

/// Free pieces at once while ggml gives memory to nothing but the copies.
std::size_t most_pieces(const std::vector<Copy>& copies, int nodes) {
    std::map<int, std::vector<const Copy*>> taken, given_back;
    for (const Copy& copy : copies) {
        taken[copy.begin].push_back(&copy);
        given_back[copy.life.last].push_back(&copy);
    }
    std::map<ggml_backend_t, FreeList> lists;
    std::map<const Copy*, std::uint64_t> offsets;
    const auto size = [](const Copy* copy) { return bytes_of(memory_of(copy->backend), copy->life.tensor); };
    std::size_t most = 0;
    for (int node = 0; node < nodes; ++node) {
        for (const Copy* copy : taken[node]) offsets[copy] = lists[copy->backend].take(size(copy));
        for (const Copy* copy : given_back[node]) {
            FreeList& list = lists[copy->backend];
            list.give_back(offsets[copy], size(copy));
            most = std::max(most, list.pieces());
        }
    }
    return most;
}

Result<Arena> place(ggml_backend_t backend, const std::vector<Life>& lives) {
    ggml_backend_buffer_type_t memory = memory_of(backend);
    const std::size_t alignment = ggml_backend_buft_get_alignment(memory);
    Arena arena{.backend = backend, .places = {}};
    arena.chunk = std::max(ggml_backend_buft_get_max_size(memory) / alignment, std::size_t{1}) * alignment;
    for (const Life& life : lives) arena.chunk = std::max(arena.chunk, bytes_of(memory, life.tensor));
    FreeList list(arena.chunk);
    struct End {
        int last;
        std::uint64_t offset;
        std::size_t bytes;
        bool operator<(const End& other) const { return last > other.last; }
    };
    std::vector<End> ends;  // a heap, the next first
    for (const Life& life : lives) {
        for (; !ends.empty() && ends.front().last < life.first; ends.pop_back()) {
            std::pop_heap(ends.begin(), ends.end());
            list.give_back(ends.back().offset, ends.back().bytes);
        }
        const std::size_t bytes = bytes_of(memory, life.tensor);
        const std::uint64_t offset = list.take(bytes);
        arena.places.push_back({life.tensor, static_cast<std::size_t>(offset)});
        ends.push_back({life.last, offset, bytes});
        std::push_heap(ends.begin(), ends.end());
    }
    if (list.end() > PTRDIFF_MAX)
        return failure(Code::out_of_memory, "the activations take {} bytes, and {} can be addressed",
                       list.end(), PTRDIFF_MAX);
    arena.bytes = static_cast<std::size_t>(list.end());
    return arena;
}

/// If nothing were given back.
std::uint64_t most_bytes(const LoweredGraph& lowered) {
    std::uint64_t total = 0;
    const auto add = [&total](const ggml_tensor* t) {
        if (!t->view_src && !t->data) total += bytes_of(memory_of(nullptr), t);
    };
    for (const ggml_tensor* input : lowered.inputs) add(input);
    for (int i = 0; i < ggml_graph_n_nodes(lowered.graph); ++i) add(ggml_graph_node(lowered.graph, i));
    return total;
}

}  // namespace

bool is_view(const ggml_tensor* t) {
    return t->op == GGML_OP_RESHAPE || t->op == GGML_OP_VIEW || t->op == GGML_OP_PERMUTE ||
           t->op == GGML_OP_TRANSPOSE;
}

std::uint64_t FreeList::take(std::uint64_t bytes) {
    auto best = pieces_.end();
    for (auto it = pieces_.begin(); it != pieces_.end(); ++it)
        if (it->second >= bytes && (best == pieces_.end() || it->second < best->second)) best = it;
    if (best == pieces_.end()) {
        const std::uint64_t left = chunk_ - end_ % chunk_;
        if (left < bytes) {
            end_ += left;
            give_back(end_ - left, left);
        }
        end_ += bytes;
        return end_ - bytes;
    }
    const auto [offset, size] = *best;
    pieces_.erase(best);
    if (size > bytes) pieces_[offset + bytes] = size - bytes;
    return offset;
}

void FreeList::give_back(std::uint64_t offset, std::uint64_t bytes) {
    if (bytes == 0) return;
    auto next = pieces_.lower_bound(offset);
    if (next != pieces_.end() && next->first == offset + bytes && next->first % chunk_ != 0) {
        bytes += next->second;
        next = pieces_.erase(next);
    }
    if (next != pieces_.begin() && offset % chunk_ != 0)
        if (const auto before = std::prev(next); before->first + before->second == offset) {
            before->second += bytes;
            return;
        }
    pieces_[offset] = bytes;
}

Result<std::vector<Arena>> arenas_beside_ggml(const LoweredGraph& lowered, ggml_backend_sched* sched) {
    const std::size_t tensors =
        lowered.inputs.size() + static_cast<std::size_t>(ggml_graph_n_nodes(lowered.graph));
    const bool is_small = most_bytes(lowered) <= SIZE_MAX;
    if (is_small && (sched ? 2 : 1) * tensors <= kMostAlive)
        return std::vector<Arena>{};  // each could be copied
    const Lives lives(lowered, sched);
    if (is_small && lives.most_alive() <= kMostAlive) return std::vector<Arena>{};
    if (const std::size_t pieces = most_pieces(lives.copies(), lives.nodes()); pieces > kMostAlive)
        return unsupported(
            "{} values go from one device to another in an order that leaves {} free pieces of memory, and "
            "ggml takes no more than {}; the device 'cpu' computes the graph",
            lives.copies().size(), pieces, kMostAlive);
    std::map<ggml_backend_t, std::vector<Life>> by_backend;
    for (const Life& life : lives.activations()) by_backend[lives.backend_of(life.tensor)].push_back(life);
    std::vector<Arena> arenas;
    for (const auto& [backend, some] : by_backend) {
        HR_ASSIGN(Arena arena, place(backend, some));
        arenas.push_back(std::move(arena));
    }
    return arenas;
}

}  // namespace headrace
