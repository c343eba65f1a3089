#include "doors/serve/http/client_presence.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <string>
#include <thread>

namespace headrace::serve {
namespace {

/// Both ends of a connection by TCP.
class Connected : public testing::Test {
protected:
    void SetUp() override {
        const int listener = ::socket(AF_INET, SOCK_STREAM, 0);
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        socklen_t size = sizeof address;
        auto* place = reinterpret_cast<sockaddr*>(&address);
        ASSERT_EQ(::bind(listener, place, size), 0);
        ASSERT_EQ(::listen(listener, 1), 0);
        ASSERT_EQ(::getsockname(listener, place, &size), 0);
        client_ = ::socket(AF_INET, SOCK_STREAM, 0);
        ASSERT_EQ(::connect(client_, place, size), 0);
        server_ = ::accept(listener, nullptr, nullptr);
        ASSERT_GE(server_, 0);
        ::close(listener);
    }
    void TearDown() override {
        ::close(server_);
        if (client_ >= 0) ::close(client_);
    }
    void leave() {
        ::close(client_);
        client_ = -1;
    }
    /// What has come within a moment.
    std::string received() const {
        char bytes[256];
        const timeval moment{.tv_sec = 0, .tv_usec = 200'000};
        ::setsockopt(client_, SOL_SOCKET, SO_RCVTIMEO, &moment, sizeof moment);
        const ssize_t size = ::recv(client_, bytes, sizeof bytes, 0);
        return {bytes, static_cast<std::size_t>(size < 0 ? 0 : size)};
    }
    static bool becomes_gone(ClientPresence& client) {
        const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(3);
        while (std::chrono::steady_clock::now() < end) {
            if (client.is_gone()) return true;
            std::this_thread::sleep_for(std::chrono::milliseconds(10));
        }
        return false;
    }

    int client_ = -1, server_ = -1;
};

TEST_F(Connected, AClientThatSaysNothingIsThere) {
    ClientPresence client(server_);
    EXPECT_FALSE(client.is_gone());
    EXPECT_FALSE(client.sends_no_more());
    EXPECT_EQ(received(), "");
}

TEST_F(Connected, AClientThatClosesItsEndIsThereAndAskedToWait) {
    ClientPresence client(server_);
    client.begin_request(true);
    ::shutdown(client_, SHUT_WR);
    EXPECT_FALSE(client.is_gone());
    EXPECT_TRUE(client.sends_no_more());
    EXPECT_EQ(received(), "") << "most answers come at once";
    EXPECT_FALSE(client.is_gone());
    EXPECT_EQ(received(), "HTTP/1.1 100 Continue\r\n\r\n");
    EXPECT_FALSE(client.is_gone()) << "and it does not hear that again at once";
    EXPECT_EQ(received(), "");
}

TEST_F(Connected, AClientThatLeavesIsGone) {
    ClientPresence client(server_);
    client.begin_request(true);
    leave();
    EXPECT_TRUE(becomes_gone(client));
    EXPECT_TRUE(client.is_gone()) << "also when it is asked again";
}

TEST_F(Connected, AClientOfTheFirstHttpIsGoneWhenItClosesItsEnd) {
    ClientPresence client(server_);
    client.begin_request(false);
    ::shutdown(client_, SHUT_WR);
    EXPECT_TRUE(becomes_gone(client));
    EXPECT_EQ(received(), "");
}

TEST_F(Connected, NothingButTheAnswerIsWrittenOnceThatBegins) {
    ClientPresence client(server_);
    client.begin_request(true);
    client.begin_answer();
    ::shutdown(client_, SHUT_WR);
    EXPECT_FALSE(client.is_gone());
    EXPECT_EQ(received(), "");
    leave();
    EXPECT_FALSE(client.is_gone()) << "nothing has been written yet";
    EXPECT_EQ(::send(server_, "data", 4, MSG_NOSIGNAL), 4);
    EXPECT_TRUE(becomes_gone(client));
}

}  // namespace
}  // namespace headrace::serve
