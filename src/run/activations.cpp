#include "run/activations.h"

#include <algorithm>
#include <map>
#include <memory>
#include <unordered_map>

#include "ggml-alloc.h"
#include "ggml-backend.h"
#include "ggml.h"
#include "run/host_memory.h"

namespace headrace {
namespace {

struct GallocrFree {
    void operator()(ggml_gallocr* g) const { ggml_gallocr_free(g); }
};

/// Bytes for a tensor that grows from plan to plan, such as what belongs to a cache.
std::size_t with_room_to_grow(std::size_t bytes) { return bytes + std::max(bytes / 8, std::size_t{4096}); }

/// While it lives, a graph's activations have larger strides, by which ggml measures them. Those of one
/// layout stay so.
class RoomToGrow {
public:
    RoomToGrow(ggml_cgraph* graph, bool is_wanted) {
        for (int i = 0; is_wanted && i < ggml_graph_n_nodes(graph); ++i) {
            ggml_tensor* t = ggml_graph_node(graph, i);
            const int d = ggml_n_dims(t) - 1;
            if (t->view_src || t->data || t->ne[d] < 2) continue;
            widened_.push_back({t, d, t->nb[d]});
            const std::size_t more = with_room_to_grow(ggml_nbytes(t)) - ggml_nbytes(t),
                              steps = static_cast<std::size_t>(t->ne[d] - 1);
            t->nb[d] += (more + steps - 1) / steps;
        }
    }
    RoomToGrow(const RoomToGrow&) = delete;
    RoomToGrow& operator=(const RoomToGrow&) = delete;
    ~RoomToGrow() {
        for (const Widened& w : widened_) w.tensor->nb[w.dimension] = w.stride;
    }

private:
    struct Widened {
        ggml_tensor* tensor;
        int dimension;
        std::size_t stride;
    };
    std::vector<Widened> widened_;
};

bool have_one_layout(const ggml_tensor* a, const ggml_tensor* b) {
    return a->type == b->type && ggml_are_same_shape(a, b) && ggml_are_same_stride(a, b);
}

}  // namespace

Status Activations::place(const LoweredGraph& lowered) { return place(lowered, false); }

Status Activations::place_again(const LoweredGraph& lowered) {
    if (fit()) return success();
    const bool with_room = grow_a_little();
    for (const Placed& p : placed_) {
        p.tensor->data = nullptr;
        p.tensor->buffer = nullptr;
    }
    placed_.clear();
    return place(lowered, with_room);
}

void Activations::move_to(std::byte* memory) const {
    for (const Placed& p : placed_)
        p.tensor->data = memory + p.offset + (p.tensor->view_src ? p.tensor->view_offs : 0);
}

Status Activations::place(const LoweredGraph& lowered, bool with_room) {
    place_empty_tensors(lowered);
    HR_ASSIGN(const std::vector<Arena> arenas, arenas_beside_ggml(lowered, nullptr));
    if (arenas.empty())
        HR_TRY(place_by_ggml(lowered, with_room));
    else
        place_in(lowered, arenas.front());
    note_sharing();
    for (const Placed& p : placed_) place_on_host(p.tensor, nullptr);
    return success();
}

/// Views get their data with what they are views of.
void Activations::place_in(const LoweredGraph& lowered, const Arena& arena) {
    bytes_ = arena.bytes;
    std::map<const ggml_tensor*, std::size_t> offsets;
    for (const Arena::Place& p : arena.places) {
        placed_.push_back({p.tensor, p.offset, ggml_nbytes(p.tensor)});
        offsets[p.tensor] = p.offset;
    }
    for (int i = 0; i < ggml_graph_n_nodes(lowered.graph); ++i) {
        ggml_tensor* t = ggml_graph_node(lowered.graph, i);
        if (!t->view_src || t->buffer) continue;
        if (const auto root = offsets.find(t->view_src); root != offsets.end())
            placed_.push_back({t, root->second, 0});
        else
            ggml_backend_view_init(t);
    }
}

/// ggml's allocator brings memory with it, which is given back at once: every run brings its own.
Status Activations::place_by_ggml(const LoweredGraph& lowered, bool with_room) {
    ggml_backend_dev_t cpu = ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU);
    const std::unique_ptr<ggml_gallocr, GallocrFree> arena(
        ggml_gallocr_new(ggml_backend_dev_buffer_type(cpu)));
    const RoomToGrow room(lowered.graph, with_room);
    if (!ggml_gallocr_alloc_graph(arena.get(), lowered.graph))
        return failure(Code::out_of_memory, "cannot allocate the activations");
    bytes_ = ggml_gallocr_get_buffer_size(arena.get(), 0);
    for (int i = 0; i < ggml_graph_n_nodes(lowered.graph); ++i) {
        ggml_tensor* t = ggml_graph_node(lowered.graph, i);
        if (is_on_host(t)) continue;
        const auto* base = static_cast<const std::byte*>(ggml_backend_buffer_get_base(t->buffer));
        const auto at = static_cast<std::size_t>(static_cast<const std::byte*>(t->data) - base);
        if (t->view_src)
            placed_.push_back({t, at - t->view_offs, 0});
        else
            placed_.push_back({t, at, ggml_nbytes(t)});
    }
    return success();
}

/// ggml computes some results in the memory of a source that nothing else reads.
void Activations::note_sharing() {
    std::unordered_map<const ggml_tensor*, std::size_t> offsets;
    for (const Placed& p : placed_)
        if (!p.tensor->view_src) offsets[p.tensor] = p.offset;
    for (Placed& p : placed_) {
        if (p.tensor->view_src) continue;
        for (const ggml_tensor* source : p.tensor->src) {
            if (!source) continue;
            const auto root = offsets.find(source->view_src ? source->view_src : source);
            if (root != offsets.end() && root->second == p.offset) p.source = source;
        }
    }
}

bool Activations::fit() const {
    return std::ranges::all_of(placed_, [](const Placed& p) {
        if (p.tensor->view_src) return true;
        return ggml_nbytes(p.tensor) <= p.room && (!p.source || have_one_layout(p.tensor, p.source));
    });
}

bool Activations::grow_a_little() const {
    return std::ranges::all_of(placed_, [](const Placed& p) {
        return p.tensor->view_src || ggml_nbytes(p.tensor) <= with_room_to_grow(p.room);
    });
}

}  // namespace headrace
