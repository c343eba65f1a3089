#include "doors/serve/http/client_presence.h"

#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <string_view>

#include "base/sockets.h"

namespace headrace::serve {
namespace {

constexpr std::chrono::milliseconds kFirst(200), kAgain(500);  // of what a silent client is asked

}  // namespace

ClientPresence::Sight ClientPresence::look() const {
    pollfd socket{.fd = socket_, .events = POLLIN, .revents = 0};
    if (::poll(&socket, 1, 0) <= 0) return Sight::there;
    if (socket.revents & (POLLERR | POLLHUP | POLLNVAL)) return Sight::gone;
    char next = 0;
    const ssize_t read = ::recv(socket_, &next, 1, MSG_PEEK | MSG_DONTWAIT);
    if (read > 0) return Sight::there;
    if (read == 0) return Sight::silent;
    return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR ? Sight::there : Sight::gone;
}

/// Whether what is written was taken.
bool ClientPresence::ask() {
    constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";
    const Clock::time_point now = Clock::now();
    if (now < next_) return true;
    next_ = now + kAgain;
    const ssize_t sent = ::send(socket_, kContinue.data(), kContinue.size(), MSG_DONTWAIT | kSendFlags);
    return sent == static_cast<ssize_t>(kContinue.size());
}

bool ClientPresence::is_gone() {
    const std::lock_guard lock(mutex_);
    if (is_gone_) return true;
    switch (look()) {
        case Sight::there: return false;
        case Sight::gone: return is_gone_ = true;
        case Sight::silent: break;
    }
    if (is_answered_) return false;
    return is_gone_ = !knows_interim_ || !ask();
}

bool ClientPresence::sends_no_more() {
    const std::lock_guard lock(mutex_);
    return is_gone_ || look() != Sight::there;
}

void ClientPresence::begin_request(bool knows_interim) {
    const std::lock_guard lock(mutex_);
    knows_interim_ = knows_interim;
    is_answered_ = false;
    next_ = Clock::now() + kFirst;
}

void ClientPresence::begin_answer() {
    const std::lock_guard lock(mutex_);
    is_answered_ = true;
}

void ClientPresence::end() {
    const std::lock_guard lock(mutex_);
    is_gone_ = true;
}

}  // namespace headrace::serve
