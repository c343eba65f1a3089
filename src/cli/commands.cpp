#include "cli/commands.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <numeric>

#include "cli/graph_source.h"
#include "cli/implementation_status.h"
#include "cli/peer.h"
#include "cli/profile.h"
#include "cli/statistics.h"
#include "cli/svg.h"
#include "engine/executable.h"
#include "engine/tune.h"
#include "remote/link.h"
#include "remote/probe.h"

namespace headrace::cli {
namespace {

/// A session with its operands ready, so that a run is one call.
struct Prepared {
    Executable executable;
    Session session;
    std::vector<Array> inputs, outputs;
    std::vector<InputView> in;
    std::int64_t most_iterations;

    void run(RunOptions options = {}) {
        options.most_iterations = most_iterations;
        session.run(
            in, [this](const auto& shapes) { return memory_for(shapes); }, options);
    }

    /// What the last run had, where the shapes are the same.
    std::vector<OutputView> memory_for(const std::vector<std::vector<std::int64_t>>& shapes) {
        outputs.resize(shapes.size());
        std::vector<OutputView> views;
        for (std::size_t i = 0; i < shapes.size(); ++i) {
            Array& array = outputs[i];
            if (array.shape != shapes[i] || array.bytes.empty()) {
                const DType dtype = executable.outputs()[i].dtype;
                const std::size_t bytes = bytes_of(dtype, ConstView{dtype, shapes[i]}.elements());
                array = {dtype, shapes[i], std::vector<std::byte>(bytes)};
            }
            views.push_back({array.bytes.data(), array.bytes.size()});
        }
        return views;
    }
};

Result<std::unique_ptr<Prepared>> prepare(const Executable& executable, const GraphOptions& options) {
    auto prepared = std::unique_ptr<Prepared>(
        new Prepared{executable, Session(executable), {}, {}, {}, options.most_iterations});
    HR_ASSIGN(prepared->inputs, gather_inputs(executable.inputs(), options.inputs));
    for (const Array& a : prepared->inputs) prepared->in.push_back({a.dtype, a.shape, a.bytes.data()});
    return prepared;
}

Result<std::unique_ptr<Prepared>> prepare(const GraphOptions& options) {
    HR_ASSIGN(const Graph graph, read_graph_or_model(options));
    return prepare(compile(graph, options.compile), options);
}

double to_mib(std::size_t bytes) { return static_cast<double>(bytes) / (1 << 20); }

void print_passes(const CompileStats& stats) {
    std::printf("passes: %ld nodes -> %ld\n", static_cast<long>(stats.nodes_before),
                static_cast<long>(stats.nodes_after));
    for (const PassStats& pass : stats.passes) {
        std::printf("  %-34s %s", pass.name.c_str(), pass.ran ? "" : "off");
        if (pass.ran) std::printf("%7.2f ms", pass.milliseconds);
        for (const auto& [what, count] : pass.counts)
            std::printf("  %s %ld", what.c_str(), static_cast<long>(count));
        std::printf("\n");
    }
}

void print_plan(const RunStats& run, const CompileStats& compile) {
    std::printf("nodes:\n");
    for (const NodeStats& node : run.nodes)
        std::printf("  %-40s %-20s %-10s %10.3f MFLOP %10.3f MB%s\n", node.title.c_str(),
                    node.implementation.c_str(), node.device.c_str(), node.flops / 1e6, node.bytes / 1e6,
                    node.is_tuned ? "  tuned" : "");
    std::printf(
        "memory: weights %.2f MiB (%.2f mapped), packed %.2f MiB (%.2f mapped), activations %.2f MiB (%.2f "
        "without "
        "reuse)\n",
        to_mib(compile.constant_bytes), to_mib(compile.mapped_bytes), to_mib(compile.packed_bytes),
        to_mib(compile.packed_mapped_bytes), to_mib(run.arena_bytes), to_mib(run.naive_bytes));
    std::printf("ggml nodes %d, splits %d\n", run.ggml_nodes, run.splits);
}

Status show_host(const std::string& name) {
    HR_ASSIGN(const remote::Address address, remote::Address::parse(name));
    HR_ASSIGN(const remote::Probe probe, remote::probe(address, remote::Patience().connect));
    for (const remote::Probe::Memory& memory : probe.devices)
        std::printf("%-12s %-6s %12.0f %12.0f  RPC %s, round trip %.2f ms, %.0f MB/s\n",
                    address.name().c_str(), "rpc", to_mib(memory.free), to_mib(memory.total),
                    probe.version.c_str(), probe.round_trip_ms, probe.bytes_per_second / 1e6);
    return success();
}

}  // namespace

Status list_all_devices(const std::vector<std::string>& hosts) {
    std::printf("%-12s %-6s %12s %12s  %s\n", "name", "type", "free MiB", "total MiB", "description");
    for (const DeviceInfo& d : devices())
        std::printf("%-12s %-6s %12.0f %12.0f  %s\n", d.name.c_str(), d.type.c_str(), to_mib(d.memory_free),
                    to_mib(d.memory_total), d.description.c_str());
    Status last = success();
    for (const std::string& name : hosts) {
        Status asked = show_host(name);
        if (!last.ok()) std::fprintf(stderr, "headrace: %s\n", last.error().message.c_str());
        if (!asked.ok()) last = std::move(asked);
    }
    return last;
}

Status list_ops(bool webnn) {
    std::fputs((webnn ? implementation_status() : op_reference()).c_str(), stdout);
    return success();
}

Status run_graph(const RunArguments& options) {
    HR_ASSIGN(auto prepared, prepare(options));
    prepared->run();
    const auto infos = prepared->executable.outputs();
    for (std::size_t i = 0; i < infos.size(); ++i)
        std::printf("%s: %s\n", infos[i].name.c_str(), summarise(prepared->outputs[i]).c_str());
    for (const std::string& argument : options.outputs) {
        const std::size_t equals = argument.find('=');
        const std::string name = argument.substr(0, equals);
        const auto it =
            std::find_if(infos.begin(), infos.end(), [&](const TensorInfo& t) { return t.name == name; });
        if (equals == std::string::npos || it == infos.end())
            return invalid("--output {}: NAME=FILE with the name of an output", argument);
        HR_TRY(write_npy(argument.substr(equals + 1),
                         prepared->outputs[static_cast<std::size_t>(it - infos.begin())]));
    }
    return success();
}

namespace {

Status profile_graph(const BenchOptions& options) {
    HR_ASSIGN(auto prepared, prepare(options));
    for (int i = 0; i < options.warmup; ++i) prepared->run();
    std::vector<RunStats> runs;
    for (int i = 0; i < options.runs; ++i) {
        prepared->run({.profile = true});
        runs.push_back(prepared->session.stats());
    }
    const int threads = runs.front().threads;
    const kernels::MachineLimits limits = kernels::measure_limits(threads);
    std::printf(
        "limits of %d threads: %.0f GFLOP/s in f32, %.1f GB/s read; medians of %d runs, node by node\n",
        threads, limits.gflops, limits.read_gb_per_s, options.runs);
    print_profile(profile_nodes(runs, limits), 40);
    return success();
}

Status tune_graph(const BenchOptions& options) {
    HR_ASSIGN(auto prepared, prepare(options));
    HR_ASSIGN(const Graph graph, read_graph_or_model(options));
    std::vector<OutputView> out;
    prepared->run();
    for (Array& a : prepared->outputs) out.push_back({a.bytes.data(), a.bytes.size()});
    const TuneReport report = tune(graph, options.compile, prepared->in, out);
    std::printf("%10s %10s %6s  %-28s %-28s %s\n", "us before", "after", "nodes", "by rule", "by time",
                "node");
    for (const TunedKind& kind : report.changed)
        std::printf("%10.1f %10.1f %6ld  %-28s %-28s %s\n", kind.before_us, kind.after_us,
                    static_cast<long>(kind.nodes), kind.before.c_str(), kind.after.c_str(),
                    kind.title.c_str());
    std::printf("kinds of nodes measured: %ld, faster otherwise: %zu\n", static_cast<long>(report.measured),
                report.changed.size());
    if (!report.changed.empty())
        std::printf("whole runs: %.4f ms by rule, %.4f by time, which was faster in %ld of %ld rounds\n",
                    report.before_us / 1e3, report.after_us / 1e3, static_cast<long>(report.faster_rounds),
                    static_cast<long>(report.rounds));
    if (report.file.empty())
        std::printf("not kept: whole runs are not faster\n");
    else
        std::printf("kept in %s\n", report.file.c_str());
    return success();
}

}  // namespace

/// An option that only runs without a peer know; "" if none is given.
std::string_view option_without_peer(const BenchOptions& options) {
    const BenchOptions defaults;
    if (options.runs != defaults.runs) return "--runs";
    if (options.warmup != defaults.warmup) return "--warmup";
    if (!options.compile.packed_cache.empty()) return "--packed-cache";
    if (!options.compile.tuning.empty()) return "--tuning";
    return options.compile.disabled_passes.empty() ? "" : "--without-pass";
}

Status bench_graph(const BenchOptions& options) {
    if (options.runs < 1) return invalid("--runs is {}; at least 1", options.runs);
    if (options.rounds < 1) return invalid("--rounds is {}; at least 1", options.rounds);
    if (options.compile.threads < 0)
        return invalid("--threads is {}; at least 0, for all", options.compile.threads);
    if ((options.tune || options.profile) && !options.json.empty())
        return invalid("--json is written of timed runs; not with --tune or --profile");
    if (options.tune && options.profile)
        return invalid("--tune and --profile measure in two ways; choose one");
    if (options.tune) return tune_graph(options);
    if (options.profile) return profile_graph(options);
    const std::string_view alone = option_without_peer(options);
    if (!alone.empty() && options.peer == "onnxruntime")
        return invalid("{} is for runs without a peer; give it with --peer none", alone);
    if (!alone.empty() && options.peer == "auto")
        std::fprintf(stderr, "no comparison: %s is for runs without a peer\n", alone.data());
    if (options.peer != "none" && alone.empty()) {
        HR_ASSIGN(const bool is_compared, compare_with_peer(options));
        if (is_compared) return success();
        if (options.peer != "auto") return unsupported("there is nothing to compare with");
    }
    HR_ASSIGN(auto prepared, prepare(options));
    for (int i = 0; i < options.warmup; ++i) prepared->run();
    std::vector<double> ms;
    for (int i = 0; i < options.runs; ++i) {
        const auto start = std::chrono::steady_clock::now();
        prepared->run();
        ms.push_back(
            std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count());
    }
    const double typical = median(ms), least = *std::min_element(ms.begin(), ms.end());
    const RunStats stats = prepared->session.stats();
    const double flops = std::accumulate(stats.nodes.begin(), stats.nodes.end(), 0.0,
                                         [](double sum, const NodeStats& n) { return sum + n.flops; });
    std::printf("median %.4f ms  min %.4f  max %.4f  (%d runs, %d threads)  %.2f GFLOP/s\n", typical, least,
                *std::max_element(ms.begin(), ms.end()), options.runs, stats.threads, flops / typical / 1e6);
    if (options.json.empty()) return success();
    std::ofstream file(options.json);
    file << fmt::format(
        "{{\"graph\": {}, \"median_ms\": {}, \"min_ms\": {}, \"runs\": {}, \"threads\": {}}}\n",
        nlohmann::json(options.graph).dump(), typical, least, options.runs, stats.threads);
    if (!file.flush()) return failure(Code::io, "cannot write '{}'", options.json);
    return success();
}

Status convert_model(const ConvertOptions& options) {
    if (!is_onnx_file(options.graph))
        return invalid("'{}': convert reads ONNX models, whose names end in .onnx", options.graph);
    HR_ASSIGN(const Graph graph, read_graph_or_model(options));
    HR_TRY(webnn::write_graph_file(graph, options.output));
    std::error_code error;
    const auto size = std::filesystem::file_size(options.output, error);
    std::printf("%s: %.1f MB\n", options.output.c_str(), static_cast<double>(size) / 1e6);
    return success();
}

Status inspect_graph(const InspectOptions& options) {
    HR_ASSIGN(const Graph graph, read_graph_or_model(options));
    if (options.before) std::printf("%s\n", print_graph(graph).c_str());
    const Executable executable = compile(graph, options.compile);
    std::printf("%s\n", print_graph(executable.graph()).c_str());
    print_passes(executable.stats());
    HR_ASSIGN(auto prepared, prepare(executable, options));
    Session& session = prepared->session;
    if (executable.impl()->stages.empty()) {  // plans and allocates without running
        std::vector<std::vector<std::int64_t>> shapes;
        for (const Array& a : prepared->inputs) shapes.push_back(a.shape);
        session.output_shapes(shapes);
    } else {
        prepared->run();
    }
    print_plan(session.stats(), executable.stats());
    if (options.svg.empty()) return success();
    std::ofstream file(options.svg);
    file << to_svg(executable.graph(), session.stats().nodes);
    if (!file.flush()) return failure(Code::io, "cannot write '{}'", options.svg);
    return success();
}

}  // namespace headrace::cli
