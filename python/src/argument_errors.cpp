#include "argument_errors.h"

#include <nb_internals.h>

#include <array>
#include <cstddef>
#include <utility>

namespace headrace::python {
namespace {

namespace nb = nanobind;

/// An object of nanobind's nb_func and nb_method, whose place for the call Python's stable ABI does not tell.
using NativeFunction = nb::detail::nb_func;

/// A call's number of arguments has Python's flag in its highest bit, and one of nanobind's in the next.
constexpr std::size_t kCount = ~std::size_t{0} >> 2;

/// nanobind's own calls, of which it has one for each sort of signature, at the numbers of what stands before
/// them.
constexpr std::size_t kMostCalls = 12;
std::array<vectorcallfunc, kMostCalls> native_calls{};

bool is_of_nanobind(nb::handle function) {
    const nb::str type(function.type().attr("__name__"));
    return type.equal(nb::str("nb_func")) || type.equal(nb::str("nb_method"));
}

/// Replaces the error where no form of the function takes the arguments. Others stay as they are.
void explain(PyObject* self, PyObject* const* arguments, std::size_t flagged, PyObject* names) {
    if (!PyErr_ExceptionMatches(PyExc_TypeError)) return;
    nb::python_error raised;
    try {
        const std::size_t count = flagged & kCount;
        nb::list given;
        for (std::size_t i = 0; i < count; ++i) given.append(nb::handle(arguments[i]));
        nb::dict named;
        for (std::size_t i = 0; names && i < nb::len(names); ++i)
            named[nb::handle(names)[i]] = nb::handle(arguments[count + i]);
        const nb::object text =
            nb::module_::import_("headrace._argument_errors")
                .attr("sentence")(nb::handle(self), nb::str(raised.value()), given, named);
        if (!text.is_none()) {
            PyErr_SetObject(PyExc_TypeError, text.ptr());
            return;
        }
    } catch (...) {
        PyErr_Clear();  // what cannot be explained is raised as it came
    }
    raised.restore();
}

template <std::size_t I>
PyObject* call_native(PyObject* self, PyObject* const* arguments, std::size_t flagged,
                      PyObject* names) noexcept {
    PyObject* const result = native_calls[I](self, arguments, flagged, names);
    if (!result) explain(self, arguments, flagged, names);
    return result;
}

template <std::size_t... I>
constexpr std::array<vectorcallfunc, kMostCalls> explained_calls(std::index_sequence<I...>) {
    return {&call_native<I>...};
}

void explain_errors_of(nb::handle function) {
    static constexpr auto calls = explained_calls(std::make_index_sequence<kMostCalls>());
    if (!is_of_nanobind(function)) return;
    auto& call = reinterpret_cast<NativeFunction*>(function.ptr())->vectorcall;
    for (std::size_t i = 0; i < kMostCalls; ++i) {
        if (call == calls[i]) return;
        if (!native_calls[i]) native_calls[i] = call;
        if (native_calls[i] != call) continue;
        call = calls[i];
        return;
    }
}

}  // namespace

void say_argument_errors(nb::module_& m) {
    for (const nb::handle bound : nb::list(m.attr("__dict__").attr("values")())) {
        explain_errors_of(bound);
        if (!PyType_Check(bound.ptr())) continue;
        for (const nb::handle member : nb::list(bound.attr("__dict__").attr("values")()))
            explain_errors_of(member);
    }
}

}  // namespace headrace::python
