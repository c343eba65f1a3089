#include "stats.h"

#include <nanobind/stl/string.h>

namespace headrace::python {
namespace {

nb::dict to_dict(const NodeStats& n) {
    nb::dict node;
    node["title"] = n.title;
    node["label"] = n.label;
    node["implementation"] = n.implementation;
    node["device"] = n.device;
    node["is_tuned"] = n.is_tuned;
    node["flops"] = n.flops;
    node["bytes"] = n.bytes;
    node["start_us"] = n.start_us;
    node["duration_us"] = n.duration_us;
    return node;
}

}  // namespace

nb::dict to_dict(const BufferStats& s) {
    nb::dict dict;
    dict["requests"] = s.requests;
    dict["allocations"] = s.allocations;
    dict["reuses"] = s.reuses;
    dict["allocated_bytes"] = s.allocated_bytes;
    dict["idle_buffers"] = s.idle_buffers;
    dict["idle_bytes"] = s.idle_bytes;
    dict["live_bytes"] = s.live_bytes;
    dict["peak_bytes"] = s.peak_bytes;
    return dict;
}

nb::dict to_dict(const RunStats& s) {
    nb::dict dict;
    dict["ggml_nodes"] = s.ggml_nodes;
    dict["splits"] = s.splits;
    dict["threads"] = s.threads;
    dict["arena_bytes"] = s.arena_bytes;
    dict["naive_buffers"] = s.naive_buffers;
    dict["naive_bytes"] = s.naive_bytes;
    dict["inputs_bound"] = s.inputs_bound;
    dict["inputs_copied"] = s.inputs_copied;
    dict["outputs_bound"] = s.outputs_bound;
    dict["outputs_copied"] = s.outputs_copied;
    dict["copies"] = s.copies;
    dict["copied_bytes"] = s.copied_bytes;
    dict["iterations"] = s.iterations;
    nb::list nodes;
    for (const NodeStats& n : s.nodes) nodes.append(to_dict(n));
    dict["nodes"] = nodes;
    return dict;
}

nb::dict to_dict(const CompileStats& s) {
    nb::dict dict;
    dict["passes"] = to_list(s.passes);
    dict["nodes_before"] = s.nodes_before;
    dict["nodes_after"] = s.nodes_after;
    dict["constant_bytes"] = s.constant_bytes;
    dict["mapped_bytes"] = s.mapped_bytes;
    dict["packed_bytes"] = s.packed_bytes;
    dict["packed_mapped_bytes"] = s.packed_mapped_bytes;
    dict["transformed_bytes"] = s.transformed_bytes;
    dict["plans"] = s.plans;
    dict["cached_plans"] = s.cached_plans;
    dict["is_fast"] = s.is_fast;
    return dict;
}

nb::list to_list(const std::vector<PassStats>& passes) {
    nb::list list;
    for (const PassStats& p : passes) {
        nb::dict counts, pass;
        for (const auto& [name, count] : p.counts) counts[name.c_str()] = count;
        pass["name"] = p.name;
        pass["ran"] = p.ran;
        pass["milliseconds"] = p.milliseconds;
        pass["counts"] = counts;
        list.append(pass);
    }
    return list;
}

nb::dict buffer_stats(const webnn::MLContext& context) { return to_dict(context.buffers().stats()); }
nb::dict run_stats(const webnn::MLGraph& graph) { return to_dict(graph.runStats()); }
nb::list pass_stats(const webnn::MLGraph& graph) { return to_list(graph.executable().stats().passes); }

}  // namespace headrace::python
