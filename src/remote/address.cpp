#include "remote/address.h"

#include <algorithm>
#include <charconv>

namespace headrace::remote {

std::vector<std::string> split_names(std::string_view list) {
    constexpr std::string_view kBlanks = " \t";
    std::vector<std::string> names;
    for (;;) {
        const std::size_t comma = list.find(',');
        std::string_view name = list.substr(0, comma);
        name.remove_prefix(std::min(name.find_first_not_of(kBlanks), name.size()));
        name = name.substr(0, name.find_last_not_of(kBlanks) + 1);
        names.emplace_back(name);
        if (comma == std::string_view::npos) return names;
        list.remove_prefix(comma + 1);
    }
}

Result<Address> Address::parse(std::string_view name) {
    const std::string_view text = is_remote(name) ? name.substr(kScheme.size()) : name;
    const std::size_t colon = text.rfind(':');
    Address address;
    if (colon != std::string_view::npos) {
        address.host = text.substr(0, colon);
        const std::string_view digits = text.substr(colon + 1);
        const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), address.port);
        if (error != std::errc() || end != digits.data() + digits.size()) address.port = 0;
    }
    const bool in_brackets = address.host.starts_with('[') && address.host.ends_with(']');
    if (in_brackets) address.host = address.host.substr(1, address.host.size() - 2);
    const bool is_ambiguous = !in_brackets && address.host.find(':') != std::string::npos;
    if (address.host.empty() || is_ambiguous || address.port < 1 || address.port > 65535)
        return invalid("device '{}' is not of the form rpc://host:port with a port from 1 to 65535", name);
    return address;
}

std::string Address::name() const {
    const bool is_ipv6 = host.find(':') != std::string::npos;
    return fmt::format("{}{}{}{}:{}", kScheme, is_ipv6 ? "[" : "", host, is_ipv6 ? "]" : "", port);
}

}  // namespace headrace::remote
