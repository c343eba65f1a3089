#pragma once
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/result.h"
#include "remote/address.h"

namespace headrace::remote {

using Clock = std::chrono::steady_clock;
using Milliseconds = std::chrono::milliseconds;

/// A TCP socket that never blocks for longer than it is told, and closes itself.
class Socket {
public:
    Socket() = default;
    explicit Socket(int fd) : fd_(fd) {}
    ~Socket();
    Socket(Socket&& other) noexcept;
    Socket& operator=(Socket&& other) noexcept;

    /// patience: with the look-up of the name and all of its addresses together.
    static Result<Socket> connect(const Address& address, Milliseconds patience);
    /// Listens at an address of this machine; port 0 chooses a free one.
    static Result<Socket> listen(const Address& address);
    /// The next connection of a listening socket; one that is not open when `stop` became readable.
    Result<Socket> accept(int stop);

    /// All of the bytes. Errors: timed_out when the peer takes or gives none for that long; io when it
    /// closes; backend_failure when it drips, so that they are not through at `until`, or so long and a
    /// second for each kSlowest of them after the beginning.
    Status send(std::span<const std::uint8_t> bytes, Milliseconds silence,
                Clock::time_point until = Clock::time_point::max()) const;
    Status receive(std::span<std::uint8_t> bytes, Milliseconds silence,
                   Clock::time_point until = Clock::time_point::max()) const;
    static constexpr std::size_t kSlowest = 8192;  ///< bytes a second

    bool is_open() const { return fd_ >= 0; }
    int fd() const { return fd_; }
    int port() const;  ///< of this end
    /// Wakes whoever waits for it, who finds it closed.
    void shut_down() const;
    void close();

private:
    int fd_ = -1;
};

/// While it lives, threads that are started here take no signals: a handler of the program's would break off
/// system calls, which ggml's RPC client takes for a lost server.
class SignalsBlocked {
public:
    SignalsBlocked();
    ~SignalsBlocked();
    SignalsBlocked(const SignalsBlocked&) = delete;
    SignalsBlocked& operator=(const SignalsBlocked&) = delete;

private:
    [[maybe_unused]] alignas(16) std::byte before_[128];  // a sigset_t
};

}  // namespace headrace::remote
