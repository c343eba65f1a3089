#include "doors/serve/options/flag_values.h"

#include <algorithm>
#include <fstream>
#include <sstream>

namespace headrace::serve {
Result<std::string> file_text(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    if (!file) return failure(Code::not_found, "'{}' cannot be read", path);
    return std::string(std::istreambuf_iterator<char>(file), {});
}

std::vector<std::string> parts_of(const std::string& text, char separator) {
    std::vector<std::string> parts;
    std::istringstream stream(text);
    for (std::string part; std::getline(stream, part, separator);)
        if (!part.empty()) parts.push_back(part);
    return parts;
}

Status read_listed_keys(ServeOptions& options, const std::string& text) {
    const std::size_t before = options.keys.size();
    HR_TRY(add_list<&ServeOptions::keys>(options, text));
    // An unset variable in a script must not leave the server open.
    if (options.keys.size() == before) return invalid("it has no key; leave it out to serve without keys");
    return success();
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

Status set_verbosity(ServeOptions& options, const std::string& text) {
    int level = 0;
    HR_TRY(read_number(text, -1, 100, level));
    if (level < 0) level = 5;
    constexpr const char* kLevels[] = {"error", "error", "warn", "warn", "info"};
    options.parameters.set("log_level", level < 5 ? kLevels[level] : "debug");
    options.is_quiet = level < 3;
    return success();
}

Status set_cpu_mask(ServeOptions& options, const std::string& text) {
    std::string digits = text.starts_with("0x") || text.starts_with("0X") ? text.substr(2) : text;
    std::vector<std::size_t> cpus;
    for (std::size_t i = 0; i < digits.size(); ++i) {
        unsigned bits = 0;
        const char* digit = &digits[digits.size() - 1 - i];
        if (std::from_chars(digit, digit + 1, bits, 16).ec != std::errc() || digits.size() > 256)
            return invalid("'{:.80}' must be hexadecimal digits, as ff for the first eight CPUs", text);
        for (std::size_t bit = 0; bit < 4; ++bit)
            if (bits >> bit & 1) cpus.push_back(4 * i + bit);
    }
    if (cpus.empty()) return invalid("'{:.80}' leaves no CPU", text);
    options.cpus.insert(options.cpus.end(), cpus.begin(), cpus.end());
    return success();
}

Status set_cpu_range(ServeOptions& options, const std::string& text) {
    const auto dash = text.find('-');
    std::size_t first = 0, last = 0;
    if (dash == std::string::npos) return invalid("'{:.80}' must be the first and the last CPU: 0-7", text);
    HR_TRY(read_number<std::size_t>(text.substr(0, dash), 0, 1023, first));
    HR_TRY(read_number<std::size_t>(text.substr(dash + 1), first, 1023, last));
    for (std::size_t cpu = first; cpu <= last; ++cpu) options.cpus.push_back(cpu);
    return success();
}

Status set_prefix(ServeOptions& options, const std::string& text) {
    if (!text.empty() && (!text.starts_with('/') || text.ends_with('/')))
        return invalid("'{:.80}' must begin with a slash and end without one: /llm", text);
    options.api_prefix = text;
    return success();
}

Status set_ping_interval(ServeOptions& options, const std::string& text) {
    long seconds = 0;
    HR_TRY(read_number(text, -1L, 86400L, seconds));
    if (seconds == 0) return invalid("0 must be from 1 to 86400 seconds, or -1 for none");
    options.ping_interval = std::chrono::seconds(std::max(seconds, 0L));
    return success();
}

Status set_idle_limit(ServeOptions& options, const std::string& text) {
    long seconds = 0;
    HR_TRY(read_number(text, -1L, 365L * 86400, seconds));
    if (seconds == 0) return invalid("0 must be a number of seconds from 1, or -1 for none");
    options.idle_limit = std::chrono::seconds(std::max(seconds, 0L));
    return success();
}

}  // namespace headrace::serve
