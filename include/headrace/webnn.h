#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "headrace/headrace.h"

/// The W3C Web Neural Network API (https://www.w3.org/TR/webnn/) in C++, with the specification's names.
///
/// Failures throw headrace::Exception: invalid_argument where the specification throws a TypeError,
/// invalid_state where it throws InvalidStateError, others as their names say.
namespace headrace::webnn {

/// "float32", "float16", "int32", "uint32", "int64", "uint64", "int8", "uint8", "int4", "uint4".
HEADRACE_API std::string_view data_type_name(DType type);
HEADRACE_API DType parse_data_type(std::string_view name);

/// A fixed extent, or a named one that is given at run time and is at most `max_size`.
struct MLDimension {
    std::int64_t size = 0;
    std::string name;
    std::int64_t max_size = INT64_MAX;

    MLDimension(std::int64_t fixed) : size(fixed) {}
    MLDimension(std::string symbol, std::int64_t max) : name(std::move(symbol)), max_size(max) {}
    bool is_dynamic() const { return !name.empty(); }
};

struct MLOperandDescriptor {
    DType dataType = DType::f32;
    std::vector<MLDimension> shape;
};

/// One option of an operator: a flag, number, text, list of numbers, shape or data type.
using MLOption =
    std::variant<bool, std::int64_t, std::uint64_t, double, std::string, std::vector<std::int64_t>,
                 std::vector<double>, std::vector<MLDimension>, DType>;
using MLOptions = std::vector<std::pair<std::string, MLOption>>;

/// One parameter of an operator as the Python and Node doors present it, in positional order.
struct MLParameter {
    std::string name;    ///< in the door ("pads")
    std::string target;  ///< operand or attribute of the catalog's op ("padding")
    bool is_operand = false;
    bool is_list = false;  ///< a sequence of operands
    bool required = false;
    bool is_data_type = false;
    std::string default_text;  ///< as Python writes it
    std::string type_text;     ///< a Python annotation
    std::string doc;
};
struct MLSignature {
    std::string name;  ///< snake_case
    std::string idl;   ///< camelCase
    std::string summary;
    bool returns_list = false;
    std::vector<MLParameter> parameters;
};
/// Every operator that this build offers; derived from the op catalog.
HEADRACE_API const std::vector<MLSignature>& signatures();

/// What an operand of an operator may be.
struct MLTensorLimits {
    std::vector<DType> dataTypes;
    int minRank = 0, maxRank = 0;
};
/// Limits by operator (camelCase), then by operand; "input", "constant" and "output" hold the context's own.
struct MLOpSupportLimits {
    std::string preferredInputLayout = "nchw";
    std::size_t maxTensorByteLength = 0;
    MLTensorLimits input, constant, output;
    std::map<std::string, std::map<std::string, MLTensorLimits>> operators;
};

class MLGraphBuilder;

/// A value of a graph under construction; belongs to the builder that made it.
class HEADRACE_API MLOperand {
public:
    MLOperand() = default;
    explicit operator bool() const { return builder_ != nullptr; }
    DType dataType() const;
    std::vector<MLDimension> shape() const;
    std::string name() const;  ///< of an input or a named constant, else empty

private:
    friend class MLGraphBuilder;
    MLOperand(std::shared_ptr<struct BuilderState> builder, std::int32_t id)
        : builder_(std::move(builder)), id_(id) {}
    std::shared_ptr<struct BuilderState> builder_;
    std::int32_t id_ = -1;
};

/// A compiled graph. Thread-safe: concurrent dispatches use sessions of their own.
class HEADRACE_API MLGraph {
public:
    struct State;
    explicit MLGraph(std::shared_ptr<State> state) : state_(std::move(state)) {}
    const std::vector<TensorInfo>& inputs() const;
    const std::vector<TensorInfo>& outputs() const;
    /// Runs on caller memory, in the order of inputs() and outputs().
    void run(std::span<const InputView> inputs, std::span<const OutputView> outputs) const;
    std::vector<std::vector<std::int64_t>> outputShapes(
        std::span<const std::vector<std::int64_t>> inputs) const;
    std::size_t operandCount() const;  ///< of the graph as built
    std::size_t operationCount() const;
    const Executable& executable() const;
    void save(const std::string& path) const;  ///< the graph as built, with its weights
    std::string print() const;                 ///< the optimised graph as text
    void destroy();

private:
    std::shared_ptr<State> state_;
};

struct MLTensorDescriptor {
    DType dataType = DType::f32;
    std::vector<std::int64_t> shape;
    bool readable = false, writable = false;
};

/// Typed memory that belongs to a context.
class HEADRACE_API MLTensor {
public:
    struct State;
    explicit MLTensor(std::shared_ptr<State> state) : state_(std::move(state)) {}
    DType dataType() const;
    const std::vector<std::int64_t>& shape() const;
    bool readable() const;
    bool writable() const;
    std::size_t bytes() const;
    bool destroyed() const;
    void destroy();  ///< frees the memory; a second call throws invalid_state
    const std::shared_ptr<State>& state() const { return state_; }

private:
    std::shared_ptr<State> state_;
};

struct MLContextOptions {
    std::string powerPreference = "default";  ///< "default", "high-performance" or "low-power"
    bool accelerated = true;                  ///< true: the best local GPU if there is one
    std::string device;  ///< a device by name, e.g. "rpc://host:port"; overrides accelerated
    int threads = 0;     ///< 0: headrace::num_threads()
};

class HEADRACE_API MLContext {
public:
    explicit MLContext(const MLContextOptions& options = {});
    bool accelerated() const;  ///< whether graphs of this context really run on a GPU
    const std::string& powerPreference() const;
    const std::string& device() const;
    const MLOpSupportLimits& opSupportLimits() const;

    MLTensor createTensor(const MLTensorDescriptor& descriptor) const;
    void readTensor(const MLTensor& tensor, void* data, std::size_t bytes) const;
    void writeTensor(const MLTensor& tensor, const void* data, std::size_t bytes) const;
    void dispatch(const MLGraph& graph, const std::map<std::string, MLTensor>& inputs,
                  const std::map<std::string, MLTensor>& outputs) const;
    /// A graph that MLGraph::save wrote, compiled for this context.
    MLGraph load(const std::string& path) const;
    const CompileOptions& compileOptions() const;

private:
    struct State;
    std::shared_ptr<State> state_;
};

class HEADRACE_API MLGraphBuilder {
public:
    explicit MLGraphBuilder(const MLContext& context);

    MLOperand input(const std::string& name, const MLOperandDescriptor& descriptor);
    /// Copies the bytes.
    MLOperand constant(const MLOperandDescriptor& descriptor, const void* data, std::size_t bytes,
                       const std::string& name = "");
    /// Uses the caller's bytes for as long as any graph does; `owner` keeps them alive.
    MLOperand constant(const MLOperandDescriptor& descriptor, std::shared_ptr<const void> owner,
                       const void* data, std::size_t bytes, const std::string& name = "");
    /// A 0-D constant.
    MLOperand constant(DType type, std::variant<std::int64_t, std::uint64_t, double> value);

    /// Any operator by its snake_case name: operands in order (an empty MLOperand leaves an optional one
    /// out).
    std::vector<MLOperand> op(const std::string& name, std::span<const MLOperand> operands,
                              const MLOptions& options = {}, const std::string& label = "");
    MLOperand op1(const std::string& name, std::initializer_list<MLOperand> operands,
                  const MLOptions& options = {}, const std::string& label = "") {
        return op(name, {operands.begin(), operands.size()}, options, label)[0];
    }

    /// Compiles for the context; once per builder.
    MLGraph build(const std::map<std::string, MLOperand>& outputs);

private:
    std::shared_ptr<struct BuilderState> state_;
};

}  // namespace headrace::webnn
