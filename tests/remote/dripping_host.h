#pragma once
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <stdexcept>
#include <string>
#include <thread>

#include "remote/socket.h"

namespace headrace::testing {

/// Sends one byte after the other to whoever connects, with a pause before each.
class DrippingHost {
public:
    explicit DrippingHost(remote::Milliseconds pause, std::uint8_t byte = 7) : pause_(pause), byte_(byte) {
        auto listener = remote::Socket::listen({"127.0.0.1", 0});
        if (!listener.ok() || pipe(stop_) != 0) throw std::runtime_error("no host that drips");
        listener_ = std::move(listener).value();
        thread_ = std::thread([this] { serve(); });
    }
    ~DrippingHost() {
        is_over_ = true;
        EXPECT_EQ(write(stop_[1], "", 1), 1);
        thread_.join();
        for (const int end : stop_) ::close(end);
    }
    DrippingHost(const DrippingHost&) = delete;
    DrippingHost& operator=(const DrippingHost&) = delete;

    remote::Address address() const { return {"127.0.0.1", listener_.port()}; }

private:
    void serve() {
        for (;;) {
            auto client = listener_.accept(stop_[0]);
            if (!client.ok() || !client.value().is_open()) return;
            while (!is_over_ && client.value().send({&byte_, 1}, pause_).ok())
                std::this_thread::sleep_for(pause_);
        }
    }

    const remote::Milliseconds pause_;
    const std::uint8_t byte_;
    remote::Socket listener_;
    int stop_[2];
    std::atomic<bool> is_over_ = false;
    std::thread thread_;
};

}  // namespace headrace::testing
