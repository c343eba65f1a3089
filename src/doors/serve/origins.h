#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace headrace::serve {

// What browsers say of the page that asks, and of the name that it knows this server by.

/// Host and port of an origin; nothing of "null".
std::string_view authority_of(std::string_view origin);
/// Whether a browser's page of that origin may read answers. allowed: as --cors-origins has it.
bool allows_origin(std::string_view allowed, std::string_view origin);

/// Whether a host can only be this machine: localhost, a name below it, 127.0.0.0/8 or ::1.
bool is_loopback(std::string_view host);
/// Whether nobody else reaches any of the addresses that a server listens at. Sockets of files are none.
bool are_loopback(const std::vector<std::string>& addresses);
/// Whether a server that only this machine reaches answers to that name, the header Host. A page whose own
/// name an attacker's name server has led here would have another. allowed: as --allowed-hosts has it.
bool allows_host(std::string_view allowed, std::string_view authority);

}  // namespace headrace::serve
