#pragma once
#include <charconv>
#include <string>
#include <vector>

#include "doors/serve/options/options.h"

namespace headrace::serve {

// How the texts of flags become options. Errors do not name the flag: their reader puts it before them.

std::vector<std::string> parts_of(const std::string& text, char separator = ',');

template <class Number>
Status read_number(const std::string& text, Number least, Number most, Number& value) {
    const char* end = text.data() + text.size();
    const auto read = std::from_chars(text.data(), end, value);
    if (read.ec != std::errc() || read.ptr != end || value < least || value > most)
        return invalid("'{}' must be a number from {} to {}", text, least, most);
    return success();
}

template <auto Member, auto least, auto most>
Status set_number(ServeOptions& options, const std::string& text) {
    auto& value = options.*Member;
    return read_number<std::remove_reference_t<decltype(value)>>(text, least, most, value);
}

template <auto Member, auto least, auto most>
Status set_listener_number(ServeOptions& options, const std::string& text) {
    auto& value = options.listener.*Member;
    return read_number<std::remove_reference_t<decltype(value)>>(text, least, most, value);
}

template <auto Member>
Status set_text(ServeOptions& options, const std::string& text) {
    options.*Member = text;
    return success();
}

template <auto Member>
Status add_list(ServeOptions& options, const std::string& text) {
    for (std::string& part : parts_of(text)) (options.*Member).push_back(std::move(part));
    return success();
}

/// A switch, which may be turned off: by its negative, or "off" in a file.
template <auto Member, bool Value = true>
Status set_switch(ServeOptions& options, const std::string& text) {
    options.*Member = (text == "true") == Value;
    return success();
}

Status read_keys(ServeOptions& options, const std::string& text);
Status read_parallel(ServeOptions& options, const std::string& text);
Status read_reasoning(ServeOptions& options, const std::string& text);
Status read_speculation(ServeOptions& options, const std::string& text);
Status set_hosts(ServeOptions& options, const std::string& text);
Status set_body(ServeOptions& options, const std::string& text);
Status set_patience(ServeOptions& options, const std::string& text);
Status set_threads(ServeOptions& options, const std::string& text);
Status add_plain_adapters(ServeOptions& options, const std::string& text);
Status add_scaled_adapters(ServeOptions& options, const std::string& text);
Status set_ranking(ServeOptions& options, const std::string& text);
Status set_tokenizer(ServeOptions& options, const std::string& text);
Status set_draft_model(ServeOptions& options, const std::string& text);
Status read_template(ServeOptions& options, const std::string& text);
Status set_samplers(ServeOptions& options, const std::string& text);

}  // namespace headrace::serve
