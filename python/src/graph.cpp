#include "graph.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <optional>
#include <string>

#include "arrays.h"
#include "bindings.h"
#include "headrace/graph_files.h"
#include "headrace/graph_writer.h"

/// Graphs that are not compiled: from files and bytes, and to them.
namespace headrace::python {
namespace {

std::string path_text(nb::handle path) {
    return nb::cast<std::string>(nb::module_::import_("os").attr("fspath")(path));
}

SharedGraph load_graph(nb::handle path, const std::optional<std::string>& manifest,
                       const std::optional<std::string>& weights) {
    const std::string name = path_text(path);
    const nb::gil_scoped_release others_run;
    return {webnn::load_graph_file(name, manifest.value_or(""), weights.value_or(""))};
}

void save_graph(const SharedGraph& graph, nb::handle path) {
    const std::string name = path_text(path);
    const nb::gil_scoped_release others_run;
    webnn::save_graph_file(*graph.graph, name);
}

/// The bytes stay where they are, and the graph keeps them.
SharedGraph from_bytes(const nb::bytes& data) {
    auto owner = keep_alive(data);
    const std::span content(static_cast<const std::byte*>(data.data()), data.size());
    const nb::gil_scoped_release others_run;
    return {graph_from_memory(content, std::move(owner), nullptr)};
}

nb::bytes to_bytes(const SharedGraph& graph) {
    const auto bytes = graph_to_bytes(*graph.graph);
    return nb::bytes(bytes.data(), bytes.size());
}

}  // namespace

SharedGraph graph_from(nb::handle source) {
    SharedGraph graph;
    if (nb::try_cast(source, graph)) return graph;
    if (nb::isinstance<nb::bytes>(source)) return from_bytes(nb::borrow<nb::bytes>(source));
    if (PyObject_CheckBuffer(source.ptr())) return from_bytes(nb::bytes(source));
    if (nb::isinstance<nb::str>(source) || nb::hasattr(source, "__fspath__"))
        return load_graph(source, std::nullopt, std::nullopt);
    const auto type = nb::cast<std::string>(source.type().attr("__name__"));
    throw nb::type_error(("compile: graph is of the type " + type +
                          "; it must be a Graph, the bytes of a graph file or its path")
                             .c_str());
}

void bind_graphs(nb::module_& m) {
    nb::class_<SharedGraph>(m, "Graph",
                            "A model as it was built or read, before it is compiled. Never changes.")
        .def("__str__", [](const SharedGraph& g) { return print_graph(*g.graph); });
    m.def("load_graph", &load_graph, nb::arg("path"), nb::arg("manifest_path") = nb::none(),
          nb::arg("weights_path") = nb::none(),
          nb::sig("def load_graph(path: str | os.PathLike, manifest_path: str | None = None, "
                  "weights_path: str | None = None) -> Graph"),
          "Reads a graph file: our own, .webnn or .json. The other paths name the weights of the latter, if\n"
          "they are not beside it. Weights stay in their file's pages. Errors: OSError; ValueError for\n"
          "what is no graph file.");
    m.def("save_graph", &save_graph, nb::arg("graph"), nb::arg("path"),
          nb::sig("def save_graph(graph: Graph, path: str | os.PathLike) -> None"),
          "Writes a graph file; the extension chooses the form. Errors: OSError; ValueError for what .webnn\n"
          "and .json cannot say.");
    m.def(
        "print_graph", [](const SharedGraph& g) { return print_graph(*g.graph); }, nb::arg("graph"),
        "The graph as text.");
    m.def("graph_to_bytes", &to_bytes, nb::arg("graph"),
          "The graph as a file's content, without the constants that have a key.");
    m.def("graph_from_memory", &from_bytes, nb::arg("data"),
          "Reads what graph_to_bytes() gave, in place. Errors: ValueError when it is damaged.");
}

}  // namespace headrace::python
