#include <nanobind/nanobind.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <string>

#include "arrays.h"
#include "bindings.h"
#include "graph.h"
#include "headrace/option_names.h"
#include "headrace/webnn.h"
#include "options.h"
#include "stats.h"

/// headrace.compile and what it returns.
namespace headrace::python {

Precision to_precision(const std::string& name) {
    if (const auto precision = find_precision(name)) return *precision;
    throw nb::value_error(("precision '" + name + "' is none of exact, fast").c_str());
}

namespace {

/// Numbers, and the names of extents that are known only at run time.
nb::list shape_list(const TensorInfo& info) {
    nb::list list;
    for (std::size_t i = 0; i < info.shape.size(); ++i) {
        if (info.shape[i] < 0)
            list.append(info.dimension_names[i]);
        else
            list.append(info.shape[i]);
    }
    return list;
}

std::string representation(const TensorInfo& info) {
    std::string shape;
    for (std::size_t i = 0; i < info.shape.size(); ++i)
        shape +=
            (i ? ", " : "") + (info.shape[i] < 0 ? info.dimension_names[i] : std::to_string(info.shape[i]));
    const auto dtype = nb::cast<std::string>(numpy_dtype(info.dtype).attr("name"));
    return "TensorInfo(" + info.name + ": " + dtype + "[" + shape + "])";
}

WeightFormat weight_format(const std::string& name) {
    if (const auto format = find_weight_format(name)) return *format;
    throw nb::value_error(("weights '" + name + "' is none of as-given, q8_0, q4_0").c_str());
}

MemoryUse memory_use(const std::string& name) {
    if (const auto use = find_memory_use(name)) return *use;
    throw nb::value_error(("memory '" + name + "' is none of normal, low").c_str());
}

Executable compile_source(nb::handle source, const std::string& device, int host_timeout_ms, int threads,
                          const std::string& weights, bool round_activations, const std::string& memory,
                          const std::string& precision, const std::string& packed_cache,
                          const std::string& tuning, const std::vector<std::string>& disabled_passes,
                          bool packed_kernels, bool native_ops, bool verify_passes, std::size_t cache_bytes,
                          std::shared_ptr<BufferPool> buffers) {
    const CompileOptions options{.device = device,
                                 .host_timeout_ms = host_timeout_ms,
                                 .threads = threads,
                                 .disabled_passes = disabled_passes,
                                 .packed_kernels = packed_kernels,
                                 .memory = memory_use(memory),
                                 .precision = to_precision(precision),
                                 .packed_cache = packed_cache,
                                 .tuning = tuning,
                                 .native_ops = native_ops,
                                 .weights = weight_format(weights),
                                 .round_activations = round_activations,
                                 .verify_passes = verify_passes,
                                 .cache_bytes = cache_bytes,
                                 .buffers = std::move(buffers)};
    const SharedGraph graph = graph_from(source);
    const nb::gil_scoped_release others_run;
    return compile(*graph.graph, options);
}

/// Those of compile() that WebNN's hints decide.
nb::dict hinted_options(const std::string& power_preference, bool accelerated, const std::string& device_type,
                        const std::string& device, int host_timeout_ms, const std::string& weights) {
    CompileOptions options;
    {
        const nb::gil_scoped_release others_run;  // a remote device may take its time
        options = webnn::compileOptions({.powerPreference = power_preference,
                                         .accelerated = accelerated,
                                         .device = device,
                                         .hostTimeoutMs = host_timeout_ms,
                                         .weights = weights,
                                         .deviceType = device_type});
    }
    nb::dict result;
    result["device"] = options.device;
    result["weights"] = std::string(name_of(options.weights));
    result["round_activations"] = options.round_activations;
    return result;
}

constexpr const char* kCompileSignature =
    "def compile(graph: Graph | bytes | str | os.PathLike, *, device: str = 'cpu', "
    "host_timeout_ms: int = 60000, threads: int = 0, weights: str = 'as-given', "
    "round_activations: bool = True, memory: str = 'normal', precision: str = 'exact', "
    "packed_cache: str = '', tuning: str = '', "
    "disabled_passes: collections.abc.Sequence[str] = (), packed_kernels: bool = True, "
    "native_ops: bool = True, verify_passes: bool = False, cache_bytes: int = 268435456, "
    "buffers: BufferPool | None = None) -> Executable";

constexpr const char* kCompileDoc = R"(Compiles a graph for a device.

graph: a Graph, or a graph file's bytes or path. device: "cpu", "auto" (the best GPU, else the CPU), a name of
devices(), or "rpc://host:port,..."; a remote host that is silent for host_timeout_ms is lost. threads: 0 means
num_threads() at each run. weights: how constant matrices of products are stored, "as-given", "q8_0" or "q4_0"
(blocks of 32); with the latter, round_activations lets products round their other operand to 8 bits, too.
memory: "low" does without forms of weights that take more than these, which makes some convolutions slower.
precision: "fast" lets products of f32 be rounded where that is faster: CPUs that multiply bf16 round to three
digits what they multiply, other devices multiply in their own way; stats["is_fast"] says whether it is.
packed_cache, tuning: where packed weights and measured choices are kept: "on", "off" or a folder; "" means what
HEADRACE_PACKED_CACHE and HEADRACE_TUNING say. disabled_passes: names as in Executable.stats. packed_kernels,
native_ops: whether Headrace's kernels and ggml's ops are used; else reference kernels. verify_passes: verify the
graph after every pass. cache_bytes: what plans for other input shapes than the latest may take. buffers: where
activations and states come from; None: a pool of the executable's own.

Errors: ValueError for a bad graph, option or device; OSError; MemoryError; RuntimeError of the device.)";

void bind_tensor_info(nb::module_& m) {
    nb::class_<TensorInfo>(m, "TensorInfo", "A named input, output or state.")
        .def_ro("name", &TensorInfo::name)
        .def_prop_ro(
            "dtype", [](const TensorInfo& info) { return numpy_dtype(info.dtype); },
            nb::sig("def dtype(self) -> numpy.dtype"), "Of NumPy, or of ml_dtypes for bfloat16 and 4 bits.")
        .def_prop_ro("shape", &shape_list, nb::sig("def shape(self) -> list[int | str]"),
                     "Extents; a name is an extent that is known only at run time.")
        .def("__repr__", &representation);
    nb::class_<BufferPool>(
        m, "BufferPool",
        "Keeps freed memory for the next request of its size, or somewhat less; thread-safe.")
        .def(
            nb::init<int, std::size_t>(), nb::arg("per_size") = 16,
            nb::arg("max_idle_bytes") = std::size_t{256} << 20,
            "per_size, max_idle_bytes: the most idle buffers of one size, and bytes together, that are kept.")
        .def_prop_ro(
            "stats", [](const BufferPool& pool) { return to_dict(pool.stats()); },
            "What it did and holds: a dict of BufferStats' members.")
        .def("reset", &BufferPool::reset, "Frees what is idle.");
}

}  // namespace

void bind_executable(nb::module_& m) {
    bind_tensor_info(m);
    nb::class_<Executable>(m, "Executable",
                           "A compiled graph: immutable, shared by any number of sessions and threads.")
        .def_prop_ro("inputs", &Executable::inputs)
        .def_prop_ro("outputs", &Executable::outputs)
        .def_prop_ro("states", &Executable::states)
        .def_prop_ro(
            "stats", [](const Executable& e) { return to_dict(e.stats()); },
            "What compiling did: a dict of CompileStats' members.")
        .def_prop_ro("buffers", &Executable::buffers, nb::rv_policy::reference_internal,
                     "Where activations and states come from.")
        .def_prop_ro(
            "graph",
            [](const Executable& e) {
                return SharedGraph{std::shared_ptr<const Graph>(e.impl(), &e.graph())};
            },
            "The graph after all passes.");
    m.def("compile", &compile_source, nb::arg("graph"), nb::kw_only(), nb::arg("device") = "cpu",
          nb::arg("host_timeout_ms") = 60000, nb::arg("threads") = 0, nb::arg("weights") = "as-given",
          nb::arg("round_activations") = true, nb::arg("memory") = "normal", nb::arg("precision") = "exact",
          nb::arg("packed_cache") = "", nb::arg("tuning") = "", nb::arg("disabled_passes") = nb::make_tuple(),
          nb::arg("packed_kernels") = true, nb::arg("native_ops") = true, nb::arg("verify_passes") = false,
          nb::arg("cache_bytes") = std::size_t{256} << 20, nb::arg("buffers") = nb::none(),
          nb::sig(kCompileSignature), kCompileDoc);
    m.def("hinted_options", &hinted_options, nb::kw_only(), nb::arg("power_preference"),
          nb::arg("accelerated"), nb::arg("device_type"), nb::arg("device"), nb::arg("host_timeout_ms"),
          nb::arg("weights"),
          "Options of compile() as a WebNN context has them. Errors: ValueError for a bad hint, or a device "
          "that is not there; RuntimeError of the device.");
    bind_run_tensor(m);
    bind_session(m);
}

}  // namespace headrace::python
