#include "doors/serve/options/flag_values.h"

#include <algorithm>
#include <fstream>
#include <sstream>

namespace headrace::serve {
namespace {

Result<std::string> file_text(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    if (!file) return failure(Code::not_found, "'{}' cannot be read", path);
    return std::string(std::istreambuf_iterator<char>(file), {});
}

Status add_adapters(ServeOptions& options, const std::string& text, bool scaled) {
    std::vector<ParameterValue> all;
    if (const ParameterValue* before = options.parameters.find("lora"))
        all = std::get<std::vector<ParameterValue>>(*before);
    for (const std::string& part : parts_of(text)) {
        float scale = 1;
        const auto colon = scaled ? part.rfind(':') : std::string::npos;
        if (scaled && colon == std::string::npos) return invalid("'{}' must be FILE:SCALE", part);
        if (scaled) HR_TRY(read_number(part.substr(colon + 1), -1e6f, 1e6f, scale));
        all.push_back(Parameters{{"path", part.substr(0, colon)}, {"scale", scale}});
    }
    options.parameters.set("lora", std::move(all));
    return success();
}

}  // namespace

std::vector<std::string> parts_of(const std::string& text, char separator) {
    std::vector<std::string> parts;
    std::istringstream stream(text);
    for (std::string part; std::getline(stream, part, separator);)
        if (!part.empty()) parts.push_back(part);
    return parts;
}

Status read_keys(ServeOptions& options, const std::string& path) {
    HR_ASSIGN(const std::string text, file_text(path));
    for (std::string line : parts_of(text, '\n')) {
        while (!line.empty() && (line.back() == '\r' || line.back() == ' ')) line.pop_back();
        if (!line.empty() && line.front() != '#') options.keys.push_back(std::move(line));
    }
    if (options.keys.empty()) return invalid("'{}' has no key", path);
    return success();
}

Status read_parallel(ServeOptions& options, const std::string& text) {
    long count = 0;
    HR_TRY(read_number(text, -1L, 256L, count));
    if (count == 0) return invalid("0 must be from 1 to 256, or -1 for {}", options.parallel);
    if (count < 0) return success();
    options.parallel = static_cast<std::size_t>(count);
    options.divides = true;
    return success();
}

Status read_reasoning(ServeOptions& options, const std::string& text) {
    if (text != "on" && text != "off" && text != "auto") return invalid("'{}' must be on, off or auto", text);
    options.parameters.set("enable_thinking", text != "off");
    return success();
}

Status read_speculation(ServeOptions& options, const std::string& text) {
    if (text == "none") return options.parameters.set("speculative", false), success();
    if (text != "draft-simple" && text != "ngram-simple")
        return unsupported("'{}' must be none, draft-simple (with --model-draft) or ngram-simple", text);
    options.parameters.set("speculative", true);
    return success();
}

Status set_hosts(ServeOptions& options, const std::string& text) {
    options.listener.hosts = parts_of(text);
    return options.listener.hosts.empty() ? Status(invalid("it is empty")) : success();
}

Status set_body(ServeOptions& options, const std::string& text) {
    std::size_t mib = 0;
    HR_TRY(read_number<std::size_t>(text, 1, 1024, mib));
    options.listener.most_body_bytes = mib << 20;
    return success();
}

Status set_patience(ServeOptions& options, const std::string& text) {
    long seconds = 0;
    HR_TRY(read_number(text, 1L, 86400L, seconds));
    options.listener.patience = std::chrono::seconds(seconds);
    return success();
}

Status set_threads(ServeOptions& options, const std::string& text) {
    int count = 0;
    HR_TRY(read_number(text, -1, 512, count));
    options.parameters.set("n_threads", std::max(count, 0));
    return success();
}

Status add_plain_adapters(ServeOptions& options, const std::string& text) {
    return add_adapters(options, text, false);
}

Status add_scaled_adapters(ServeOptions& options, const std::string& text) {
    return add_adapters(options, text, true);
}

Status set_ranking(ServeOptions& options, const std::string&) {
    options.parameters.set("embeddings", true);
    options.parameters.set("pooling", "rank");
    return success();
}

Status set_tokenizer(ServeOptions& options, const std::string& text) {
    options.encoder.tokenizer = text;
    return success();
}

Status set_draft_model(ServeOptions& options, const std::string& text) {
    options.parameters.set("draft_model", text);
    options.parameters.set("speculative", true);
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

}  // namespace headrace::serve
