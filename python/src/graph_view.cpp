#include "headrace/graph_view.h"

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "bindings.h"
#include "graph.h"

/// A graph, read-only: for the ONNX export and WebNN's debugging calls.
namespace headrace::python {
namespace {

namespace nb = nanobind;
using namespace webnn;

constexpr const char* kKinds[] = {"input", "constant", "state", "result"};

/// Integers for fixed extents, (name, largest) for dynamic ones.
nb::list dimensions(const std::vector<MLDimension>& shape) {
    nb::list list;
    for (const MLDimension& d : shape) {
        if (d.is_open())
            list.append(nb::make_tuple(d.str(), d.most()));
        else
            list.append(*d.number());
    }
    return list;
}

struct ToPython {
    nb::object operator()(const std::vector<MLDimension>& shape) const { return dimensions(shape); }
    nb::object operator()(const std::shared_ptr<const Graph>& body) const {
        return nb::cast(SharedGraph{body});
    }
    nb::object operator()(DType type) const { return nb::cast(std::string(data_type_name(type))); }
    template <class T>
    nb::object operator()(const T& value) const {
        return nb::cast(value);
    }
};

nb::dict attributes(const MLNodeView& node) {
    nb::dict dict;
    for (const auto& [name, value] : node.attributes) dict[name.c_str()] = std::visit(ToPython{}, value);
    return dict;
}

/// None stands for an absent optional operand.
nb::list operands(const MLNodeView& node) {
    nb::list list;
    for (std::int32_t id : node.inputs) list.append(id < 0 ? nb::none() : nb::object(nb::int_(id)));
    return list;
}

/// A constant's packed bytes where they are, as a read-only uint8 array; None for other values.
nb::object bytes(const MLValueView& value) {
    if (!value.owner) return nb::none();
    auto* owner = new std::shared_ptr<const void>(value.owner);
    const nb::capsule keeper(owner,
                             [](void* p) noexcept { delete static_cast<std::shared_ptr<const void>*>(p); });
    return nb::cast(
        nb::ndarray<nb::numpy, const std::uint8_t>(value.bytes.data(), {value.bytes.size()}, keeper));
}

}  // namespace

void bind_graph_view(nb::module_& m) {
    nb::class_<MLValueView>(m, "ValueView", "An operand of a graph: read-only.")
        .def_prop_ro("kind", [](const MLValueView& v) { return kKinds[static_cast<int>(v.kind)]; })
        .def_prop_ro("data_type",
                     [](const MLValueView& v) { return std::string(data_type_name(v.dataType)); })
        .def_prop_ro("shape", [](const MLValueView& v) { return dimensions(v.shape); })
        .def_ro("name", &MLValueView::name)
        .def_prop_ro("bytes", &bytes, "A constant's packed bytes where they are, else None.");
    nb::class_<MLNodeView>(m, "NodeView", "An operation of a graph: read-only.")
        .def_ro("op", &MLNodeView::op)
        .def_ro("label", &MLNodeView::label)
        .def_prop_ro("attributes", &attributes)
        .def_prop_ro("inputs", &operands)
        .def_ro("outputs", &MLNodeView::outputs);
    nb::class_<MLGraphView>(m, "GraphView", "A graph as it was built: read-only.")
        .def_ro("values", &MLGraphView::values)
        .def_ro("nodes", &MLGraphView::nodes)
        .def_ro("inputs", &MLGraphView::inputs)
        .def_ro("outputs", &MLGraphView::outputs);
    m.def("view", nb::overload_cast<const MLGraph&>(&view), nb::arg("graph"), "The graph as it was built.");
    m.def(
        "view", [](const SharedGraph& graph) { return view(graph.graph); }, nb::arg("graph"));
}

}  // namespace headrace::python
