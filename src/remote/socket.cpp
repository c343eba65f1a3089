#include "remote/socket.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "base/sockets.h"
#include "remote/resolve.h"

namespace headrace::remote {
namespace {

Error broken(std::string_view what) { return {Code::backend_failure, std::string(what)}; }
Error system_error() { return {Code::io, std::strerror(errno)}; }

template <class T>
void set_option(int fd, int level, int name, T value) {
    setsockopt(fd, level, name, &value, sizeof(value));
}

/// No delay for small messages; a host that vanished without a word shows within about ten seconds.
void set_options(int fd) {
    set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1);
    set_option(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
#ifdef __linux__
    set_option(fd, IPPROTO_TCP, TCP_KEEPIDLE, 3);
    set_option(fd, IPPROTO_TCP, TCP_KEEPINTVL, 2);
    set_option(fd, IPPROTO_TCP, TCP_KEEPCNT, 4);
    set_option(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, 10000u);
#endif
#ifdef SO_NOSIGPIPE
    set_option(fd, SOL_SOCKET, SO_NOSIGPIPE, 1);
#endif
    fcntl(fd, F_SETFD, FD_CLOEXEC);
    fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
}

double in_seconds(Clock::duration time) {
    return static_cast<double>(std::chrono::duration_cast<Milliseconds>(time).count()) / 1000;
}

Error silent(Milliseconds silence) {
    return {Code::timed_out, fmt::format("no answer for {} s", in_seconds(silence))};
}

/// Waits while bytes go one way. A peer that lets through a few now and then is never silent.
class Transfer {
public:
    Transfer(std::size_t bytes, Milliseconds silence, Clock::time_point until)
        : all_(bytes),
          silence_(silence),
          end_(std::min(until, begin_ + silence + Milliseconds(1000 * bytes / Socket::kSlowest))) {}

    Status wait(int fd, short events, std::size_t left) const {
        const auto time = std::chrono::ceil<Milliseconds>(end_ - Clock::now());
        if (socket_becomes(fd, events, std::min(silence_, time))) return success();
        if (silence_ <= time) return silent(silence_);
        return broken(fmt::format("too slow: {} of {} bytes within {} s", all_ - left, all_,
                                  in_seconds(end_ - begin_)));
    }

private:
    const std::size_t all_;
    const Milliseconds silence_;
    const Clock::time_point begin_ = Clock::now(), end_;
};

Status try_connect(int fd, const SocketAddress& address, Milliseconds patience) {
    if (::connect(fd, address.get(), address.size) == 0) return success();
    if (errno != EINPROGRESS && errno != EINTR) return system_error();
    if (!socket_becomes(fd, POLLOUT, patience)) return silent(patience);
    int error = 0;
    socklen_t size = sizeof(error);
    getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size);
    if (error != 0) return broken(std::strerror(error));
    return success();
}

}  // namespace

Socket::~Socket() { close(); }
Socket::Socket(Socket&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
Socket& Socket::operator=(Socket&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
}

void Socket::close() {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
}

void Socket::shut_down() const {
    if (fd_ >= 0) ::shutdown(fd_, SHUT_RDWR);
}

Result<Socket> Socket::connect(const Address& address, Milliseconds patience) {
    const auto end = Clock::now() + patience;
    HR_ASSIGN(const std::vector<SocketAddress> list, resolve(address, patience));
    Error last = broken("the name has no address");
    for (std::size_t i = 0; i < list.size(); ++i) {
        const SocketAddress& a = list[i];
        Socket socket(::socket(a.family(), SOCK_STREAM, 0));
        if (!socket.is_open()) {  // a machine without IPv6
            last = system_error();
            continue;
        }
        set_options(socket.fd_);
        // One that is silent leaves their part of the time to the others.
        const auto left = std::chrono::ceil<Milliseconds>(end - Clock::now());
        const auto part = std::max(left, Milliseconds(0)) / static_cast<int>(list.size() - i);
        const Status connected = try_connect(socket.fd_, a, part);
        if (connected.ok()) return socket;
        last = connected.error();
    }
    return last;
}

Result<Socket> Socket::listen(const Address& address) {
    HR_ASSIGN(const std::vector<SocketAddress> list, resolve(address, Milliseconds(10000)));
    const SocketAddress& a = list.front();
    Socket socket(::socket(a.family(), SOCK_STREAM, 0));
    if (!socket.is_open()) return system_error();
    set_option(socket.fd_, SOL_SOCKET, SO_REUSEADDR, 1);
    set_options(socket.fd_);
    if (::bind(socket.fd_, a.get(), a.size) != 0 || ::listen(socket.fd_, 16) != 0) return system_error();
    return socket;
}

Result<Socket> Socket::accept(int stop) {
    for (;;) {
        std::array<pollfd, 2> waiting{{{fd_, POLLIN, 0}, {stop, POLLIN, 0}}};
        if (poll(waiting.data(), waiting.size(), -1) < 0) {
            if (errno == EINTR) continue;
            return system_error();
        }
        if (waiting[1].revents) return Socket();
        Socket socket(::accept(fd_, nullptr, nullptr));
        if (socket.is_open()) {
            set_options(socket.fd_);
            return socket;
        }
        // The client may be gone already; where descriptors ran out, some may be free later.
        if (errno == EMFILE || errno == ENFILE || errno == ENOMEM)
            socket_becomes(stop, POLLIN, Milliseconds(100));
        else if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED)
            return system_error();
    }
}

Status Socket::send(std::span<const std::uint8_t> bytes, Milliseconds silence,
                    Clock::time_point until) const {
    const Transfer transfer(bytes.size(), silence, until);
    while (!bytes.empty()) {
        const ssize_t sent = ::send(fd_, bytes.data(), bytes.size(), kSendFlags);
        if (sent >= 0) {
            bytes = bytes.subspan(static_cast<std::size_t>(sent));
        } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
            HR_TRY(transfer.wait(fd_, POLLOUT, bytes.size()));
        } else if (errno != EINTR) {
            return system_error();
        }
    }
    return success();
}

Status Socket::receive(std::span<std::uint8_t> bytes, Milliseconds silence, Clock::time_point until) const {
    const Transfer transfer(bytes.size(), silence, until);
    while (!bytes.empty()) {
        const ssize_t got = ::recv(fd_, bytes.data(), bytes.size(), 0);
        if (got > 0) {
            bytes = bytes.subspan(static_cast<std::size_t>(got));
        } else if (got == 0) {
            return Error{Code::io, "it closed the connection"};
        } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
            HR_TRY(transfer.wait(fd_, POLLIN, bytes.size()));
        } else if (errno != EINTR) {
            return system_error();
        }
    }
    return success();
}

int Socket::port() const {
    sockaddr_storage address{};
    socklen_t size = sizeof(address);
    if (getsockname(fd_, reinterpret_cast<sockaddr*>(&address), &size) != 0) return 0;
    if (address.ss_family == AF_INET6) return ntohs(reinterpret_cast<const sockaddr_in6&>(address).sin6_port);
    return ntohs(reinterpret_cast<const sockaddr_in&>(address).sin_port);
}

SignalsBlocked::SignalsBlocked() {
    static_assert(sizeof(sigset_t) <= sizeof(before_));
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, reinterpret_cast<sigset_t*>(before_));
}

SignalsBlocked::~SignalsBlocked() {
    pthread_sigmask(SIG_SETMASK, reinterpret_cast<const sigset_t*>(before_), nullptr);
}

}  // namespace headrace::remote
