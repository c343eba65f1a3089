#include "headrace/onnx.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <tuple>

#include "arrays.h"
#include "bindings.h"
#include "graph.h"

/// ONNX models as the C++ library reads them.
namespace headrace::python {
namespace {

namespace nb = nanobind;

/// Numbers of dimensions, and lists, which are whole shapes of inputs.
OnnxOptions onnx_options(const nb::dict& dimensions) {
    OnnxOptions options;
    for (const auto& [name, value] : dimensions) {
        const auto key = nb::cast<std::string>(name);
        if (nb::isinstance<nb::list>(value) || nb::isinstance<nb::tuple>(value))
            options.shapes[key] = nb::cast<std::vector<std::int64_t>>(value);
        else
            options.dimensions[key] = nb::cast<std::int64_t>(value);
    }
    return options;
}

SharedGraph read_onnx(nb::handle source, const nb::dict& dimensions) {
    const OnnxOptions options = onnx_options(dimensions);
    if (nb::isinstance<nb::bytes>(source)) {
        const auto bytes = nb::borrow<nb::bytes>(source);
        auto owner = keep_alive(bytes);
        const std::span content(static_cast<const std::byte*>(bytes.data()), bytes.size());
        const nb::gil_scoped_release others_run;
        return {load_onnx(content, std::move(owner), options)};
    }
    const auto path = nb::cast<std::string>(nb::module_::import_("os").attr("fspath")(source));
    const nb::gil_scoped_release others_run;
    return {load_onnx(path, options)};
}

std::vector<std::tuple<std::string, std::string, std::int64_t>> listed_operators() {
    std::vector<std::tuple<std::string, std::string, std::int64_t>> list;
    for (const OnnxOperator& o : onnx_operators()) list.emplace_back(o.domain, o.name, o.since);
    return list;
}

}  // namespace

void bind_onnx(nb::module_& m) {
    m.def("load_onnx", &read_onnx, nb::arg("source"), nb::arg("dimensions") = nb::dict(),
          nb::sig("def load_onnx(source: str | os.PathLike | bytes, dimensions: dict[str, int | list[int]] = "
                  "{}) -> Graph"),
          "Reads an ONNX model without the package onnx. Errors: OSError; ValueError with the node, its "
          "operator,\n"
          "what is in the way and what to do, also for what this reader lacks.");
    m.def("onnx_operators", &listed_operators, nb::sig("def onnx_operators() -> list[tuple[str, str, int]]"),
          "Domain, name and first operator set of each operator that load_onnx() reads.");
}

}  // namespace headrace::python
