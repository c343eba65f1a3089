#pragma once
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <list>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "remote/socket.h"

namespace headrace::testing {

/// A way to a server that does something to what the server says, or stops.
class Relay {
public:
    using Bytes = std::vector<std::uint8_t>;
    /// Changes bytes on their way back; false breaks the connection off.
    using Change = std::function<bool(Bytes&)>;

    Relay(int port, Change change) : port_(port), change_(std::move(change)) {
        auto listener = remote::Socket::listen({"127.0.0.1", 0});
        if (!listener.ok() || pipe(stop_) != 0) throw std::runtime_error("no relay");
        listener_ = std::move(listener).value();
        thread_ = std::thread([this] { listen(); });
    }
    ~Relay() {
        EXPECT_EQ(write(stop_[1], "", 1), 1);  // stays readable for all
        thread_.join();
        for (auto& connection : connections_) connection.join();
        for (const int end : stop_) close(end);
    }
    Relay(const Relay&) = delete;
    Relay& operator=(const Relay&) = delete;

    std::string device() const { return "rpc://127.0.0.1:" + std::to_string(listener_.port()); }

private:
    void listen() {
        for (;;) {
            auto client = listener_.accept(stop_[0]);
            if (!client.ok() || !client.value().is_open()) return;
            auto server = remote::Socket::connect({"127.0.0.1", port_}, remote::Milliseconds(1000));
            if (!server.ok()) continue;
            connections_.emplace_back(
                [this, c = std::move(client).value(), s = std::move(server).value()] { pass(c, s); });
        }
    }
    void pass(const remote::Socket& client, const remote::Socket& server) {
        const remote::Milliseconds patience(5000);
        for (;;) {
            pollfd waiting[] = {{client.fd(), POLLIN, 0}, {server.fd(), POLLIN, 0}, {stop_[0], POLLIN, 0}};
            if (poll(waiting, 3, -1) < 0 || waiting[2].revents) return;
            for (const bool back : {false, true}) {
                if (!waiting[back].revents) continue;
                Bytes bytes(65536);
                const auto got = recv(waiting[back].fd, bytes.data(), bytes.size(), 0);
                if (got <= 0) return;
                bytes.resize(static_cast<std::size_t>(got));
                if (back && !change_(bytes)) return;
                if (!(back ? client : server).send(bytes, patience).ok()) return;
            }
        }
    }

    const int port_;
    const Change change_;
    remote::Socket listener_;
    int stop_[2];
    std::list<std::thread> connections_;
    std::thread thread_;
};

/// A way to a server that takes longer by that much for each answer.
inline Relay::Change delayed_by(remote::Milliseconds time) {
    return [time](Relay::Bytes&) {
        std::this_thread::sleep_for(time);
        return true;
    };
}

}  // namespace headrace::testing
