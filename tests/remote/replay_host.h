#pragma once
#include <gtest/gtest.h>
#include <unistd.h>

#include <string>
#include <thread>
#include <vector>

#include "remote/protocol.h"
#include "remote/socket.h"

namespace headrace::testing {

/// Speaks ggml's protocol and answers its requests with these replies, sizes included; beyond the last, and
/// where there are none, with what a sound server could say. After a reply of another size than was due it
/// hangs up.
class ReplayHost {
public:
    explicit ReplayHost(std::vector<std::string> replies) : replies_(std::move(replies)) {
        auto listener = remote::Socket::listen({"127.0.0.1", 0});
        if (!listener.ok() || pipe(stop_) != 0) throw std::runtime_error("no host to replay");
        listener_ = std::move(listener).value();
        thread_ = std::thread([this] { serve(); });
    }
    ~ReplayHost() {
        EXPECT_EQ(write(stop_[1], "", 1), 1);
        thread_.join();
        for (const int end : stop_) ::close(end);
    }
    ReplayHost(const ReplayHost&) = delete;
    ReplayHost& operator=(const ReplayHost&) = delete;

    std::string device() const { return "rpc://127.0.0.1:" + std::to_string(listener_.port()); }
    /// What it has said so far; to be read when nobody is connected any more.
    const std::vector<std::string>& said() const { return said_; }

private:
    void serve() {
        for (;;) {
            auto client = listener_.accept(stop_[0]);
            if (!client.ok() || !client.value().is_open()) return;
            while (answer(client.value())) continue;
        }
    }
    bool answer(const remote::Socket& client) {
        constexpr remote::Milliseconds patience(2000);
        std::array<std::uint8_t, remote::kHeaderBytes> header{};
        if (!client.receive(header, patience).ok() || !remote::is_command(header[0])) return false;
        remote::Request request{.command = static_cast<remote::Command>(header[0]),
                                .size = remote::read_at<std::uint64_t>(header, 1),
                                .head = remote::Bytes(remote::read_at<std::uint64_t>(header, 1))};
        if (!client.receive(request.head, patience).ok()) return false;
        const auto bytes = remote::reply_bytes(request);
        if (!bytes) return true;
        remote::Bytes sound;
        remote::append(sound, *bytes);
        const remote::Bytes data = remote::stand_in(request);
        sound.insert(sound.end(), data.begin(), data.end());
        sound.resize(remote::kSizeBytes + *bytes);
        std::string reply(sound.begin(), sound.end());
        if (said_.size() < replies_.size()) reply = replies_[said_.size()];
        said_.push_back(reply);
        const auto* first = reinterpret_cast<const std::uint8_t*>(reply.data());
        return client.send({first, reply.size()}, patience).ok() && reply.size() == sound.size();
    }

    const std::vector<std::string> replies_;
    std::vector<std::string> said_;
    remote::Socket listener_;
    int stop_[2];
    std::thread thread_;
};

}  // namespace headrace::testing
