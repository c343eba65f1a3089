#include "stats.h"

#include <nanobind/stl/string.h>

namespace headrace::python {

nb::dict buffer_stats(const webnn::MLContext& context) {
    const BufferStats s = context.buffers().stats();
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

nb::dict run_stats(const webnn::MLGraph& graph) {
    const RunStats s = graph.runStats();
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
    nb::list nodes;
    for (const NodeStats& n : s.nodes) {
        nb::dict node;
        node["title"] = n.title;
        node["implementation"] = n.implementation;
        node["device"] = n.device;
        node["flops"] = n.flops;
        node["bytes"] = n.bytes;
        nodes.append(node);
    }
    dict["nodes"] = nodes;
    return dict;
}

nb::list pass_stats(const webnn::MLGraph& graph) {
    nb::list list;
    for (const PassStats& p : graph.executable().stats().passes) {
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

}  // namespace headrace::python
