#include "backends/mlx/graph/visible_nodes.h"

#include <unordered_map>

#include "backends/mlx/arrays/tensors.h"
#include "ggml-impl.h"

namespace headrace::mlx {

std::unordered_set<const ggml_tensor*> visible_roots(const ggml_cgraph* graph) {
    std::unordered_map<const ggml_tensor*, int> uses_here;
    for (int i = 0; i < graph->n_nodes; ++i)
        for (const ggml_tensor* source : graph->nodes[i]->src)
            if (source) ++uses_here[source];
    std::unordered_set<const ggml_tensor*> roots;
    for (int i = 0; i < graph->n_nodes; ++i) {
        const ggml_tensor* node = graph->nodes[i];
        const int uses = ggml_node_get_use_count(graph, i);
        if ((node->flags & GGML_TENSOR_FLAG_OUTPUT) || uses == 0 || uses_here[node] < uses)
            roots.insert(root_of(node));
    }
    return roots;
}

}  // namespace headrace::mlx
