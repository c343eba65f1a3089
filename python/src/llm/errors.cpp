#include "errors.h"

#include <nanobind/nanobind.h>

#include "headrace/error.h"
#include "text_caster.h"

namespace headrace::python {
namespace {

namespace nb = nanobind;

void raise_in_python(const Exception& error) {
    try {
        const nb::object type = nb::module_::import_("headrace.language_model").attr("LanguageModelError");
        PyErr_SetObject(type.ptr(),
                        type(std::string(to_string(error.code())), std::string(error.what())).ptr());
    } catch (nb::python_error& other) {
        other.restore();
    }
}

}  // namespace

void translate_errors() {
    nb::register_exception_translator([](const std::exception_ptr& p, void*) {
        try {
            std::rethrow_exception(p);
        } catch (const Exception& error) {
            raise_in_python(error);
        }
    });
}

}  // namespace headrace::python
