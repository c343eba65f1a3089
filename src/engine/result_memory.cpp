#include "engine/result_memory.h"

#include "base/machine_memory.h"

namespace headrace {
namespace {

/// Of extents whose product need not fit in 64 bits.
double real_bytes(const TensorType& type) {
    double bits = bits_of(type.dtype);
    for (const Dim& d : type.shape) bits *= static_cast<double>(d.size());
    return bits / 8;
}

}  // namespace

Status check_results_fit(const Graph& graph, const std::vector<bool>* changed) {
    static const auto kTotal = static_cast<double>(machine_memory().total);
    if (kTotal == 0) return success();
    for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
        if (changed && !(*changed)[i]) continue;
        for (const ValueId id : graph.nodes[i].outputs) {
            const TensorType& type = graph.value(id).type;
            const double bytes = real_bytes(type);
            if (bytes <= kTotal) continue;
            return failure(Code::out_of_memory,
                           "{}: a result of the shape {} takes {:.0f} MiB, and the machine has {:.0f}; give "
                           "inputs of smaller shapes or numbers",
                           graph.nodes[i].title(), str(type.shape), bytes / (1 << 20), kTotal / (1 << 20));
        }
    }
    return success();
}

}  // namespace headrace
