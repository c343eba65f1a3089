#pragma once
#include <nanobind/nanobind.h>

#include <memory>

#include "headrace/headrace.h"

namespace headrace::python {

/// headrace.Graph: the native type is opaque to the binding.
struct SharedGraph {
    std::shared_ptr<const Graph> graph;
};

/// What compile() takes: a Graph, the bytes of a graph file, or its path. TypeError for anything else.
SharedGraph graph_from(nanobind::handle source);

}  // namespace headrace::python
