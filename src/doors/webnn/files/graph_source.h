#pragma once
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "doors/webnn/files/file_value.h"
#include "headrace/webnn.h"
#include "ir/graph.h"

namespace headrace::webnn {

/// What the `.webnn` text and the JSON form both describe: names, types and calls as written, nothing
/// resolved. `at` is an offset into a text; the JSON form does not use it.
struct SourceInput {
    std::string name;
    MLOperandDescriptor type;
    std::size_t at = 0;
};

struct SourceConstant {
    enum class Kind { weights, scalar, bytes };
    std::string name;
    MLOperandDescriptor type;
    Kind kind = Kind::weights;
    std::string key;                        ///< of weights: in the manifest
    FileValue value;                        ///< of a scalar: what every element is
    std::shared_ptr<const Constant> bytes;  ///< of inline bytes; of weights that are to be written
    std::size_t at = 0;
};

struct SourceOption {
    std::string name;
    FileValue value;
    std::size_t at = 0;
};

struct SourceNode {
    std::string op;  ///< camelCase or snake_case; empty: the one argument gets another name
    std::vector<std::string> results;
    bool takes_all = false;            ///< written [a, b] = ...: names every result, even if it is one
    std::vector<FileValue> arguments;  ///< positional: names of values, null for absent ones, literals
    std::vector<SourceOption> options;
    std::size_t at = 0;
};

struct SourceOutput {
    std::string name;
    std::string value;
    std::size_t at = 0;
};

/// Something in a source, for messages.
struct Spot {
    enum class Section { inputs, consts, nodes, outputs };
    Section section;
    std::size_t index = 0;
    std::size_t at = 0;
    std::string detail = {};  ///< within it, as a JSON path: "options.axis"
};

struct GraphSource {
    std::string name = "graph";
    bool quantized = false;  ///< a note for tools, written only: the graph holds quantised weights
    std::vector<SourceInput> inputs;
    std::vector<SourceConstant> constants;
    std::vector<SourceNode> nodes;
    std::vector<SourceOutput> outputs;
    std::function<std::string(const Spot&)> place;  ///< "12:7" in a text, "nodes[3].options.axis" in JSON
};

class WeightsFile;
/// Opens the weights; called once at most, and only when a constant refers to them.
using OpenWeights = std::function<Result<std::unique_ptr<WeightsFile>>()>;

/// Resolves names and operators. Takes time and memory linear in the source and the weights it names.
Result<Graph> build_graph(const GraphSource& source, const OpenWeights& open_weights);

/// Describes a graph of the door's operators; large constants become weights with their bytes attached.
/// Errors: unsupported, naming the op, state or type that the formats do not have.
Result<GraphSource> describe_graph(const Graph& graph, std::string name);

/// A dimension as the JSON form and options write it: an integer or {"name": ..., "maxSize": ...}.
Result<MLDimension> to_dimension(const FileValue& value);
FileValue from_dimension(const MLDimension& dimension);
/// The bytes of a list of integers from 0 to 255.
Result<std::shared_ptr<const Constant>> to_bytes(const FileValue& list);
/// The formats' largest extent stands for "any".
inline constexpr std::int64_t kMostExtent = UINT32_MAX;

}  // namespace headrace::webnn
