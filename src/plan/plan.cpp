#include "plan/plan.h"

#include <algorithm>
#include <set>

#include "ir/constant.h"
#include "ir/packed_growth.h"
#include "ops/op_name.h"
#include "plan/placement.h"

namespace headrace {
namespace {

Cost default_cost(const Operands& in, std::span<const TensorType> out) {
    Cost cost;
    for (int i = 0; i < in.size(); ++i)
        if (in.has(i)) cost.bytes += static_cast<double>(in[i].bytes());
    for (const TensorType& t : out) {
        cost.bytes += static_cast<double>(t.bytes());
        cost.flops += static_cast<double>(t.elements());
    }
    return cost;
}

/// ggml skips empty nodes but several of its ops divide by extents while the graph is built.
bool has_empty_tensor(const Graph& graph, const Node& node) {
    for (ValueId id : node.inputs)
        if (id != kNoValue && graph.value(id).type.elements() == 0) return true;
    for (ValueId id : node.outputs)
        if (graph.value(id).type.elements() == 0) return true;
    return false;
}

/// Lets a measured choice decide, where it names one of the candidates.
Candidate choose(const Graph& graph, const Node& node, const PlanOptions& options, NodePlan& plan) {
    const auto ways = candidates(graph, node, options);
    const NodeChoice* choice = options.tuning && !options.tuning->empty()
                                   ? options.tuning->find(kind_of(graph, node, options.threads))
                                   : nullptr;
    if (!choice) return ways.front();
    for (const Candidate& way : ways) {
        if (name_of(way) != choice->implementation) continue;
        plan.is_tuned = true;
        plan.one_thread = choice->one_thread && way.implementation != Implementation::native;
        return way;
    }
    return ways.front();
}

NodePlan plan_node(const Graph& graph, const Node& node, const PlanOptions& options) {
    NodePlan plan;
    const auto types = graph.operand_types(node);
    const Operands in(types);
    const auto outputs = graph.output_types(node);
    plan.cost = node.op->cost ? node.op->cost(in, outputs, node.attrs.get()) : default_cost(in, outputs);
    if (has_empty_tensor(graph, node)) return plan;

    const bool lowerable =
        options.native_ops && node.op->lower && node.op->lowerable(in, node.attrs.get()).ok();
    const auto is_taken_by = [&](ggml_backend_device* device) {
        return takes(device, options.arithmetic, graph, node);
    };
    if (!options.devices.empty() && lowerable && (node.op->is_pure() || options.states_on_device) &&
        std::all_of(options.devices.begin(), options.devices.end(), is_taken_by)) {
        plan.implementation = Implementation::native;
        plan.on_device = true;
        return plan;
    }
    const Candidate chosen = choose(graph, node, options, plan);
    plan.implementation = chosen.implementation;
    plan.kernel = chosen.kernel;
    return plan;
}

/// Gives a device's memory to the constants of nodes in the plan's order. Where one has no room, what comes
/// after it runs on the CPU, too: the graph is cut once.
class DeviceRoom {
public:
    explicit DeviceRoom(std::uint64_t bytes) : left_(bytes) {}

    bool has_room_for(const Graph& graph, const Node& node) {
        for (ValueId id : node.inputs) {
            if (is_full_ || id == kNoValue || graph.value(id).kind != ValueKind::constant) continue;
            const Constant* constant = graph.value(id).constant.get();
            if (!there_.insert(constant).second) continue;
            is_full_ = constant->bytes.size() > left_;
            if (!is_full_) left_ -= constant->bytes.size();
        }
        return !is_full_;
    }

private:
    std::uint64_t left_;
    bool is_full_ = false;
    std::set<const Constant*> there_;
};

/// Leaves to the CPU what the devices have no room for.
void keep_within_room(Plan& plan, const PlanOptions& options, std::vector<bool>& changed_nodes) {
    DeviceRoom room(options.device_room);
    PlanOptions without_device = options;
    without_device.devices.clear();
    for (std::size_t i = 0; i < plan.nodes.size(); ++i) {
        const Node& node = plan.graph.nodes[i];
        if (!plan.nodes[i].on_device || room.has_room_for(plan.graph, node)) continue;
        plan.nodes[i] = plan_node(plan.graph, node, without_device);
        changed_nodes[i] = true;
    }
}

/// A write on another device than the state's would change only the scheduler's copy: all that write one run
/// where it is.
void place_states(Plan& plan, const PlanOptions& options, std::vector<bool>& changed_nodes) {
    PlanOptions without_device = options;
    without_device.devices.clear();
    const std::vector<ValueId> written = written_states(plan.graph);
    plan.device_states.assign(plan.graph.states.size(), false);
    for (std::size_t s = 0; s < plan.graph.states.size(); ++s) {
        std::vector<std::size_t> writers;
        for (std::size_t i = 0; i < plan.nodes.size(); ++i)
            if (written[i] == plan.graph.states[s]) writers.push_back(i);
        const auto is_there = [&](std::size_t i) { return plan.nodes[i].on_device; };
        plan.device_states[s] = !writers.empty() && std::ranges::all_of(writers, is_there);
        if (plan.device_states[s]) continue;
        for (const std::size_t i : writers) {
            if (!is_there(i)) continue;
            plan.nodes[i] = plan_node(plan.graph, plan.graph.nodes[i], without_device);
            changed_nodes[i] = true;
        }
    }
}

bool reads_packed(const NodePlan& plan) { return plan.kernel && plan.kernel->packed_operand >= 0; }

/// Has the weights of changed nodes packed, all at once.
void pack(const Plan& plan, const PlanOptions& options, PackedConstants& packed,
          const std::vector<bool>& changed_nodes) {
    std::vector<PackedConstants::Use> uses;
    for (std::size_t i = 0; i < plan.nodes.size(); ++i)
        if (changed_nodes[i] && reads_packed(plan.nodes[i]))
            uses.push_back({&plan.graph.nodes[i], plan.nodes[i].kernel});
    packed.prepare(plan.graph, uses, options.threads);
}

Status add_aligned(Plan& plan, ValueId id, PackedConstants& packed) {
    const Value& value = plan.graph.value(id);
    if (value.kind != ValueKind::constant || is_readable_in_place(*value.constant)) return success();
    HR_ASSIGN(plan.aligned[value.constant.get()], packed.aligned(*value.constant));
    return success();
}

/// Whether a node only copies bytes of an operand, wherever they lie: of a vocabulary in a file, the pages
/// that are needed.
bool only_copies(const Plan& plan, const Node& node, const NodePlan& chosen, std::size_t operand) {
    const Value& read = plan.graph.value(node.inputs[operand]);
    return is(node, "gather") && operand == 0 && chosen.implementation != Implementation::native &&
           read.type.format == BlockFormat::plain && (!read.constant || !read.constant->factors);
}

/// What a node on the CPU reads of constants.
Status find_constants(Plan& plan, std::size_t at, PackedConstants& packed) {
    const Node& node = plan.graph.nodes[at];
    NodePlan& chosen = plan.nodes[at];
    if (reads_packed(chosen)) {
        HR_ASSIGN(chosen.packed, packed.get(plan.graph, node, *chosen.kernel));
    }
    if (chosen.on_device) return success();
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
        if (node.inputs[i] == kNoValue) continue;
        const bool is_packed = reads_packed(chosen) && static_cast<int>(i) == chosen.kernel->packed_operand;
        if (!is_packed && !only_copies(plan, node, chosen, i))
            HR_TRY(add_aligned(plan, node.inputs[i], packed));
    }
    return success();
}

}  // namespace

std::vector<Candidate> candidates(const Graph& graph, const Node& node, const PlanOptions& options) {
    std::vector<Candidate> ways;
    const auto types = graph.operand_types(node);
    const Operands in(types);
    if (options.packed_kernels) {
        const auto mask = graph.constant_mask(node);
        const std::unique_ptr<bool[]> constants(new bool[mask.size()]);
        std::copy(mask.begin(), mask.end(), constants.get());
        for (const KernelDef& kernel : node.op->kernels)
            if (kernel.applies(in, {constants.get(), mask.size()}, node.attrs.get()))
                ways.push_back({Implementation::kernel, &kernel});
        const auto grows = [&](const Candidate& c) { return grows_weights(*c.kernel, in, node.attrs.get()); };
        if (options.low_memory && !std::ranges::all_of(ways, grows)) std::erase_if(ways, grows);
    }
    if (options.native_ops && node.op->lower && node.op->lowerable(in, node.attrs.get()).ok())
        ways.push_back({Implementation::native});
    ways.push_back({Implementation::reference});
    return ways;
}

double Plan::estimated_us() const {
    constexpr double kFlopsPerUs = 2e4, kBytesPerUs = 1e4, kNodeUs = 0.05;
    return flops / kFlopsPerUs + bytes / kBytesPerUs + kNodeUs * static_cast<double>(nodes.size());
}

std::size_t Plan::own_bytes() const {
    std::size_t total = sizeof(Plan) + nodes.size() * sizeof(NodePlan);
    for (const Value& v : graph.values)
        total += sizeof(Value) + v.type.shape.capacity() * sizeof(Dim) + v.name.capacity();
    for (const Node& n : graph.nodes)
        total += sizeof(Node) + (n.inputs.capacity() + n.outputs.capacity()) * sizeof(ValueId) +
                 n.label.capacity();
    return total;
}

Result<Plan> make_plan(Graph graph, const PlanOptions& options, PackedConstants& packed) {
    Plan plan{.graph = std::move(graph), .device_products = options.arithmetic.products};
    plan.nodes.resize(plan.graph.nodes.size());
    HR_TRY(replan(plan, options, packed, std::vector<bool>(plan.nodes.size(), true)));
    return plan;
}

Status replan(Plan& plan, const PlanOptions& options, PackedConstants& packed,
              std::vector<bool> changed_nodes) {
    for (std::size_t i = 0; i < plan.nodes.size(); ++i)
        if (changed_nodes[i]) plan.nodes[i] = plan_node(plan.graph, plan.graph.nodes[i], options);
    keep_within_room(plan, options, changed_nodes);
    place_states(plan, options, changed_nodes);
    pack(plan, options, packed, changed_nodes);
    plan.flops = plan.bytes = 0;
    for (std::size_t i = 0; i < plan.nodes.size(); ++i) {
        if (changed_nodes[i])
            if (const Status found = find_constants(plan, i, packed); !found.ok())
                return found.error().within(plan.graph.nodes[i].title());
        plan.flops += plan.nodes[i].cost.flops;
        plan.bytes += plan.nodes[i].cost.bytes;
    }
    for (const auto& [name, id] : plan.graph.outputs) HR_TRY(add_aligned(plan, id, packed));
    return success();
}

std::string_view name_of(const Candidate& candidate) {
    switch (candidate.implementation) {
        case Implementation::native: return "ggml";
        case Implementation::kernel: return candidate.kernel->name;
        default: return "reference";
    }
}

std::string_view name_of(const NodePlan& node) {
    return name_of(Candidate{node.implementation, node.kernel});
}

}  // namespace headrace
