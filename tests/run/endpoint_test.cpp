#include "run/endpoint.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>
#include <thread>

#include "run/devices.h"

namespace headrace {
namespace {

TEST(Endpoint, WantsHostAndPort) {
    for (const char* text : {"", "localhost", ":1", "localhost:"}) {
        const Status status = check_endpoint(text);
        ASSERT_FALSE(status.ok()) << text;
        EXPECT_EQ(status.error().code, Code::invalid_argument);
        EXPECT_NE(status.error().message.find("host:port"), std::string::npos);
    }
}

TEST(Endpoint, ReportsARefusedConnection) {
    const Status status = check_endpoint("127.0.0.1:1");
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.error().code, Code::backend_failure);
    EXPECT_NE(status.error().message.find("127.0.0.1:1"), std::string::npos);
}

/// A server that is not ggml's: answers every connection with these bytes and closes.
class OtherServer {
public:
    explicit OtherServer(std::string answer) : listener_(socket(AF_INET, SOCK_STREAM, 0)) {
        sockaddr_in a{};
        a.sin_family = AF_INET;
        a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        socklen_t size = sizeof(a);
        EXPECT_EQ(bind(listener_, reinterpret_cast<sockaddr*>(&a), size), 0);
        EXPECT_EQ(listen(listener_, 1), 0);
        getsockname(listener_, reinterpret_cast<sockaddr*>(&a), &size);
        endpoint = "127.0.0.1:" + std::to_string(ntohs(a.sin_port));
        thread_ = std::thread([this, answer = std::move(answer)] {
            const int s = accept(listener_, nullptr, nullptr);
            send(s, answer.data(), answer.size(), MSG_NOSIGNAL);
            close(s);
        });
    }
    ~OtherServer() {
        thread_.join();
        close(listener_);
    }
    std::string endpoint;

private:
    int listener_;
    std::thread thread_;
};

TEST(Endpoint, WhatIsNoGgmlServerIsAnErrorNotAnAbort) {
    for (const char* answer : {"", "HTTP/1.1 400 Bad Request, and some more text to fill it"}) {
        OtherServer server(answer);
        const Status status = check_endpoint(server.endpoint);
        ASSERT_FALSE(status.ok());
        EXPECT_NE(status.error().message.find("no ggml RPC server"), std::string::npos)
            << status.error().message;
    }
}

TEST(Endpoint, AServerOfAnotherProtocolVersionIsNamed) {
    std::string answer(8 + 4 + 24, '\0');
    answer[0] = 28;
    answer[8] = 99;
    OtherServer server(answer);
    const Status status = check_endpoint(server.endpoint);
    ASSERT_FALSE(status.ok());
    EXPECT_NE(status.error().message.find("speaks RPC protocol 99.0"), std::string::npos);
}

TEST(Devices, TheCpuIsFoundByEitherName) {
    const auto by_role = find_device("cpu");
    ASSERT_TRUE(by_role.ok());
    EXPECT_TRUE(by_role.value().is_cpu);
    const auto by_name = find_device(by_role.value().name);
    ASSERT_TRUE(by_name.ok());
    EXPECT_EQ(by_name.value().handle, by_role.value().handle);
}

TEST(Devices, AutomaticChoiceTakesALocalGpuOrTheCpu) {
    const auto device = find_device("auto");
    ASSERT_TRUE(device.ok());
    EXPECT_EQ(device.value().is_cpu, !has_gpu());
}

}  // namespace
}  // namespace headrace
