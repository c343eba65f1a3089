#include <nanobind/nanobind.h>

#include "argument_errors.h"
#include "conversation.h"
#include "errors.h"
#include "generation.h"
#include "held_model.h"
#include "language_model.h"
#include "records.h"
#include "waiting.h"

namespace nb = nanobind;

NB_MODULE(_llm, m) {
    m.doc() = "Language models' native part; use headrace.language_model.";
    headrace::python::translate_errors();
    headrace::python::bind_records(m);
    headrace::python::bind_generation(m);
    headrace::python::bind_conversation(m);
    headrace::python::bind_language_model(m);
    headrace::python::say_argument_errors(m);
    headrace::python::stop_calls_at_exit(&headrace::python::cancel_all_requests);
    nb::set_leak_warnings(false);  // daemon threads keep what they hold when the interpreter ends
}
