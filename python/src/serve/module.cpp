#include <nanobind/nanobind.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include "argument_errors.h"
#include "errors.h"
#include "http_answer.h"
#include "parameters.h"
#include "text_caster.h"
#include "waiting.h"

namespace nb = nanobind;

namespace headrace::python {
namespace {

using Headers = std::vector<std::pair<std::string, std::string>>;

HttpApi load(nb::handle arguments, nb::handle parameters) {
    return interruptible([words = to_texts(arguments, "arguments"), values = to_parameters(parameters)] {
        return HttpApi::load(words, values);
    });
}

HttpAnswer answer(const HttpApi& api, nb::handle method, nb::handle target, Headers headers,
                  const nb::bytes& body) {
    return {api,
            {.method = to_text(method, "the method"),
             .target = to_text(target, "the target"),
             .headers = std::move(headers),
             .body = {body.c_str(), body.size()}}};
}

void bind_http_api(nb::module_& m) {
    nb::class_<HttpApi>(
        m, "HttpApi",
        "The HTTP APIs of `headrace serve` (docs/serving.md) for programs that bring their own HTTP.\n\n"
        "arguments: of `headrace serve`, such as [\"-m\", \"model.gguf\", \"--parallel\", \"8\"]; what they "
        "say of addresses changes nothing, and the environment is not read. parameters: of the model, above "
        "those. A model that LanguageModel has loaded with the same parameters is not loaded again. "
        "Thread-safe. Errors: LanguageModelError.")
        .def(
            "__init__",
            [](HttpApi* self, nb::handle arguments, nb::handle parameters) {
                new (self) HttpApi(load(arguments, parameters));
            },
            nb::arg("arguments"), nb::arg("parameters").none() = nb::none(),
            nb::sig("def __init__(self, arguments: collections.abc.Sequence[str], "
                    "parameters: " HEADRACE_PARAMETERS ") -> None"))
        .def("handle", &answer, nb::arg("method"), nb::arg("target"), nb::arg("headers") = Headers(),
             nb::arg("body") = nb::bytes("", 0),
             nb::sig("def handle(self, method: str, target: str, headers: list[tuple[str, str]] = [], body: "
                     "bytes = b'') -> HttpAnswer"),
             "Begins to answer a request, and does not wait. target: path and query. Failures are answers.")
        .def(
            "stop",
            [](const HttpApi& self) {
                const WithoutGil other_threads_run;
                self.stop();
            },
            "Requests that run end with an error, later ones are refused.");
}

}  // namespace
}  // namespace headrace::python

NB_MODULE(_serve, m) {
    m.doc() = "The native part of HTTP's APIs; use headrace.http_api.";
    headrace::python::translate_errors();
    headrace::python::bind_http_answer(m);
    headrace::python::bind_http_api(m);
    headrace::python::say_argument_errors(m);
    headrace::python::stop_calls_at_exit(&headrace::python::HttpAnswer::cancel_all);
    nb::set_leak_warnings(false);  // daemon threads keep what they hold when the interpreter ends
}
