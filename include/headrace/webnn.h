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

#include "headrace/graph_writer.h"
#include "headrace/webnn_options.h"

/// The W3C Web Neural Network API (https://www.w3.org/TR/webnn/) in C++, with the specification's names.
///
/// Failures throw headrace::Exception: invalid_argument where the specification throws a TypeError,
/// invalid_state where it throws InvalidStateError, others as their names say.
namespace headrace::webnn {

/// "float32", "float16", "int32", "uint32", "int64", "uint64", "int8", "uint8", "int4", "uint4".
HEADRACE_API std::string_view data_type_name(DType type);
HEADRACE_API DType parse_data_type(std::string_view name);

using MLDimension = Extent;

struct MLOperandDescriptor {
    DType dataType = DType::f32;
    std::vector<MLDimension> shape;
};

using MLOption = Option;
using MLOptions = Options;

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

/// Options of gru, lstm and their cells that are operands; empty ones are left out.
struct MLRecurrentOperands {
    MLOperand bias, recurrentBias, peepholeWeight, initialHiddenState, initialCellState;
};

/// A compiled graph. Thread-safe: concurrent dispatches use sessions of their own.
class HEADRACE_API MLGraph {
public:
    struct State;
    explicit MLGraph(std::shared_ptr<State> state) : state_(std::move(state)) {}
    const std::vector<TensorInfo>& inputs() const;
    const std::vector<TensorInfo>& outputs() const;
    /// Whether a dispatch may give this input although the graph has none of that name: the builder had, and
    /// buildNext() left it out.
    bool mayBeGiven(const std::string& name) const;
    /// Runs on caller memory, in the order of inputs() and outputs().
    void run(std::span<const InputView> inputs, std::span<const OutputView> outputs,
             const RunOptions& options = {}) const;
    /// Statistics of the last dispatch that has ended.
    RunStats runStats() const;
    std::vector<std::vector<std::int64_t>> outputShapes(
        std::span<const std::vector<std::int64_t>> inputs) const;
    std::size_t operandCount() const;  ///< of the graph as built
    std::size_t operationCount() const;
    const Executable& executable() const;
    /// States of the graph; dispatches of a graph that has any take turns, in the order of their calls.
    std::vector<TensorInfo> states() const;
    void readState(const std::string& name, void* data, std::size_t bytes) const;
    void writeState(const std::string& name, const void* data, std::size_t bytes) const;
    void resetStates() const;
    /// Writes the graph as built, with its weights: `.webnn` and `.json` in the format of the WebNN graph
    /// tools, with the weights beside it as MLContext::load finds them; other names as one file of our own.
    /// Quantised: the constant matrices of products as q8_0, where WeightFormat says so (64 KiB or more,
    /// inner extent a multiple of 32); products stay in f32. `.webnn` and `.json` say it in int8 and
    /// dequantizeLinear.
    void save(const std::string& path, bool quantized = false) const;
    std::string print() const;  ///< the optimised graph as text
    void destroy();
    const std::shared_ptr<State>& state() const { return state_; }

private:
    std::shared_ptr<State> state_;
};

struct MLTensorDescriptor {
    DType dataType = DType::f32;
    std::vector<std::int64_t> shape;
    bool readable = false, writable = false;
    bool constant = false;         ///< of createConstantTensor
    bool exportableToGPU = false;  ///< kept for those who ask
};

/// Typed memory that belongs to a context. Where graphs of a device use it, it lies in that device's memory.
class HEADRACE_API MLTensor {
public:
    struct State;
    explicit MLTensor(std::shared_ptr<State> state) : state_(std::move(state)) {}
    DType dataType() const;
    const std::vector<std::int64_t>& shape() const;
    bool readable() const;
    bool writable() const;
    bool exportableToGPU() const;
    bool constant() const;
    std::size_t bytes() const;
    bool destroyed() const;
    void read(void* data, std::size_t bytes) const;  ///< as MLContext::readTensor, without a context
    void destroy();                                  ///< frees the memory; a second call throws invalid_state
    const std::shared_ptr<State>& state() const { return state_; }

private:
    std::shared_ptr<State> state_;
};

/// Extension: what a dispatch reads or writes, a tensor of the context or dense row-major memory of the
/// caller's, which must stay as it is until the call returns.
struct MLBinding {
    MLBinding(MLTensor bound) : tensor(std::move(bound)) {}
    MLBinding(DType type, std::vector<std::int64_t> sizes, void* memory)
        : dataType(type), shape(std::move(sizes)), data(memory) {}
    std::optional<MLTensor> tensor;  ///< else the caller's memory:
    DType dataType = DType::f32;
    std::vector<std::int64_t> shape;
    void* data = nullptr;
};
using MLBindings = std::map<std::string, MLBinding>;

struct MLContextOptions {
    std::string powerPreference = "default";  ///< "default", "high-performance" or "low-power"
    bool accelerated = true;                  ///< true: the best local GPU if there is one
    std::string device;         ///< a device by name, e.g. "rpc://host:port"; overrides accelerated
    int hostTimeoutMs = 60000;  ///< a remote host that is silent for that long is lost; at least 100
    int threads = 0;            ///< 0: headrace::num_threads(); more than there are CPUs counts as those
    /// "as-given", "q8_0" or "q4_0": how graphs store the constant matrices of products (WeightFormat). With
    /// a format that is named here, products round their other operand to 8 bits, too, as ggml's own do.
    /// Empty: q8_0, and products in f32, for the power preference "low-power", else as given. MLGraph::save
    /// then writes the optimised graph.
    std::string weights;
    /// "on", "off" or a folder: where packed weights are kept for later starts
    /// (CompileOptions::packed_cache).
    std::string packedCache;
    /// A hint: "cpu" is what accelerated = false is; "auto", "gpu" and "npu" change nothing.
    std::string deviceType = "auto";
    /// "exact", or "fast": products of f32 may be rounded (headrace::Precision).
    std::string precision = "exact";
};

/// What a context of these options compiles graphs with. Throws for bad ones, and for a device that is not
/// there.
HEADRACE_API CompileOptions compileOptions(const MLContextOptions& options);

class HEADRACE_API MLContext {
public:
    explicit MLContext(const MLContextOptions& options = {});
    bool accelerated() const;  ///< whether graphs of this context really run on a GPU
    const std::string& powerPreference() const;
    const std::string& device() const;
    const MLOpSupportLimits& opSupportLimits() const;

    MLTensor createTensor(const MLTensorDescriptor& descriptor) const;
    /// With a copy of the data, for MLGraphBuilder::constant; neither readable nor writable.
    MLTensor createConstantTensor(const MLTensorDescriptor& descriptor, const void* data,
                                  std::size_t bytes) const;
    void readTensor(const MLTensor& tensor, void* data, std::size_t bytes) const;
    void writeTensor(const MLTensor& tensor, const void* data, std::size_t bytes) const;
    /// Runs the graph; the outputs are complete when it returns. As the specification has it, an output is
    /// neither an input nor another output. Errors come before anything is computed.
    void dispatch(const MLGraph& graph, const std::map<std::string, MLTensor>& inputs,
                  const std::map<std::string, MLTensor>& outputs) const;
    /// Extension: the same with memory of the caller's among the tensors, and with inputs that are outputs,
    /// too. Those have their new content when the call returns; of tensors it is not copied.
    void dispatchBound(const MLGraph& graph, const MLBindings& inputs, const MLBindings& outputs) const;
    /// A graph that MLGraph::save wrote or that is in the WebNN graph tools' format, `.webnn` text or JSON,
    /// compiled for this context. The paths name the weights of the latter if they are not beside it as
    /// `<stem>.manifest.json` and `<stem>.weights`. Weights stay in their file's pages as in load_graph().
    MLGraph load(const std::string& path, const std::string& manifestPath = "",
                 const std::string& weightsPath = "") const;
    /// The same, for any context to run.
    MLGraph loadShared(const std::string& path, const std::string& manifestPath = "",
                       const std::string& weightsPath = "") const;
    const CompileOptions& compileOptions() const;
    /// Every later call on the context or its builders fails with invalid_state; graphs and tensors that
    /// exist live on until they are let go.
    void destroy() const;
    /// Throws invalid_state, naming the call, once the context is destroyed.
    void checkLive(std::string_view call) const;
    /// Throws invalid_argument, naming the call, when the graph belongs to another context.
    void checkGraph(std::string_view call, const MLGraph& graph) const;
    /// Where the context's tensors and its graphs' activations and states come from.
    BufferPool& buffers() const;

private:
    friend class MLGraphBuilder;
    struct State;
    std::shared_ptr<State> state_;
};

/// Calls from several threads take turns.
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
    /// The content of a tensor of createConstantTensor, which is not copied.
    MLOperand constant(const MLTensor& tensor);
    /// A 0-D constant.
    MLOperand constant(DType type, std::variant<std::int64_t, std::uint64_t, double> value);

    /// Extension: a tensor that belongs to the graph and persists between dispatches. It starts as `data`
    /// (copied; `bytes` must be its size), or as zeros when data is null.
    MLOperand state(const std::string& name, const MLOperandDescriptor& descriptor,
                    const void* data = nullptr, std::size_t bytes = 0);
    /// Extension: the state takes the value, or adds the source to its flattened elements from `offset` on,
    /// in place. The result is the state's new version; the old one may not be read afterwards.
    MLOperand assign(const MLOperand& state, const MLOperand& value, const std::string& label = "") {
        return op1("assign", {state, value}, {}, label);
    }
    MLOperand accumulate(const MLOperand& state, const MLOperand& source, std::int64_t offset = 0,
                         const std::string& label = "") {
        return op1("accumulate", {state, source}, {{"offset", offset}}, label);
    }

    /// Any operator by its snake_case name: operands in order (an empty MLOperand leaves an optional one
    /// out).
    std::vector<MLOperand> op(const std::string& name, std::span<const MLOperand> operands,
                              const MLOptions& options = {}, const std::string& label = "");
    MLOperand op1(const std::string& name, std::initializer_list<MLOperand> operands,
                  const MLOptions& options = {}, const std::string& label = "") {
        return op(name, {operands.begin(), operands.size()}, options, label)[0];
    }

    /// The specification's operators by their names. Options are the structs of webnn_options.h, as in
    /// conv2d(x, filter, {}, MLConv2dOptions{.strides = {{2, 2}}, .groups = 4}), or go by the specification's
    /// names, {{"strides", std::vector<std::int64_t>{2, 2}}}; optional operands may be empty.
#include "headrace/webnn_operators.inc"

    /// `operands` are the options that are operands; the cells take no initial states there.
    std::vector<MLOperand> gru(const MLOperand& input, const MLOperand& weight,
                               const MLOperand& recurrentWeight, std::int64_t steps, std::int64_t hiddenSize,
                               const MLRecurrentOperands& operands = {}, const MLOptions& options = {},
                               const std::string& label = "");
    MLOperand gruCell(const MLOperand& input, const MLOperand& weight, const MLOperand& recurrentWeight,
                      const MLOperand& hiddenState, std::int64_t hiddenSize,
                      const MLRecurrentOperands& operands = {}, const MLOptions& options = {},
                      const std::string& label = "");
    std::vector<MLOperand> lstm(const MLOperand& input, const MLOperand& weight,
                                const MLOperand& recurrentWeight, std::int64_t steps, std::int64_t hiddenSize,
                                const MLRecurrentOperands& operands = {}, const MLOptions& options = {},
                                const std::string& label = "");
    std::vector<MLOperand> lstmCell(const MLOperand& input, const MLOperand& weight,
                                    const MLOperand& recurrentWeight, const MLOperand& hiddenState,
                                    const MLOperand& cellState, std::int64_t hiddenSize,
                                    const MLRecurrentOperands& operands = {}, const MLOptions& options = {},
                                    const std::string& label = "");

    /// Compiles for the context; once per builder.
    MLGraph build(const std::map<std::string, MLOperand>& outputs);
    /// Extension: as build(), and the builder goes on. The graph has the part of what was built so far that
    /// its outputs need: other inputs may be given to a dispatch and are not read. Weights are shared by the
    /// graphs, states are not; writing to a state is part of the graph that is built next.
    MLGraph buildNext(const std::map<std::string, MLOperand>& outputs);
    /// Instead of build: the graph itself, for headrace::compile and sessions of one's own.
    std::shared_ptr<const Graph> finish(const std::map<std::string, MLOperand>& outputs);

private:
    Graph graph_of(const std::map<std::string, MLOperand>& outputs) const;
    std::shared_ptr<struct BuilderState> state_;
};

}  // namespace headrace::webnn
