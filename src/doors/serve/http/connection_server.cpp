#include "doors/serve/http/connection_server.h"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>

#include "base/sockets.h"

namespace headrace::serve {
namespace {

using SocketClock = std::chrono::steady_clock;
using std::chrono::milliseconds;

thread_local std::shared_ptr<ClientPresence> served_client;

template <class Call>
ssize_t without_interruption(const Call& call) {
    ssize_t done = -1;
    do {
        done = call();
    } while (done < 0 && errno == EINTR);
    return done;
}

/// A connection's socket as httplib reads and writes it.
class ConnectionStream : public httplib::Stream {
public:
    ConnectionStream(int socket, ClientPresence& client, milliseconds reading, milliseconds writing)
        : socket_(socket), client_(client), reading_(reading), writing_(writing) {}

    bool is_readable() const override { return begin_ < end_; }
    bool wait_readable() const override { return socket_becomes(socket_, POLLIN, reading_); }
    bool wait_writable() const override { return socket_becomes(socket_, POLLOUT, writing_); }
    bool is_peer_alive() const override { return !client_.is_gone(); }

    ssize_t read(char* into, std::size_t size) override {
        if (begin_ == end_) {
            if (!wait_readable()) return fail(httplib::Error::Timeout, -1);
            const ssize_t got =
                without_interruption([&] { return ::recv(socket_, bytes_.data(), bytes_.size(), 0); });
            if (got == 0) return fail(httplib::Error::ConnectionClosed, 0);
            if (got < 0) return fail(httplib::Error::Read, got);
            begin_ = 0;
            end_ = static_cast<std::size_t>(got);
        }
        const std::size_t taken = std::min(size, end_ - begin_);
        std::memcpy(into, bytes_.data() + begin_, taken);
        begin_ += taken;
        return static_cast<ssize_t>(taken);
    }
    ssize_t write(const char* bytes, std::size_t size) override {
        if (!wait_writable()) return -1;
        return without_interruption([&] { return ::send(socket_, bytes, size, kSendFlags); });
    }
    const char* buffered_data(std::size_t& size) const override {
        size = end_ - begin_;
        return size > 0 ? bytes_.data() + begin_ : nullptr;
    }
    void consume_buffered(std::size_t size) override { begin_ += size; }

    void get_remote_ip_and_port(std::string&, int&) const override {}
    void get_local_ip_and_port(std::string&, int&) const override {}
    socket_t socket() const override { return socket_; }
    time_t duration() const override {
        return std::chrono::duration_cast<milliseconds>(SocketClock::now() - start_).count();
    }
    void set_read_timeout(time_t seconds, time_t microseconds) override {
        reading_ = milliseconds(seconds * 1000 + microseconds / 1000);
    }

private:
    ssize_t fail(httplib::Error error, ssize_t result) {
        error_ = error;
        return result;
    }

    const int socket_;
    ClientPresence& client_;
    milliseconds reading_;
    const milliseconds writing_;
    const SocketClock::time_point start_ = SocketClock::now();
    std::array<char, 16384> bytes_;
    std::size_t begin_ = 0, end_ = 0;  // of what was read and not taken
};

/// With what is on its way read: the system would end the connection, and lose the answer, otherwise.
void drain_and_close(int socket) {
    constexpr std::size_t kMost = 1 << 20;
    constexpr milliseconds kPatience(100);
    ::shutdown(socket, SHUT_WR);
    std::array<char, 16384> bytes;
    std::size_t all = 0;
    const SocketClock::time_point end = SocketClock::now() + kPatience;
    while (all < kMost) {
        const auto left = std::chrono::duration_cast<milliseconds>(end - SocketClock::now());
        if (left.count() <= 0 || !socket_becomes(socket, POLLIN, left)) break;
        const ssize_t got = ::recv(socket, bytes.data(), bytes.size(), 0);
        if (got <= 0) break;
        all += static_cast<std::size_t>(got);
    }
    ::shutdown(socket, SHUT_RDWR);
    ::close(socket);
}

milliseconds time_of(time_t seconds, time_t microseconds) {
    return milliseconds(seconds * 1000 + microseconds / 1000);
}

}  // namespace

const std::shared_ptr<ClientPresence>& ConnectionServer::client() { return served_client; }

/// Until the server stops.
bool ConnectionServer::wait_for_request(const httplib::Stream& connection) const {
    constexpr milliseconds kLook(200);
    if (connection.is_readable()) return true;  // it came with the one before
    const SocketClock::time_point end = SocketClock::now() + std::chrono::seconds(keep_alive_timeout_sec_);
    while (svr_sock_ != INVALID_SOCKET && SocketClock::now() < end)
        if (socket_becomes(connection.socket(), POLLIN, kLook)) return true;
    return false;
}

bool ConnectionServer::serve(socket_t socket) {
    ConnectionStream connection(socket, *served_client, time_of(read_timeout_sec_, read_timeout_usec_),
                                time_of(write_timeout_sec_, write_timeout_usec_));
    bool is_served = true, ends = false;
    for (std::size_t left = keep_alive_max_count_; left > 0 && is_served && !ends; --left) {
        if (!wait_for_request(connection)) break;
        is_served = process_request(connection, "", 0, "", 0, left == 1, ends,
                                    [](httplib::Request& request) { request.ranges.clear(); });
    }
    return is_served;
}

bool ConnectionServer::process_and_close_socket(socket_t socket) {
    served_client = std::make_shared<ClientPresence>(socket);
    const bool is_served = serve_guarded([&] { return serve(socket); });
    served_client->end();
    served_client.reset();
    drain_and_close(socket);
    return is_served;
}

}  // namespace headrace::serve
