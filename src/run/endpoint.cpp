#include "run/endpoint.h"

#if defined(__unix__) || defined(__APPLE__)

#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

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
int try_connect(const addrinfo& address) {
    const Socket s{socket(address.ai_family, address.ai_socktype, address.ai_protocol)};
    if (s.fd < 0) return errno;
    fcntl(s.fd, F_SETFL, fcntl(s.fd, F_GETFL) | O_NONBLOCK);
    if (connect(s.fd, address.ai_addr, address.ai_addrlen) == 0) return 0;
    if (errno != EINPROGRESS) return errno;
    pollfd waiting{s.fd, POLLOUT, 0};
    if (poll(&waiting, 1, kTimeoutMs) <= 0) return ETIMEDOUT;
    int error = 0;
    socklen_t size = sizeof(error);
    getsockopt(s.fd, SOL_SOCKET, SO_ERROR, &error, &size);
    return error;
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
    for (const addrinfo* a = list.first; a; a = a->ai_next)
        if ((error = try_connect(*a)) == 0) return success();
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
