#pragma once
#include <sys/socket.h>

#include <chrono>
#include <vector>

#include "base/result.h"
#include "remote/address.h"

namespace headrace::remote {

/// Where a socket connects to or listens.
struct SocketAddress {
    sockaddr_storage storage{};
    socklen_t size = 0;

    const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
    int family() const { return storage.ss_family; }
};

/// The addresses of a host, at least one. Errors: backend_failure for a name that has none; timed_out when
/// the system's resolver, which can take minutes where name servers are silent, takes longer than that.
Result<std::vector<SocketAddress>> resolve(const Address& address, std::chrono::milliseconds patience);

}  // namespace headrace::remote
