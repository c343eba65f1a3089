#include "conversation.h"

#include <nanobind/stl/vector.h>

#include "parameters.h"
#include "text_caster.h"

namespace headrace::python {

Reply Talk::say(nb::handle message, nb::handle parameters) {
    try {
        return interruptible(
            [conversation = conversation_.share(), text = to_text(message, "the message"),
             values = to_parameters(parameters)] { return conversation->say(text, values); });
    } catch (const nb::python_error&) {  // Ctrl-C
        conversation_->cancel();
        throw;
    }
}

Stream Talk::stream(nb::handle message, nb::handle parameters) {
    return {conversation_.model(),
            [conversation = conversation_.share(), text = to_text(message, "the message"),
             values = to_parameters(parameters)] { return conversation->stream(text, values); }};
}

std::vector<Message> Talk::messages() const {
    const WithoutGil other_threads_run;
    return conversation_->messages();
}

void Talk::cancel() {
    const WithoutGil other_threads_run;
    conversation_->cancel();
}

void bind_conversation(nb::module_& m) {
    nb::class_<Talk>(m, "Conversation",
                     "Messages and answers that a model remembers; LanguageModel.conversation makes them.\n\n"
                     "One request at a time: another waits for it, or, when that one is read piece by piece, "
                     "is refused with the code 'busy'.")
        .def("say", without_arguments<Talk>("say(message, ", &Talk::say), nb::arg("message"),
             nb::arg("parameters").none() = nb::none(), nb::arg("others"),
             nb::sig("def say(self, message: str, parameters: " HEADRACE_PARAMETERS ") -> Reply"),
             "The answer to a user's message. Errors: LanguageModelError.")
        .def("stream", without_arguments<Talk>("stream(message, ", &Talk::stream), nb::arg("message"),
             nb::arg("parameters").none() = nb::none(), nb::arg("others"),
             nb::sig("def stream(self, message: str, parameters: " HEADRACE_PARAMETERS ") -> Generation"),
             "The same in pieces. Errors: LanguageModelError, also while iterating.")
        .def_prop_ro("messages", &Talk::messages, "What was said so far, as a list of Message.")
        .def("cancel", &Talk::cancel,
             "Ends the requests that run in it or wait for it, from any thread, with the code 'cancelled'.");
}

}  // namespace headrace::python
