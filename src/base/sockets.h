#pragma once
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <limits>

namespace headrace {

/// Flags of ::send: a peer that is gone is an error and no signal, where the system can be told so for each
/// call.
#ifdef MSG_NOSIGNAL
inline constexpr int kSendFlags = MSG_NOSIGNAL;
#else
inline constexpr int kSendFlags = 0;
#endif

/// Whether one of the events came at the socket in time.
inline bool socket_becomes(int socket, short events, std::chrono::milliseconds patience) {
    using std::chrono::milliseconds;
    using Clock = std::chrono::steady_clock;
    constexpr milliseconds kLongest(std::numeric_limits<int>::max());
    const Clock::time_point begin = Clock::now();
    for (milliseconds left = patience;;) {
        pollfd waiting{.fd = socket, .events = events, .revents = 0};
        const auto time = std::clamp(left, milliseconds(0), kLongest).count();
        const int ready = ::poll(&waiting, 1, static_cast<int>(time));
        if (ready >= 0 || errno != EINTR) return ready > 0;
        left = patience - std::chrono::floor<milliseconds>(Clock::now() - begin);
    }
}

}  // namespace headrace
