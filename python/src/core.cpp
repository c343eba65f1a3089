#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "argument_errors.h"
#include "bindings.h"
#include "headrace/headrace.h"

namespace nb = nanobind;
using namespace headrace;

namespace {

/// headrace.UnsupportedError, a ValueError: a build or a device cannot do this. The module keeps it.
PyObject* unsupported_error = nullptr;

constexpr const char* kUnsupportedErrorDoc =
    "The request is valid, and this build or device cannot do it: another device, dtype or form may, as the "
    "message says. It is a ValueError; of language models a LanguageModelError, too.";

PyObject* python_exception(Code code) {
    switch (code) {
        case Code::invalid_argument: return PyExc_ValueError;
        case Code::unsupported: return unsupported_error;
        case Code::out_of_memory: return PyExc_MemoryError;
        case Code::io: return PyExc_OSError;
        default: return PyExc_RuntimeError;
    }
}

}  // namespace

NB_MODULE(_core, m) {
    m.doc() = "Headrace's native part; use the packages headrace and webnn.";
    m.attr("__version__") = HEADRACE_VERSION;
    unsupported_error = PyErr_NewExceptionWithDoc("headrace._core.UnsupportedError", kUnsupportedErrorDoc,
                                                  PyExc_ValueError, nullptr);
    if (!unsupported_error) throw nb::python_error();
    m.attr("UnsupportedError") = nb::borrow(unsupported_error);
    nb::register_exception_translator([](const std::exception_ptr& p, void*) {
        try {
            std::rethrow_exception(p);
        } catch (const Exception& e) {
            PyErr_SetString(python_exception(e.code()), e.what());
        }
    });
    nb::class_<DeviceInfo>(m, "DeviceInfo")
        .def_ro("name", &DeviceInfo::name)
        .def_ro("description", &DeviceInfo::description)
        .def_ro("type", &DeviceInfo::type)
        .def_ro("memory_free", &DeviceInfo::memory_free)
        .def_ro("memory_total", &DeviceInfo::memory_total)
        .def("__repr__", [](const DeviceInfo& d) { return "DeviceInfo(" + d.name + ", " + d.type + ")"; });
    m.def("devices", &devices, "Every device that ggml found.");
    m.def("set_num_threads", &set_num_threads, nb::arg("threads"),
          "Threads that runs use by default; at least 1.");
    m.def("num_threads", &num_threads);
    headrace::python::bind_graphs(m);
    headrace::python::bind_executable(m);
    headrace::python::bind_webnn(m);
    headrace::python::bind_extent(m);
    headrace::python::bind_graph_writer(m);
    headrace::python::bind_graph_view(m);
    headrace::python::bind_onnx(m);
    headrace::python::bind_exchange(m);
    headrace::python::bind_tokenizer(m);
    headrace::python::bind_text_encoder(m);
    headrace::python::say_argument_errors(m);
    warm_up();  // an import may take it, and the first model has it
}
