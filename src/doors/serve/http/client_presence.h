#pragma once
#include <chrono>
#include <mutex>

namespace headrace::serve {

/// Whether a client still waits for its answer. A client that waits may close its end of the connection after
/// its request, and so does one that goes away: only a write tells them apart. Thread-safe.
class ClientPresence {
public:
    explicit ClientPresence(int socket) : socket_(socket) {}

    /// Before an answer that takes a while, one that has closed its end gets "100 Continue" now and then,
    /// which a client of HTTP/1.1 must take; where it left, that is refused.
    bool is_gone();
    /// It has closed its end, or left: what is written next tells.
    bool sends_no_more();

    /// knows_interim: a client of HTTP/1.0 does not, and is gone when it closes its end.
    void begin_request(bool knows_interim);
    /// From now on only the answer is written.
    void begin_answer();
    /// The socket is closed.
    void end();

private:
    using Clock = std::chrono::steady_clock;
    enum class Sight { there, silent, gone };
    Sight look() const;
    bool ask();

    const int socket_;
    std::mutex mutex_;
    bool is_gone_ = false;  // a socket tells an error once
    bool knows_interim_ = true;
    bool is_answered_ = false;
    Clock::time_point next_{};  // when a silent client is asked
};

}  // namespace headrace::serve
