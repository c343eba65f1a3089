#include "options.h"

#include <nanobind/stl/string.h>

#include <string>

namespace headrace::python {

using namespace webnn;

namespace {

std::int64_t to_extent(nb::handle item, const std::string& what) {
    const nb::object index = nb::module_::import_("operator").attr("index")(item);
    std::int64_t value = 0;
    if (!nb::try_cast(index, value))
        throw nb::value_error(
            (what + " is " + nb::cast<std::string>(nb::str(index)) + ", outside the 64-bit range").c_str());
    return value;
}

/// An int, or {"name": ..., "maxSize": ...} for an extent that is known only at run time.
MLDimension to_dimension(nb::handle item) {
    if (nb::isinstance<nb::dict>(item)) {
        const auto dict = nb::cast<nb::dict>(item);
        std::string name;
        if (!dict.contains("name") || !nb::try_cast(dict["name"], name) || name.empty())
            throw nb::value_error("a dynamic dimension needs a 'name'");
        for (const auto& [key, value] : dict)
            if (!key.equal(nb::str("name")) && !key.equal(nb::str("maxSize")))
                throw nb::value_error(("dimension '" + name + "' has the unknown key '" +
                                       nb::cast<std::string>(nb::str(key)) + "'; it takes name and maxSize")
                                          .c_str());
        const std::int64_t most =
            dict.contains("maxSize") ? to_extent(dict["maxSize"], "maxSize of '" + name + "'") : INT64_MAX;
        return MLDimension(name, most);
    }
    return MLDimension(to_extent(item, "an extent"));
}

bool is_integer(nb::handle item) { return PyLong_Check(item.ptr()) || PyIndex_Check(item.ptr()); }

MLOption integer_option(nb::handle value) {
    nb::object index = nb::module_::import_("operator").attr("index")(value);
    std::int64_t i = 0;
    if (nb::try_cast(index, i)) return i;
    std::uint64_t u = 0;
    if (nb::try_cast(index, u)) return u;
    throw nb::value_error("an integer option is outside the 64-bit range");
}

}  // namespace

std::vector<MLDimension> to_dimensions(nb::handle shape) {
    std::vector<MLDimension> list;
    for (nb::handle item : shape) list.push_back(to_dimension(item));
    return list;
}

namespace {

MLOption list_option(nb::handle value) {
    bool integers = true, dynamic = false;
    for (nb::handle item : value) {
        integers = integers && is_integer(item);
        dynamic = dynamic || nb::isinstance<nb::dict>(item);
    }
    if (dynamic) return to_dimensions(value);
    if (integers) {
        std::vector<std::int64_t> list;
        for (nb::handle item : value) {
            const MLOption element = integer_option(item);
            if (!std::holds_alternative<std::int64_t>(element))
                throw nb::value_error("an integer in a list is outside the signed 64-bit range");
            list.push_back(std::get<std::int64_t>(element));
        }
        return list;
    }
    if (nb::len(value) > 0 && nb::isinstance<nb::str>(value[0])) {
        std::string joined;  // lists of names travel as one text, separated by commas
        for (nb::handle item : value) joined += (joined.empty() ? "" : ",") + nb::cast<std::string>(item);
        return joined;
    }
    std::vector<double> list;
    for (nb::handle item : value) list.push_back(nb::cast<double>(item));
    return list;
}

}  // namespace

MLOption to_option(nb::handle value, bool is_data_type) {
    if (nb::isinstance<nb::str>(value)) {
        auto text = nb::cast<std::string>(value);
        if (is_data_type) return parse_data_type(text);
        return text;
    }
    if (PyBool_Check(value.ptr())) return nb::cast<bool>(value);
    if (is_integer(value)) return integer_option(value);
    if (PyFloat_Check(value.ptr()) || nb::hasattr(value, "__float__"))
        return nb::cast<double>(nb::float_(value));
    return list_option(value);
}

}  // namespace headrace::python
