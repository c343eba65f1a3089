#pragma once
#include <unordered_set>

struct ggml_cgraph;
struct ggml_tensor;

namespace headrace::mlx {

/// The roots whose memory somebody outside this graph may read after it has run: their node, or a view of it,
/// is marked as an output, is used by no node at all, or has more uses than this part of a graph contains.
/// A part (ggml_graph_view) shares the whole graph's counts of uses.
std::unordered_set<const ggml_tensor*> visible_roots(const ggml_cgraph* graph);

}  // namespace headrace::mlx
