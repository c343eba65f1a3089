#include "extent.h"

#include <nanobind/operators.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <functional>
#include <optional>
#include <string>

#include "bindings.h"

/// headrace._core.Extent: arithmetic with extents that are known only at run time, for the ONNX and
/// ExecuTorch doors.
namespace headrace::python {
namespace {

/// Python's integers beyond 64 bits are no extents.
std::optional<Extent> as_extent(nb::handle item) {
    if (nb::isinstance<Extent>(item)) return nb::cast<Extent>(item);
    if (!PyIndex_Check(item.ptr())) return std::nullopt;
    const nb::object number = nb::steal(PyNumber_Index(item.ptr()));
    std::int64_t value = 0;
    if (!number.is_valid() || !nb::try_cast(number, value)) {
        PyErr_Clear();
        return std::nullopt;
    }
    return Extent(value);
}

using Operation = std::function<Extent(const Extent&, const Extent&)>;

/// `is_reflected`: the operand on the left is the other one.
auto arithmetic(Operation operation, bool is_reflected = false) {
    return [operation, is_reflected](const Extent& self, nb::handle other) -> nb::object {
        const auto operand = as_extent(other);
        if (!operand) return nb::borrow(Py_NotImplemented);
        return to_object(is_reflected ? operation(*operand, self) : operation(self, *operand));
    };
}

PyObject* undecided = nullptr;  // the exception, which the module keeps

[[noreturn]] void raise_undecided(const Extent& a, const char* relation, const Extent& b) {
    PyErr_SetString(undecided, (a.str() + " " + relation + " " + b.str()).c_str());
    throw nb::python_error();
}

using Question = std::function<std::optional<bool>(const Extent&, const Extent&)>;

auto comparison(const char* relation, Question question) {
    return [relation, question](const Extent& self, nb::handle other) -> nb::object {
        const auto operand = as_extent(other);
        if (!operand) return nb::borrow(Py_NotImplemented);
        const auto answer = question(self, *operand);
        if (!answer) raise_undecided(self, relation, *operand);
        return nb::bool_(*answer);
    };
}

std::optional<bool> inverted(std::optional<bool> answer) { return answer ? std::optional(!*answer) : answer; }

Extent required(nb::handle item) {
    auto extent = as_extent(item);
    if (!extent) throw nb::type_error("an extent is an int of 64 bits or an Extent");
    return *std::move(extent);
}

nb::list terms_of(const Extent& extent) {
    nb::list terms;
    for (const Extent::Term& term : extent.terms())
        terms.append(nb::make_tuple(term.factor, to_list(term.of)));
    return terms;
}

void bind_arithmetic(nb::class_<Extent>& c) {
    const Operation add = [](auto&a, auto&b) { return a + b; },
                    subtract = [](auto&a, auto&b) { return a - b; },
                    multiply = [](auto&a, auto&b) { return a * b; },
                    divide = [](auto&a, auto&b) { return a.divided_down(b); },
                    rest = [](auto&a, auto&b) { return a.rest(b); };
    c.def("__add__", arithmetic(add), nb::is_operator())
        .def("__radd__", arithmetic(add, true), nb::is_operator())
        .def("__sub__", arithmetic(subtract), nb::is_operator())
        .def("__rsub__", arithmetic(subtract, true), nb::is_operator())
        .def("__mul__", arithmetic(multiply), nb::is_operator())
        .def("__rmul__", arithmetic(multiply, true), nb::is_operator())
        .def("__floordiv__", arithmetic(divide), nb::is_operator())
        .def("__rfloordiv__", arithmetic(divide, true), nb::is_operator())
        .def("__mod__", arithmetic(rest), nb::is_operator())
        .def("__rmod__", arithmetic(rest, true), nb::is_operator())
        .def("__neg__", [](const Extent& self) { return to_object(Extent(0) - self); })
        .def(
            "divided_up",
            [](const Extent& self, nb::handle by) { return to_object(self.divided_up(required(by))); },
            nb::arg("by"), "The quotient rounded up.");
}

void bind_questions(nb::class_<Extent>& c) {
    const Question equal = [](auto&a, auto&b) { return a.equals(b); },
                   less = [](auto&a, auto&b) { return a.is_less(b); },
                   greater = [](auto&a, auto&b) { return b.is_less(a); };
    c.def(
         "equals", [=](const Extent& self, nb::handle other) { return equal(self, required(other)); },
         nb::arg("other"), "True or False for all values of the symbols, None where they decide.")
        .def(
            "is_less", [=](const Extent& self, nb::handle other) { return less(self, required(other)); },
            nb::arg("other"), "True or False for all values of the symbols, None where they decide.")
        .def("__eq__", comparison("==", equal), nb::is_operator())
        .def("__ne__", comparison("!=", [=](auto& a, auto& b) { return inverted(equal(a, b)); }),
             nb::is_operator())
        .def("__lt__", comparison("<", less), nb::is_operator())
        .def("__gt__", comparison(">", greater), nb::is_operator())
        .def("__le__", comparison("<=", [=](auto& a, auto& b) { return inverted(greater(a, b)); }),
             nb::is_operator())
        .def("__ge__", comparison(">=", [=](auto& a, auto& b) { return inverted(less(a, b)); }),
             nb::is_operator())
        .def("__bool__",
             [=](const Extent& self) {
                 const auto zero = equal(self, Extent(0));
                 if (!zero) raise_undecided(self, "!=", Extent(0));
                 return !*zero;
             })
        .def("__hash__", [](const Extent& self) { return std::hash<std::string>()(self.str()); });
}

}  // namespace

std::vector<Extent> to_extents(nb::handle list) {
    std::vector<Extent> extents;
    for (nb::handle item : list) extents.push_back(required(item));
    return extents;
}

nb::object to_object(const Extent& extent) {
    if (const auto number = extent.number()) return nb::int_(*number);
    return nb::cast(extent);
}

nb::list to_list(const std::vector<Extent>& extents) {
    nb::list list;
    for (const Extent& e : extents) list.append(to_object(e));
    return list;
}

bool has_extents(nb::handle value) {
    if (!nb::isinstance<nb::list>(value) && !nb::isinstance<nb::tuple>(value)) return false;
    for (nb::handle item : value)
        if (nb::isinstance<Extent>(item)) return true;
    return false;
}

void bind_extent(nb::module_& m) {
    undecided = PyErr_NewExceptionWithDoc("headrace._core.Undecided",
                                          "A question about extents that only the symbols' values decide.",
                                          nullptr, nullptr);
    m.attr("Undecided") = nb::steal(undecided);
    nb::class_<Extent> c(m, "Extent",
                         "An extent that is known only at run time: an integer expression of symbols in one "
                         "form. Results that "
                         "are numbers are integers; comparisons by operators raise Undecided where the "
                         "symbols' values decide.");
    c.def_static(
         "symbol",
         [](const std::string& text, std::int64_t least, std::int64_t most) {
             return to_object(Extent::symbol(text, least, most));
         },
         nb::arg("text"), nb::arg("least") = 1, nb::arg("most") = INT64_MAX,
         "A symbol within a range; a text that is an expression of names is one.")
        .def_static(
            "named",
            [](const std::string& name, std::int64_t least, std::int64_t most) {
                return to_object(Extent::named(name, least, most));
            },
            nb::arg("name"), nb::arg("least") = 1, nb::arg("most") = INT64_MAX,
            "A symbol of any name, also one that looks like an expression.")
        .def_static(
            "largest", [](nb::handle of) { return to_object(Extent::largest(to_extents(of))); },
            nb::arg("of"))
        .def_static(
            "smallest", [](nb::handle of) { return to_object(Extent::smallest(to_extents(of))); },
            nb::arg("of"))
        .def("__str__", &Extent::str)
        .def("__repr__", &Extent::str)
        .def_prop_ro("least", &Extent::least, "The least value that it can have.")
        .def_prop_ro("most", &Extent::most, "The largest value that it can have.")
        .def_prop_ro("symbols", &Extent::symbols, "Its symbols as texts have them.")
        .def_prop_ro("names", &Extent::names, "The same as they were named: without quotes.")
        .def_prop_ro("told", &Extent::told, "The names that have a value when it has one: (n+1) and n.")
        .def_prop_ro("terms", &terms_of,
                     "What it is the sum of: numbers, each with extents that it multiplies.")
        .def(
            "same_form", [](const Extent& self, nb::handle other) { return self == required(other); },
            nb::arg("other"), "Whether it is written alike, and so equal for all values.")
        .def(
            "substituted",
            [](const Extent& self, nb::dict instead) {
                std::map<std::string, Extent> others;
                for (const auto& [name, other] : instead)
                    others.emplace(nb::cast<std::string>(name), required(other));
                return to_object(self.substituted(others));
            },
            nb::arg("instead"), "With extents in place of symbols.")
        .def("evaluate", &Extent::value, nb::arg("symbols"),
             "With numbers in place of symbols; None where some are missing or it divides by 0.");
    bind_arithmetic(c);
    bind_questions(c);
}

}  // namespace headrace::python
