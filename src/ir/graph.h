#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "ir/op_def.h"
#include "ir/tensor_type.h"

namespace headrace {

using ValueId = std::int32_t;
using NodeId = std::int32_t;
inline constexpr ValueId kNoValue = -1;  ///< an absent optional operand

/// Bytes of a constant: owned, borrowed from the caller or mapped from a file. Shared, never changed.
struct Constant {
    std::span<const std::byte> bytes;
    std::shared_ptr<const void> owner;  ///< keeps the bytes alive; null for caller-kept memory
    bool mapped = false;                ///< the bytes are a file's pages
    std::string key;                    ///< its name in a store outside graph files; empty: it has none
    /// Null: the bytes are the elements. AlignedBytes and OnePassReader multiply.
    std::shared_ptr<const ElementFactors> factors = nullptr;
};

enum class ValueKind : std::uint8_t { input, constant, state, result };

struct Value {
    ValueKind kind = ValueKind::result;
    TensorType type;
    std::string name;               ///< unique for inputs and states; a debugging aid for others
    NodeId producer = -1;           ///< of a result
    std::int32_t output_index = 0;  ///< which output of the producer
    std::shared_ptr<const Constant>
        constant;  ///< of a constant; of a state: its initial value, null for zeros
};

struct Node {
    const OpDef* op = nullptr;
    AttrBox attrs;
    std::vector<ValueId> inputs;  ///< kNoValue where an optional operand is absent
    std::vector<ValueId> outputs;
    std::string label;  ///< the user's name for it, in error messages

    /// "conv2d (stem)", or just the op's name.
    std::string title() const {
        return label.empty() ? std::string(op->name) : fmt::format("{} ({})", op->name, label);
    }
};

/// A model as a list of nodes in an order in which they can run. A plain value: copies share constants.
///
/// States persist between runs of a session. A node that writes a state aliases it: its output is the state's
/// new version, at most one node writes a state, and no later node reads the old version.
class Graph {
public:
    std::vector<Value> values;
    std::vector<Node> nodes;
    std::vector<ValueId> inputs;
    std::vector<ValueId> states;
    std::vector<std::pair<std::string, ValueId>> outputs;  ///< by mark_output, in that order
    std::vector<Condition> conditions;                     ///< what its nodes need of the symbols' values

    const Value& value(ValueId id) const { return values[static_cast<std::size_t>(id)]; }
    Value& value(ValueId id) { return values[static_cast<std::size_t>(id)]; }
    const Node& node(NodeId id) const { return nodes[static_cast<std::size_t>(id)]; }

    /// Operand types of a node, for facets; valid while the graph is unchanged.
    std::vector<const TensorType*> operand_types(const Node& node) const;
    std::vector<TensorType> output_types(const Node& node) const;
    std::vector<bool> constant_mask(const Node& node) const;
    /// Bytes of all constants together.
    std::size_t constant_bytes() const;
    bool is_concrete() const;

    /// Removes what no output or state write needs and renumbers: `keep[i]` says whether node i stays.
    /// Inputs and states stay even when unused, so that a caller's bindings remain valid.
    void compact(const std::vector<bool>& keep);
};

/// The symbols that get their values while a graph runs: the attribute `counts` of an op that counts when its
/// operands are there, or whose bodies do; none of other ops, and of numbers.
Shape counted_extents(const Node& node);
std::vector<std::string> counted_symbols(const Node& node);

/// The graphs that a node has as attributes.
std::vector<GraphPtr> bodies(const Node& node);
inline constexpr int kMostNested = 16;  ///< how deep graphs may lie in bodies of others

/// What some nodes of a well-formed graph need of the symbols' values: those for which `of` holds.
std::vector<Condition> conditions_of(const Graph& graph, const std::vector<bool>& of);

/// The same graph with symbols replaced: every type is inferred again. Value ids do not change. Errors: the
/// first condition that does not hold, and what inference says of the numbers.
Result<Graph> specialize(const Graph& graph, const SymbolBindings& bindings);

/// Reads bindings off concrete input shapes (in graph.inputs order); checks fixed extents and ranges.
Result<SymbolBindings> bind_symbols(const Graph& graph, std::span<const std::vector<std::int64_t>> shapes);

}  // namespace headrace
