#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "headrace/buffer_pool.h"
#include "headrace/dtype.h"
#include "headrace/error.h"
#include "headrace/export.h"

/// Headrace's C++ API: load or build a graph, compile it for a device, run it in sessions.
/// Every function throws headrace::Exception on failure.
namespace headrace {

class Graph;         ///< opaque here; built by a door (headrace/webnn.h) or loaded from a file
class TensorMemory;  ///< opaque: of a Tensor (headrace/tensor.h)

/// Weights stay in the file's pages, which are read when used: the file must not be shortened meanwhile (the
/// system would end the process). Replacing it by a new file is safe.
HEADRACE_API std::shared_ptr<const Graph> load_graph(const std::string& path);
HEADRACE_API void save_graph(const Graph& graph, const std::string& path);
HEADRACE_API std::string print_graph(const Graph& graph);
/// Every op with its operands, attributes and implementations, as Markdown.
HEADRACE_API std::string op_reference();

/// One device that ggml can run on, found at run time.
struct DeviceInfo {
    std::string name;  ///< what CompileOptions::device takes, e.g. "CPU", "CUDA0"
    std::string description;
    std::string type;                               ///< "cpu", "gpu", "igpu", "accel" or "rpc"
    std::size_t memory_free = 0, memory_total = 0;  ///< bytes
};
HEADRACE_API std::vector<DeviceInfo> devices();

/// Does at once what the first graph otherwise waits for: a millisecond of ggml's, once in a process.
HEADRACE_API void warm_up();

/// Threads that runs use unless CompileOptions says otherwise; at first the number of CPUs.
HEADRACE_API void set_num_threads(int threads);
HEADRACE_API int num_threads();

/// How constant f32 matrices of products are stored.
enum class WeightFormat : std::uint8_t {
    as_given,
    q8_0,  ///< 8 bits and a scale for 32: about 3.8 times smaller
    q4_0,  ///< 4 bits and a scale for 32: about 7.1 times smaller
};

/// What weights may take beside what they are.
enum class MemoryUse : std::uint8_t {
    normal,  ///< windows of 3 x 3 may have transformed filters, which take 1.8 times the plain ones
    low,     ///< none has: such convolutions take up to twice the time
};

/// How products of f32 are computed.
enum class Precision : std::uint8_t {
    exact,  ///< in f32
    /// As the machine is fastest: CPUs that multiply bf16 round factors to that, to three digits, and sum in
    /// f32; devices multiply in their own way, maybe f16 (infinite beyond 65,504) or TF32. Where nothing is
    /// faster, a line on standard error says so, and it is as exact.
    fast,
};

struct CompileOptions {
    /// "cpu", a name from devices(), or "rpc://host:port,rpc://..."; what it lacks runs on the CPU.
    std::string device = "cpu";
    int host_timeout_ms = 60000;  ///< a remote host that is silent for that long is lost; at least 100
    int threads = 0;              ///< 0: num_threads() at each run
    std::vector<std::string> disabled_passes;  ///< names as in Stats::passes
    bool packed_kernels = true;                ///< use Headrace's own CPU kernels where they apply
    MemoryUse memory = MemoryUse::normal;
    Precision precision = Precision::exact;
    /// Where packed weights are kept, so that later starts map them in place of packing: "on"
    /// (~/.cache/headrace/packed), a folder, or "off". Empty: what HEADRACE_PACKED_CACHE says, else off.
    std::string packed_cache;
    /// Where the choices are that `headrace bench --tune` measured, per machine: "on"
    /// (~/.cache/headrace/tuned), a folder, or "off". Empty: what HEADRACE_TUNING says, else on.
    std::string tuning;
    bool native_ops = true;  ///< use ggml's own ops where they apply; else reference kernels
    /// How matrices are stored whose inner extent is a multiple of 32 and that take 64 KiB or more; results
    /// change within the format's rounding.
    WeightFormat weights = WeightFormat::as_given;
    /// With such weights: whether products may round their other operand, too, 32 elements to 8 bits and a
    /// scale, as ggml's own do. It is several times as fast; else products are computed in f32.
    bool round_activations = true;
    bool verify_passes = false;  ///< verify the graph after every pass
    /// What plans for input shapes other than the latest may take, and likewise the graph instances of each
    /// session; the least recently used go first.
    std::size_t cache_bytes = std::size_t{256} << 20;
    /// Where activations and states come from; null: a pool of the executable's own. Compiling resets it.
    std::shared_ptr<BufferPool> buffers;
};

/// Options of one run.
struct RunOptions {
    /// Take activations from the executable's pool and give them back; else from the system, and back to it.
    bool reuse_buffers = true;
    /// Run and time one node after the other, which takes longer; RunStats has the times.
    bool profile = false;
    /// 0: as many as CompileOptions says. Runs on one thread do not wait for those of other sessions.
    int threads = 0;
    /// The most iterations of all loops of the run together: a loop that would go on after that is an error.
    std::int64_t most_iterations = 10'000'000;
    /// Asked by the thread that runs: before it, between its nodes and in long ones; on devices other than
    /// the CPU between iterations alone. True ends the run with Code::cancelled.
    std::function<bool()> should_stop = {};
};

/// A named operand or result of a graph; -1 stands for an extent that is known only at run time.
struct TensorInfo {
    std::string name;
    DType dtype = DType::f32;
    std::vector<std::int64_t> shape;
    std::vector<std::string> dimension_names;  ///< the symbol of each unknown extent, else ""
};

struct PassStats {
    std::string name;
    bool ran = false;
    double milliseconds = 0;
    std::map<std::string, std::int64_t> counts;
};

/// How one node runs: for `headrace inspect` and tests.
struct NodeStats {
    std::string title;           ///< op and label
    std::string label;           ///< what the graph's maker called it; may be empty
    std::string implementation;  ///< "ggml", "reference" or the kernel's name
    std::string device;
    bool is_tuned = false;  ///< measured by `headrace bench --tune`; else by rule
    double flops = 0, bytes = 0;
    double start_us = 0, duration_us = 0;  ///< in the last run that was profiled, from that run's start
};

struct CompileStats {
    std::vector<PassStats> passes;
    std::int64_t nodes_before = 0, nodes_after = 0;
    std::size_t constant_bytes = 0;       ///< plain weights of the optimised graph
    std::size_t mapped_bytes = 0;         ///< of those, pages of a file that were not copied
    std::size_t packed_bytes = 0;         ///< weights packed for kernels so far
    std::size_t packed_mapped_bytes = 0;  ///< of those, pages of the cache's file, shared by processes
    std::size_t transformed_bytes = 0;    ///< of packed_bytes, what MemoryUse::low does without
    std::int64_t plans = 0;               ///< shape keys planned so far
    std::int64_t cached_plans = 0;        ///< of those, kept now
    bool is_fast = false;                 ///< Precision::fast was asked for, and the device is faster by it
};

/// Statistics of the plan that a session ran last.
struct RunStats {
    std::vector<NodeStats> nodes;
    int ggml_nodes = 0;
    int splits = 1;  ///< parts the scheduler cut the graph into; 1 on the CPU
    int threads = 1;
    std::size_t arena_bytes = 0;                       ///< activations, as planned by liveness
    std::int64_t naive_buffers = 0;                    ///< activations, each with memory of its own
    std::size_t naive_bytes = 0;                       ///< activations, if each had memory of its own
    std::int64_t inputs_bound = 0, inputs_copied = 0;  ///< of the last run
    std::int64_t outputs_bound = 0, outputs_copied = 0;
    /// Inputs, outputs and states that the last run copied, and what went between the devices of its graph.
    std::int64_t copies = 0;
    std::size_t copied_bytes = 0;
    std::int64_t iterations = 0;  ///< of all loops, in the last run
};

/// A compiled graph: immutable, shared by any number of sessions and threads.
class HEADRACE_API Executable {
public:
    struct Impl;
    explicit Executable(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}

    std::vector<TensorInfo> inputs() const;
    std::vector<TensorInfo> outputs() const;
    std::vector<TensorInfo> states() const;
    CompileStats stats() const;
    BufferPool& buffers() const;
    /// The graph after all passes.
    const Graph& graph() const;
    const std::shared_ptr<Impl>& impl() const { return impl_; }

private:
    std::shared_ptr<Impl> impl_;
};

HEADRACE_API Executable compile(const Graph& graph, const CompileOptions& options = {});

/// Caller's memory of one input: dense, row-major; Tensor::input() makes one of a tensor.
struct InputView {
    DType dtype = DType::f32;
    std::span<const std::int64_t> shape;
    const void* data = nullptr;
    TensorMemory* memory = nullptr;  ///< of a tensor, which may have its content on a device: not in `data`
};
/// Caller's memory for one output; `bytes` must be the output's size for the inputs given.
struct OutputView {
    void* data = nullptr;
    std::size_t bytes = 0;
    TensorMemory* memory = nullptr;  ///< of a tensor, which may be written on a device in place of `data`
};

/// One stream of runs of an executable: owns activations and states. Not for two threads at once.
class HEADRACE_API Session {
public:
    /// States that one of `sharing` has, too (the same name and type), are shared with it. Sessions that
    /// share a state must not run at the same time; the state lives as long as any of them.
    explicit Session(const Executable& executable, std::span<const Session* const> sharing = {});
    ~Session();
    Session(Session&&) noexcept;
    Session& operator=(Session&&) noexcept;

    /// Shapes that the outputs will have for these input shapes (both in graph order). Throws for outputs
    /// with extents that a run counts.
    std::vector<std::vector<std::int64_t>> output_shapes(
        std::span<const std::vector<std::int64_t>> input_shapes);
    /// Runs synchronously; inputs and outputs in graph order. Reads and writes caller memory without copies
    /// where its alignment allows. An output may lie where an input does: it is computed elsewhere and copied
    /// when all have been read. Outputs may not overlap each other.
    void run(std::span<const InputView> inputs, std::span<const OutputView> outputs,
             const RunOptions& options = {});
    /// Makes the outputs' memory when their shapes are known (both in graph order): once, while run() works.
    using MakeOutputs =
        std::function<std::vector<OutputView>(const std::vector<std::vector<std::int64_t>>& shapes)>;
    void run(std::span<const InputView> inputs, const MakeOutputs& make_outputs,
             const RunOptions& options = {});

    /// Copies a state out or in; bytes must be the state's size.
    void read_state(const std::string& name, void* data, std::size_t bytes) const;
    void write_state(const std::string& name, const void* data, std::size_t bytes);
    /// All states back to their initial values.
    void reset_states();
    RunStats stats() const;

private:
    struct Impl;
    friend class StagedRun;
    std::int64_t iterations() const;
    std::unique_ptr<Impl> impl_;
};

}  // namespace headrace
