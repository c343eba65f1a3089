#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "headrace/headrace.h"

/// ONNX models (docs/onnx.md), read without Python and without Protocol Buffers.
namespace headrace {

/// A tensor's shape: numbers, and names of extents that stay open until a graph runs.
using OnnxShape = std::vector<std::variant<std::int64_t, std::string>>;
/// What an input is: an optional that is empty; a tensor of a shape, also within an optional; or a sequence
/// of tensors of these shapes. An empty list of either kind stands for that of the other, too.
using OnnxForm = std::variant<std::monostate, OnnxShape, std::vector<OnnxShape>>;

struct OnnxOptions {
    /// Numbers for named dimensions of inputs, which are open otherwise.
    std::map<std::string, std::int64_t> dimensions;
    /// Forms of inputs by their names: whole shapes of tensors, also of those that the model gives none. A
    /// sequence or an optional is read with a form only.
    std::map<std::string, OnnxForm> forms;
};

/// An input or output as the model declares it.
struct OnnxValue {
    std::string name;
    /// "tensor", or what it is of such: "sequence", "optional", "optional of sequence". Others are not read:
    /// "map", "sparse_tensor", "opaque", "without a type".
    std::string kind;
    /// The tensors' type: "f32", "bool", "f8e4m3fn", ...; none where the model says none that is read.
    std::optional<std::string> type;
    /// The tensors' shape, with "x.0" for an extent without a name; none where the model says none.
    std::optional<OnnxShape> shape;
    /// ONNX's number of `type` (TensorProto.DataType), also of those that are not read; 0: the model says
    /// none.
    std::int32_t element_type = 0;
    std::vector<std::string> dimension_names;  ///< of each extent, as the file has it: "" without a name
    std::vector<std::string> denotations;  ///< of each extent: what it means, "DATA_BATCH"; "" without one
};

/// What a model says of itself.
struct OnnxMetadata {
    std::string producer, domain, description, graph_name, graph_description;
    std::optional<std::int64_t> version;
    std::map<std::string, std::string> properties;
};

/// How one of the model's outputs is put together from those of its graph.
struct OnnxOutput {
    enum class Kind : std::uint8_t {
        tensor,    ///< the graph's output `tensor`
        sequence,  ///< of `parts`, which are tensors
        table,     ///< a sequence whose length a run tells, in `tensor`, `shapes` and `ranks`
        optional,  ///< of its one part, where `is_there` tells that it is there; without a part always empty
    };
    std::string name;
    Kind kind = Kind::tensor;
    std::string tensor;  ///< the graph's output; of a table that with all elements, one tensor after another
    std::string shapes;  ///< of a table: the graph's output [length, dimensions], i64
    std::string ranks;   ///< of a table: how many of the dimensions each tensor has; "" where all have all
    std::string is_there;  ///< of an optional: the graph's output, one truth value; "" where it always is
    std::vector<OnnxOutput> parts;
};

/// What a model is once it is read.
struct OnnxReading {
    std::shared_ptr<const Graph> graph;
    std::vector<OnnxOutput> outputs;  ///< in the model's order
    /// Outputs of the graph whose elements it gives in another type than the model: "bf16", "u16", ...
    std::map<std::string, std::string> declared;
};

/// A model that is open: what it declares, and graphs of it for the forms of inputs that are needed. Threads
/// may use it at the same time; they read one after the other.
class HEADRACE_API OnnxModel {
public:
    /// Maps a file, which must not be shortened while the model or what was read of it is there. Errors: io
    /// for a file that cannot be read; invalid_argument for what is no ONNX model; unsupported for versions
    /// that are not read.
    static std::shared_ptr<OnnxModel> open(const std::string& path);
    /// A model's bytes, without external data, which `owner` keeps alive.
    static std::shared_ptr<OnnxModel> open(std::span<const std::byte> bytes,
                                           std::shared_ptr<const void> owner);
    ~OnnxModel();
    OnnxModel(const OnnxModel&) = delete;
    OnnxModel& operator=(const OnnxModel&) = delete;

    /// What a caller gives: initializers, which may be listed as inputs, too, are none.
    const std::vector<OnnxValue>& inputs() const;
    const std::vector<OnnxValue>& outputs() const;
    /// Initializers that are listed as inputs, whose values a caller may replace elsewhere; here they are
    /// fixed.
    const std::vector<OnnxValue>& overridable_initializers() const;
    const OnnxMetadata& metadata() const;
    /// By domain; "" is ai.onnx.
    const std::map<std::string, std::int64_t>& operator_sets() const;

    /// Errors: load_onnx()'s.
    OnnxReading read(const OnnxOptions& options = {});

private:
    struct Impl;
    explicit OnnxModel(std::unique_ptr<Impl> impl);
    std::unique_ptr<Impl> impl_;
};

/// Reads a model as a graph for compile(). Weights stay in the file's pages, small ones at least where their
/// place is a multiple of 16 bytes; the file must not be shortened meanwhile. Errors: io for a file that
/// cannot be read; invalid_argument for what is no valid model; unsupported for what this reader lacks or
/// cannot express, with the node, its operator, what is in the way and what to do.
HEADRACE_API std::shared_ptr<const Graph> load_onnx(const std::string& path, const OnnxOptions& options = {});
/// A model's bytes, without external data, which `owner` keeps alive.
HEADRACE_API std::shared_ptr<const Graph> load_onnx(std::span<const std::byte> bytes,
                                                    std::shared_ptr<const void> owner,
                                                    const OnnxOptions& options = {});

/// An operator that load_onnx() reads.
struct OnnxOperator {
    std::string domain;  ///< "" is ai.onnx
    std::string name;
    std::int64_t since = 1;  ///< the first operator set that has it
};
HEADRACE_API std::vector<OnnxOperator> onnx_operators();

}  // namespace headrace
