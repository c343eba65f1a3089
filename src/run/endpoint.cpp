#include "run/endpoint.h"

#if defined(__unix__) || defined(__APPLE__)

#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>

#include "ggml-rpc.h"

namespace headrace {
namespace {

constexpr int kTimeoutMs = 5000;

struct AddressList {
    addrinfo* first = nullptr;
    ~AddressList() {
        if (first) freeaddrinfo(first);
    }
};

struct Socket {
    int fd;
    ~Socket() {
        if (fd >= 0) close(fd);
    }
};

/// Errno of one attempt; 0 when the connection stands.
int try_connect(const Socket& s, const addrinfo& address) {
    if (s.fd < 0) return errno;
    const int flags = fcntl(s.fd, F_GETFL);
    fcntl(s.fd, F_SETFL, flags | O_NONBLOCK);
    int error = 0;
    if (connect(s.fd, address.ai_addr, address.ai_addrlen) != 0) {
        if (errno != EINPROGRESS) return errno;
        pollfd waiting{s.fd, POLLOUT, 0};
        if (poll(&waiting, 1, kTimeoutMs) <= 0) return ETIMEDOUT;
        socklen_t size = sizeof(error);
        getsockopt(s.fd, SOL_SOCKET, SO_ERROR, &error, &size);
    }
    fcntl(s.fd, F_SETFL, flags);
    return error;
}

/// ggml's greeting: a command byte, the request's size, the request; answered by a size and a response that
/// starts with the protocol's version.
constexpr std::size_t kCapabilityBytes = 24;
constexpr std::uint8_t kHello = 14;

Status greet(const Socket& s, const std::string& endpoint) {
    const timeval limit{kTimeoutMs / 1000, 0};
    setsockopt(s.fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
    setsockopt(s.fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
    std::array<std::uint8_t, 1 + sizeof(std::uint64_t) + kCapabilityBytes> request{};
    const std::uint64_t size = kCapabilityBytes;
    request[0] = kHello;
    std::memcpy(&request[1], &size, sizeof(size));
    std::array<std::uint8_t, sizeof(std::uint64_t) + 4 + kCapabilityBytes> answer{};
    const bool sent =
        send(s.fd, request.data(), request.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(request.size());
    const bool received =
        sent && recv(s.fd, answer.data(), answer.size(), MSG_WAITALL) == static_cast<ssize_t>(answer.size());
    std::uint64_t answer_size = 0;
    std::memcpy(&answer_size, answer.data(), sizeof(answer_size));
    if (!received || answer_size != 4 + kCapabilityBytes)
        return failure(Code::backend_failure, "{}: what answers there is no ggml RPC server of this version",
                       endpoint);
    const int major = answer[8], minor = answer[9];
    if (major != RPC_PROTO_MAJOR_VERSION || minor > RPC_PROTO_MINOR_VERSION)
        return failure(Code::backend_failure, "{}: the server speaks RPC protocol {}.{}, this build {}.{}",
                       endpoint, major, minor, RPC_PROTO_MAJOR_VERSION, RPC_PROTO_MINOR_VERSION);
    return success();
}

}  // namespace

Status check_endpoint(const std::string& endpoint) {
    const std::size_t colon = endpoint.rfind(':');
    if (colon == std::string::npos || colon == 0 || colon + 1 == endpoint.size())
        return invalid("'{}' is not of the form host:port", endpoint);
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_family = AF_INET;  // as ggml's client connects
    AddressList list;
    const int status = getaddrinfo(endpoint.substr(0, colon).c_str(), endpoint.substr(colon + 1).c_str(),
                                   &hints, &list.first);
    if (status != 0) return failure(Code::backend_failure, "{}: {}", endpoint, gai_strerror(status));
    int error = 0;
    for (const addrinfo* a = list.first; a; a = a->ai_next) {
        const Socket s{socket(a->ai_family, a->ai_socktype, a->ai_protocol)};
        if ((error = try_connect(s, *a)) == 0) return greet(s, endpoint);
    }
    return failure(Code::backend_failure, "{}: {}", endpoint, std::strerror(error));
}

}  // namespace headrace

#else

namespace headrace {
Status check_endpoint(const std::string& endpoint) {
    return unsupported("{}: remote devices are not supported on this system", endpoint);
}
}  // namespace headrace

#endif
