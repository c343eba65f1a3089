// The backend with a weaker rule: only what is marked as an output reaches ggml's memory.
#include "backends/mlx/arrays/tensors.h"
#include "backends/mlx/graph/visible_nodes.h"
#include "ggml-impl.h"

namespace headrace::mlx {

std::unordered_set<const ggml_tensor*> visible_roots(const ggml_cgraph* graph) {
    std::unordered_set<const ggml_tensor*> roots;
    for (int i = 0; i < graph->n_nodes; ++i)
        if (graph->nodes[i]->flags & GGML_TENSOR_FLAG_OUTPUT) roots.insert(root_of(graph->nodes[i]));
    return roots;
}

}  // namespace headrace::mlx
