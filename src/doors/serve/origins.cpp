#include "doors/serve/origins.h"

#include <algorithm>

#include "base/take_until.h"

namespace headrace::serve {
namespace {

char lower(char letter) { return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter + 32) : letter; }

bool same(std::string_view one, std::string_view other) {
    return std::ranges::equal(one, other, {}, lower, lower);
}

bool ends_with(std::string_view text, std::string_view end) {
    return text.size() > end.size() && same(text.substr(text.size() - end.size()), end);
}

/// Without its port: "[::1]" of "[::1]:8080".
std::string_view host_of(std::string_view authority) {
    if (authority.starts_with('['))
        return authority.substr(0, std::min(authority.find(']'), authority.size() - 1) + 1);
    return authority.substr(0, authority.find(':'));
}

/// 127.0.0.1 and the like: a name that only begins so is somebody's.
bool is_loopback_number(std::string_view host) {
    return host.starts_with("127.") && host.find_first_not_of("0123456789.") == std::string_view::npos;
}

}  // namespace

std::string_view authority_of(std::string_view origin) {
    const std::size_t scheme = origin.find("://");
    return scheme == std::string_view::npos ? std::string_view() : origin.substr(scheme + 3);
}

bool allows_origin(std::string_view allowed, std::string_view origin) {
    while (!allowed.empty()) {
        const std::string_view entry = take_until(allowed, ',');
        if (entry == "*" || entry == origin) return true;
        if (entry == "localhost" && is_loopback(host_of(authority_of(origin)))) return true;
    }
    return false;
}

bool is_loopback(std::string_view host) {
    return same(host, "localhost") || ends_with(host, ".localhost") || is_loopback_number(host) ||
           host == "[::1]" || host == "::1";
}

bool are_loopback(const std::vector<std::string>& addresses) {
    bool is_any = false;
    for (const std::string& address : addresses) {
        if (address.ends_with(".sock")) continue;
        if (!is_loopback(address)) return false;
        is_any = true;
    }
    return is_any;
}

bool allows_host(std::string_view allowed, std::string_view authority) {
    const std::string_view host = host_of(authority);
    if (authority.empty() || is_loopback(host)) return true;  // browsers always name one
    while (!allowed.empty()) {
        const std::string_view entry = take_until(allowed, ',');
        if (entry == "*" || same(entry, host) || same(entry, authority)) return true;
    }
    return false;
}

}  // namespace headrace::serve
