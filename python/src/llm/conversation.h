#pragma once
#include <nanobind/nanobind.h>

#include "generation.h"
#include "headrace/language_model.h"
#include "held_model.h"

namespace headrace::python {

/// headrace.language_model.Conversation.
class Talk {
public:
    Talk(SharedModel model, Conversation conversation)
        : conversation_(std::move(model), std::move(conversation)) {}

    Reply say(nb::handle message, nb::handle parameters);
    Stream stream(nb::handle message, nb::handle parameters);
    std::vector<Message> messages() const;
    void cancel();

private:
    Held<Conversation> conversation_;
};

void bind_conversation(nb::module_& m);

}  // namespace headrace::python
