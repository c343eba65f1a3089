#include "ir/verify.h"

#include <algorithm>
#include <string_view>
#include <unordered_set>

namespace headrace {
namespace {

constexpr NodeId kNoNode = -1;

std::string_view name_of(ValueKind kind) {
    static constexpr std::string_view kNames[] = {"input", "constant", "state", "result"};
    return kNames[static_cast<std::size_t>(kind)];
}

class Verifier {
public:
    explicit Verifier(const Graph& graph, int depth)
        : graph_(graph), depth_(depth), listed_(graph.values.size()) {}

    Status run() {
        constexpr std::size_t kMost = INT32_MAX;
        if (graph_.values.size() > kMost || graph_.nodes.size() > kMost)
            return invalid("{} values and {} nodes; at most {} can be numbered", graph_.values.size(),
                           graph_.nodes.size(), kMost);
        for (std::size_t i = 0; i < graph_.values.size(); ++i) HR_TRY(check_value(static_cast<ValueId>(i)));
        HR_TRY(check_list(ValueKind::input, graph_.inputs));
        HR_TRY(check_list(ValueKind::state, graph_.states));
        HR_TRY(check_all_listed());
        writer_.assign(graph_.values.size(), kNoNode);
        for (std::size_t i = 0; i < graph_.nodes.size(); ++i) {
            if (auto status = check_node(static_cast<NodeId>(i)); !status.ok())
                return status.error().within(title(static_cast<NodeId>(i)));
        }
        return check_outputs();
    }

private:
    bool in_range(ValueId id) const { return id >= 0 && static_cast<std::size_t>(id) < graph_.values.size(); }

    std::string title(NodeId id) const {
        const Node& node = graph_.node(id);
        return node.op ? fmt::format("node {}, {}", id, node.title()) : fmt::format("node {}", id);
    }

    std::string describe(ValueId id) const {
        const Value& v = graph_.value(id);
        std::string text = fmt::format("{} %{}", name_of(v.kind), id);
        return v.name.empty() ? text : fmt::format("{} '{}'", text, v.name);
    }

    Status check_value(ValueId id) const {
        const Value& v = graph_.value(id);
        if (v.kind > ValueKind::result)
            return invalid("value %{} is of the unknown kind {}", id, static_cast<int>(v.kind));
        if (static_cast<int>(v.type.dtype) >= kDTypeCount)
            return invalid("{} has the unknown dtype {}", describe(id), static_cast<int>(v.type.dtype));
        if (static_cast<int>(v.type.format) >= kBlockFormatCount)
            return invalid("{} has the unknown block format {}", describe(id),
                           static_cast<int>(v.type.format));
        if (auto status = check_type(v.type); !status.ok()) return status.error().within(describe(id));
        if (v.type.format != BlockFormat::plain && v.kind != ValueKind::constant)
            return invalid("{} is {}; only constants are stored in blocks", describe(id), v.type.str());
        if (v.kind == ValueKind::result) return check_producer(id);
        if (v.producer != kNoNode) return invalid("{} has node {} as its producer", describe(id), v.producer);
        if (v.kind == ValueKind::input)
            return v.constant ? Status(invalid("{} has constant bytes", describe(id))) : success();
        return check_bytes(id);
    }

    static Status check_type(const TensorType& type) {
        HR_TRY(type.check());
        for (const Dim& d : type.shape) {
            if (!d.is_symbolic()) continue;
            if (d.str().empty()) return invalid("shape {} has a symbol without a name", str(type.shape));
            if (d.min_size() > d.max_size())
                return invalid("symbol {} has the empty range {}..{}", d.str(), d.min_size(), d.max_size());
        }
        return success();
    }

    /// Constants, and the initial values of states.
    Status check_bytes(ValueId id) const {
        const Value& v = graph_.value(id);
        if (!v.type.is_concrete())
            return invalid("{}: shape {} must be known", describe(id), str(v.type.shape));
        if (!v.constant)
            return v.kind == ValueKind::state ? success() : Status(invalid("{} has no bytes", describe(id)));
        if (v.constant->bytes.size() != v.type.bytes())
            return invalid("{} holds {} bytes, {} needs {}", describe(id), v.constant->bytes.size(),
                           v.type.str(), v.type.bytes());
        return success();
    }

    Status check_producer(ValueId id) const {
        const Value& v = graph_.value(id);
        if (v.constant) return invalid("{} has constant bytes", describe(id));
        if (v.producer < 0 || static_cast<std::size_t>(v.producer) >= graph_.nodes.size())
            return invalid("{} has node {} as its producer; the graph has {} nodes", describe(id), v.producer,
                           graph_.nodes.size());
        const auto& made = graph_.node(v.producer).outputs;
        if (v.output_index < 0 || static_cast<std::size_t>(v.output_index) >= made.size() ||
            made[v.output_index] != id)
            return invalid("{} claims to be output {} of {}, which does not list it there", describe(id),
                           v.output_index, title(v.producer));
        return success();
    }

    /// graph.inputs or graph.states: each of the right kind, named, listed once.
    Status check_list(ValueKind kind, const std::vector<ValueId>& ids) {
        for (ValueId id : ids) {
            if (!in_range(id))
                return invalid("the list of {}s holds {}, which is no value", name_of(kind), id);
            const Value& v = graph_.value(id);
            if (v.kind != kind) return invalid("the list of {}s holds {}", name_of(kind), describe(id));
            if (listed_[id]) return invalid("{} is listed twice", describe(id));
            listed_[id] = true;
            if (v.name.empty()) return invalid("{}: the name is empty", describe(id));
            if (!names_.insert(v.name).second) return invalid("{}: the name is already taken", describe(id));
        }
        return success();
    }

    Status check_all_listed() const {
        for (std::size_t i = 0; i < graph_.values.size(); ++i) {
            const ValueKind kind = graph_.values[i].kind;
            if ((kind == ValueKind::input || kind == ValueKind::state) && !listed_[i])
                return invalid("{} is missing in the list of {}s", describe(static_cast<ValueId>(i)),
                               name_of(kind));
        }
        return success();
    }

    Status check_node(NodeId id) {
        const Node& node = graph_.node(id);
        if (!node.op) return invalid("the op is missing");
        for (std::size_t i = 0; i < node.inputs.size(); ++i) HR_TRY(check_operand(id, i));
        for (std::size_t i = 0; i < node.outputs.size(); ++i) HR_TRY(check_output(id, i));
        HR_TRY(check_bodies(node));
        HR_TRY(check_types(node));
        return node.op->writes_state < 0 ? success() : check_write(id);
    }

    Status check_operand(NodeId id, std::size_t i) const {
        const ValueId operand = graph_.node(id).inputs[i];
        if (operand == kNoValue) return success();
        if (!in_range(operand)) return invalid("operand {} is {}, which is no value", i, operand);
        const Value& v = graph_.value(operand);
        if (v.kind == ValueKind::result && v.producer >= id)
            return invalid("operand {}, {}, is made only later, by {}", i, describe(operand),
                           title(v.producer));
        if (writer_[operand] != kNoNode)
            return invalid("operand {}, {}, is read after {} wrote it; read the output of that node", i,
                           describe(operand), title(writer_[operand]));
        return success();
    }

    Status check_output(NodeId id, std::size_t i) const {
        const ValueId output = graph_.node(id).outputs[i];
        if (!in_range(output)) return invalid("output {} is {}, which is no value", i, output);
        const Value& v = graph_.value(output);
        if (v.kind != ValueKind::result || v.producer != id || v.output_index != static_cast<std::int32_t>(i))
            return invalid("output {}, {}, does not name this node and place as its producer", i,
                           describe(output));
        return success();
    }

    Status check_bodies(const Node& node) const {
        if (node.op->control == Control::none) return success();
        if (depth_ == kMostNested) return invalid("graphs lie more than {} deep in one another", kMostNested);
        for (const GraphPtr& body : bodies(node))
            if (auto status = Verifier(*body, depth_ + 1).run(); !status.ok())
                return status.error().within("its body");
        return success();
    }

    Status check_types(const Node& node) {
        operands_.clear();
        for (ValueId id : node.inputs) operands_.push_back(id == kNoValue ? nullptr : &graph_.value(id).type);
        HR_ASSIGN(const auto types, check_and_infer(*node.op, Operands(operands_), node.attrs.get()));
        if (types.size() != node.outputs.size())
            return invalid("{} outputs are stored, inference yields {}", node.outputs.size(), types.size());
        for (std::size_t i = 0; i < types.size(); ++i) {
            const TensorType& stored = graph_.value(node.outputs[i]).type;
            if (!is_same(stored, types[i]))
                return invalid("output {}, {}, is stored as {}, inference yields {}", i,
                               describe(node.outputs[i]), stored.str(), types[i].str());
        }
        return success();
    }

    /// Files of other versions may spell an extent in another way.
    static bool is_same(const TensorType& stored, const TensorType& inferred) {
        if (stored.dtype != inferred.dtype || stored.format != inferred.format) return false;
        return std::ranges::equal(stored.shape, inferred.shape,
                                  [](const Dim& a, const Dim& b) { return equals(a, b) == Answer::yes; });
    }

    Status check_write(NodeId id) {
        const Node& node = graph_.node(id);
        const auto written = static_cast<std::size_t>(node.op->writes_state);
        const std::string_view name = node.op->rule(node.op->writes_state).name;
        if (written >= node.inputs.size() || node.inputs[written] == kNoValue)
            return invalid("operand {}, the state to write, is missing", name);
        const ValueId state = node.inputs[written];
        if (graph_.value(state).kind != ValueKind::state)
            return invalid("operand {} must be a state, got {}", name, describe(state));
        for (std::size_t i = 0; i < node.inputs.size(); ++i)
            if (i != written && node.inputs[i] == state)
                return invalid("{} is both written, as operand {}, and read, as operand {}", describe(state),
                               written, i);
        if (node.outputs.empty() || graph_.value(node.outputs[0]).type != graph_.value(state).type)
            return invalid("output 0 must be the new version of {}, of type {}", describe(state),
                           graph_.value(state).type.str());
        writer_[state] = id;  // a second writer fails in check_operand: it would read after this write
        return success();
    }

    Status check_outputs() {
        names_.clear();
        bool has_effect = !graph_.outputs.empty();
        for (const auto& [name, id] : graph_.outputs) {
            if (name.empty()) return invalid("an output's name is empty");
            if (!names_.insert(name).second) return invalid("output '{}': the name is already taken", name);
            if (!in_range(id)) return invalid("output '{}' is {}, which is no value", name, id);
            if (writer_[id] != kNoNode)
                return invalid(
                    "output '{}' is the old version of {}, which {} overwrites; mark the output of that node",
                    name, describe(id), title(writer_[id]));
        }
        for (ValueId id : graph_.states) has_effect = has_effect || writer_[id] != kNoNode;
        if (!has_effect) return invalid("the graph has no output and writes no state");
        return success();
    }

    const Graph& graph_;
    int depth_;  ///< of bodies around this one
    std::vector<bool> listed_;
    std::vector<NodeId> writer_;  ///< of each value that is a state: the node that has written it so far
    std::unordered_set<std::string_view> names_;
    std::vector<const TensorType*> operands_;  ///< scratch, so that a node costs no allocation
};

}  // namespace

Status verify(const Graph& graph) { return Verifier(graph, 0).run(); }

}  // namespace headrace
