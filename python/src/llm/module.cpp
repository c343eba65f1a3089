#include <nanobind/nanobind.h>

#include "conversation.h"
#include "generation.h"
#include "held_model.h"
#include "language_model.h"
#include "records.h"
#include "text_caster.h"
#include "waiting.h"

namespace nb = nanobind;
using namespace headrace;

namespace {

const char* name_of(Code code) {
    switch (code) {
        case Code::invalid_argument: return "invalid_argument";
        case Code::unsupported: return "unsupported";
        case Code::out_of_memory: return "out_of_memory";
        case Code::invalid_state: return "invalid_state";
        case Code::io: return "io";
        case Code::backend_failure: return "backend_failure";
        case Code::not_found: return "not_found";
        case Code::denied: return "denied";
        case Code::busy: return "busy";
        case Code::timed_out: return "timed_out";
        case Code::cancelled: return "cancelled";
        case Code::prompt_too_long: return "prompt_too_long";
        case Code::context_full: return "context_full";
    }
    return "unknown";
}

void raise_in_python(const Exception& error) {
    try {
        const nb::object type = nb::module_::import_("headrace.language_model").attr("LanguageModelError");
        PyErr_SetObject(type.ptr(), type(name_of(error.code()), std::string(error.what())).ptr());
    } catch (nb::python_error& other) {
        other.restore();
    }
}

}  // namespace

NB_MODULE(_llm, m) {
    m.doc() = "Language models' native part; use headrace.language_model.";
    nb::register_exception_translator([](const std::exception_ptr& p, void*) {
        try {
            std::rethrow_exception(p);
        } catch (const Exception& error) {
            raise_in_python(error);
        }
    });
    headrace::python::bind_records(m);
    headrace::python::bind_generation(m);
    headrace::python::bind_conversation(m);
    headrace::python::bind_language_model(m);
    headrace::python::stop_calls_at_exit(&headrace::python::cancel_all_requests);
    nb::set_leak_warnings(false);  // daemon threads keep what they hold when the interpreter ends
}
