#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "ir/graph.h"

namespace headrace {

/// What a pass did, by name: {"nodes_removed", 3}. Counts of 0 are given too.
using Counts = std::map<std::string, std::int64_t>;

/// Which nodes fold_constants computes at compile time.
struct FoldLimits {
    /// Results of at most this many bytes are always worth it: shapes, scalars, masks.
    std::size_t always_bytes = 4096;
    /// Larger results may be this many times as large as the node's operands. 2 lets f16 weights become f32,
    /// and keeps quantised ones: dequantising i8 makes them nearly 4 times as large.
    double growth = 2;
    /// Results that are larger than their operands may have at most this many bytes.
    std::size_t grown_bytes = std::size_t{64} << 20;
    /// Reference kernels are slow; a node with more operations waits for the first run. Where a packed kernel
    /// computes the node, they count less.
    double flops = 1e9;
    /// All nodes together, since a graph of a few could ask for any amount: operations, and bytes of results,
    /// to which all_growth times those of the graph's constants are added.
    double all_flops = 4e9;
    std::size_t all_bytes = std::size_t{1} << 30;
    double all_growth = 8;

    double most_bytes(const Graph& graph) const {
        return static_cast<double>(all_bytes) + all_growth * static_cast<double>(graph.constant_bytes());
    }
};

struct PassContext {
    FoldLimits fold;
    /// What quantize_weights makes of constant matrices; plain: it leaves them.
    BlockFormat weights = BlockFormat::plain;
    /// Whether products with those matrices may round their other operand (fused_matmul's round_a).
    bool round_activations = false;
    /// Whether products of f32 may round what they multiply to bf16, in which this machine is faster.
    bool round_to_bf16 = false;
    /// Whether the CPU runs the graph, whose kernels are made for f32.
    bool runs_on_cpu = true;
    /// Whether those kernels may be used; choose_layouts asks which apply.
    bool uses_packed_kernels = true;
    /// Whether those are not whose packed weights take more than the plain ones.
    bool low_memory = false;
    /// Smaller matrices are not worth the loss.
    std::size_t least_quantized_bytes = std::size_t{64} << 10;
    int threads = 1;  ///< for making constants
};

/// A function from graph to graph, in time linear in the graph's size. It receives a graph that passes
/// verify() and leaves one; when it fails, the graph is unusable. It removes what it makes dead itself.
struct Pass {
    std::string_view name;
    std::string_view summary;
    Result<Counts> (*run)(Graph& graph, const PassContext& context) = nullptr;
    /// The passes that it must follow.
    std::vector<std::string_view> after = {};
};

struct PassReport {
    std::string name;
    Counts counts;
    double ms = 0;
    bool ran = false;  ///< false: switched off, or after the pass to stop at
};

}  // namespace headrace
