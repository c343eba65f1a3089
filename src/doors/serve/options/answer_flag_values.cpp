// Values of flags that say how answers are written.
#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "doors/serve/options/flag_values.h"

namespace headrace::serve {
namespace {

/// To those that were given before.
void add_text(ServeOptions& options, const char* parameter, std::string text) {
    std::vector<ParameterValue> all;
    if (const ParameterValue* before = options.parameters.find(parameter))
        all = std::get<std::vector<ParameterValue>>(*before);
    all.emplace_back(std::move(text));
    options.parameters.set(parameter, std::move(all));
}

}  // namespace

Status read_reasoning(ServeOptions& options, const std::string& text) {
    if (text != "on" && text != "off" && text != "auto") return invalid("'{}' must be on, off or auto", text);
    options.parameters.set("enable_thinking", text != "off");
    return success();
}

Status preserve_reasoning(ServeOptions& options, const std::string& text) {
    options.preserves_reasoning = text == "true";
    return success();
}

Status read_template(ServeOptions& options, const std::string& path) {
    HR_ASSIGN(std::string source, file_text(path));
    options.parameters.set("chat_template", std::move(source));
    return success();
}

Status set_samplers(ServeOptions& options, const std::string& text) {
    std::vector<ParameterValue> names;
    for (const std::string& name : parts_of(text, ';')) names.emplace_back(name);
    options.parameters.set("samplers", std::move(names));
    return success();
}

/// 15043+1, 15043-1, 15043-inf.
Status add_bias(ServeOptions& options, const std::string& text) {
    const auto sign = text.find_first_of("+-");
    std::int64_t token = 0;
    float bias = 0;
    if (sign == std::string::npos || sign == 0)
        return invalid("'{:.80}' must be a token's number and what is added to it: 15043+1 or 15043-1", text);
    HR_TRY(read_number<std::int64_t>(text.substr(0, sign), 0, INT32_MAX, token));
    const std::string size = text.substr(sign + 1);
    if (size == "inf" && text[sign] == '+')
        return invalid("'{:.80}' must be finite, or -inf to forbid it", text);
    if (size != "inf") HR_TRY(read_number(size, 0.0f, 1e30f, bias));
    std::vector<ParameterValue> all;
    if (const ParameterValue* before = options.parameters.find("logit_bias"))
        all = std::get<std::vector<ParameterValue>>(*before);
    const ParameterValue added =
        size == "inf" ? ParameterValue(false) : ParameterValue(text[sign] == '-' ? -bias : bias);
    all.emplace_back(std::vector<ParameterValue>{token, added});
    options.parameters.set("logit_bias", std::move(all));
    return success();
}

Status add_breaker(ServeOptions& options, const std::string& text) {
    // The engine wants one; no answer has this character.
    if (text == "none") {
        options.parameters.set("dry_sequence_breakers", std::vector<ParameterValue>{"\x01"});
        return success();
    }
    add_text(options, "dry_sequence_breakers", text);
    return success();
}

Status add_stop(ServeOptions& options, const std::string& text) {
    add_text(options, "stop", text);
    return success();
}

Status read_grammar(ServeOptions& options, const std::string& path) {
    HR_ASSIGN(std::string source, file_text(path));
    options.parameters.set("grammar", std::move(source));
    return success();
}

Status read_schema(ServeOptions& options, const std::string& path) {
    HR_ASSIGN(const std::string source, file_text(path));
    try {
        options.parameters.set("json_schema", ParameterValue::from_json(source));
    } catch (const Exception& error) {
        return invalid("'{}' must be JSON: {}", path, error.what());
    }
    return success();
}

std::string unescaped(const std::string& text) {
    constexpr std::string_view kLetters = "nrt\'\"\\", kMeant = "\n\r\t\'\"\\";
    std::string all;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const char next = text[i] == '\\' && i + 1 < text.size() ? text[i + 1] : '\0';
        const auto letter = next ? kLetters.find(next) : std::string_view::npos;
        unsigned code = 0;
        if (letter != std::string_view::npos) {
            all += kMeant[letter];
            ++i;
        } else if (next == 'x' && i + 3 < text.size() &&
                   std::from_chars(&text[i + 2], &text[i + 4], code, 16).ptr == &text[i + 4]) {
            all += static_cast<char>(code);
            i += 3;
        } else {
            all += text[i];
        }
    }
    return all;
}

}  // namespace headrace::serve
