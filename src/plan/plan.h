#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "ir/graph.h"
#include "plan/packed_constants.h"
#include "plan/placement.h"
#include "plan/tuning.h"

struct ggml_backend_device;

namespace headrace {

/// How a node is executed. Decided here and nowhere else: ggml's own supports_op cannot be trusted.
enum class Implementation : std::uint8_t {
    native,     ///< ggml's own ops, through the op's lowering
    kernel,     ///< one of our packed kernels, as a custom node on the CPU
    reference,  ///< the op's reference kernel, as a custom node on the CPU
};

struct NodePlan {
    Implementation implementation = Implementation::reference;
    const KernelDef* kernel = nullptr;
    std::shared_ptr<const std::byte> packed;  ///< for kernel->packed_operand
    bool one_thread = false;                  ///< the others leave it alone
    bool is_tuned = false;                    ///< by PlanOptions::tuning; else by rule
    bool on_device = false;                   ///< on a chosen device; else on the CPU
    Cost cost;
};

struct PlanOptions {
    std::vector<ggml_backend_device*> devices = {};  ///< that share the graph; none: the CPU alone
    DeviceArithmetic arithmetic = {};                ///< of those devices
    std::uint64_t device_room = UINT64_MAX;          ///< bytes that constants may take there
    bool states_on_device = false;                   ///< they may lie there
    bool packed_kernels = true;
    bool native_ops = true;
    bool low_memory = false;         ///< no kernel that grows_weights, where there is another
    const Tuning* tuning = nullptr;  ///< measured choices; null: rules alone
    int threads = 0;                 ///< of the runs, which choices depend on, and for packing
};

/// One way to run a node on the CPU.
struct Candidate {
    Implementation implementation = Implementation::reference;
    const KernelDef* kernel = nullptr;
};

/// All ways that the options allow, the rules' choice first.
std::vector<Candidate> candidates(const Graph& graph, const Node& node, const PlanOptions& options);

/// A graph of known shapes with a decision per node. Immutable where sessions share it.
struct Plan {
    Graph graph;
    SymbolBindings bindings;  ///< of which it is
    std::vector<NodePlan> nodes;
    ProductForms device_products = {};  ///< of nodes on a device
    /// Whether each of the graph's states lies on the device, as all nodes that write it do.
    std::vector<bool> device_states;
    /// Aligned copies of constants that a file has where kernels cannot read them and that some node reads
    /// plain.
    std::map<const Constant*, std::shared_ptr<const std::byte>> aligned;
    double flops = 0, bytes = 0;

    /// Rough time on one thread, for choosing how many to wake.
    double estimated_us() const;
    /// Memory that goes with the plan: without constants and packed weights, which others share.
    std::size_t own_bytes() const;
};

Result<Plan> make_plan(Graph graph, const PlanOptions& options, PackedConstants& packed);
/// Decides anew on the nodes of the plan's graph that other extents have changed.
Status replan(Plan& plan, const PlanOptions& options, PackedConstants& packed,
              std::vector<bool> changed_nodes);

/// "ggml", "reference" or the kernel's name.
std::string_view name_of(const Candidate& candidate);
std::string_view name_of(const NodePlan& node);

}  // namespace headrace
