#include "remote/resolve.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netdb.h>
#include <netinet/in.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>
#include <thread>

#include "remote/host.h"
#include "remote/socket.h"

namespace {

std::mutex name_server;  // who holds it keeps the names of silent.test to themselves
std::atomic<int> questions = 0;

/// The addresses of a name for tests, the last first; as much as freeaddrinfo of the C library can free.
int answer(std::initializer_list<const char*> hosts, const char* port, const addrinfo* hints,
           addrinfo** list) {
    using Function = int (*)(const char*, const char*, const addrinfo*, addrinfo**);
    static const auto next = reinterpret_cast<Function>(dlsym(RTLD_NEXT, "getaddrinfo"));
    *list = nullptr;
    for (const char* host : hosts) {
        addrinfo* more = nullptr;
        if (const int status = next(host, port, hints, &more); status != 0) return status;
        addrinfo* last = more;
        while (last->ai_next) last = last->ai_next;
        last->ai_next = *list;
        *list = more;
    }
    return 0;
}

}  // namespace

/// In place of the C library's for this whole program.
extern "C" int getaddrinfo(const char* name, const char* port, const addrinfo* hints, addrinfo** list) {
    const std::string_view host = name;
    if (!host.ends_with(".test") || (hints->ai_flags & AI_NUMERICHOST))
        return answer({name}, port, hints, list);
    if (host == "absent.test") return EAI_NONAME;
    if (host == "two.test") return answer({"127.0.0.1", "127.0.0.2"}, port, hints, list);
    ++questions;
    const std::lock_guard lock(name_server);
    return answer({"127.0.0.1"}, port, hints, list);
}

namespace headrace::remote {
namespace {

using ::testing::HasSubstr;

TEST(Resolve, AsksNobodyForNumbers) {
    const std::lock_guard silent(name_server);
    for (const char* host : {"127.0.0.1", "::1"}) {
        const auto found = resolve({host, 5}, Milliseconds(0));
        ASSERT_TRUE(found.ok()) << host;
        EXPECT_EQ(found.value().size(), 1u);
    }
    EXPECT_EQ(questions, 0);
}

TEST(Resolve, ANameThatThereIsNotIsAnError) {
    const auto found = resolve({"absent.test", 5}, Milliseconds(5000));
    ASSERT_FALSE(found.ok());
    EXPECT_EQ(found.error().code, Code::backend_failure);
    EXPECT_THAT(found.error().message, HasSubstr("not known"));
}

TEST(Resolve, IsGivenUpInTimeWhereNameServersAreSilentAndAskedOnceByAllWhoWait) {
    const int before = questions;
    {
        const std::lock_guard silent(name_server);
        for (int i = 0; i < 3; ++i) {
            const auto start = Clock::now();
            const auto found = resolve({"one.silent.test", 5}, Milliseconds(100));
            ASSERT_FALSE(found.ok());
            EXPECT_EQ(found.error().code, Code::timed_out);
            EXPECT_THAT(found.error().message, HasSubstr("'one.silent.test' was not looked up within 0.1 s"));
            EXPECT_LT(Clock::now() - start, std::chrono::seconds(10));
        }
        EXPECT_EQ(questions, before + 1) << "the others joined it";
        const auto host = Host::open("rpc://one.silent.test:5", {.connect = Milliseconds(100)});
        ASSERT_FALSE(host.ok());
        EXPECT_THAT(host.error().message,
                    HasSubstr("device 'rpc://one.silent.test:5': no RPC server to use"));
        EXPECT_THAT(host.error().message, HasSubstr("was not looked up within 0.1 s"));
    }
    const auto found = resolve({"one.silent.test", 5}, Milliseconds(60000));
    ASSERT_TRUE(found.ok()) << "the name server answers again";
    const auto& address = reinterpret_cast<const sockaddr_in&>(found.value().front().storage);
    EXPECT_EQ(ntohl(address.sin_addr.s_addr), INADDR_LOOPBACK);
    EXPECT_EQ(ntohs(address.sin_port), 5);
}

/// Listens and takes nobody: a connection to it is neither made nor refused.
class FullHost {
public:
    explicit FullHost(const char* ip, int port) {
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_port = htons(static_cast<std::uint16_t>(port));
        inet_pton(AF_INET, ip, &address.sin_addr);
        if (bind(listener_, reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0 ||
            listen(listener_, 0) != 0)
            throw std::runtime_error("no host that is full");
        for (Socket& client : clients_)
            if (auto made = Socket::connect({ip, port}, Milliseconds(200)); made.ok())
                client = std::move(made).value();
    }
    ~FullHost() { close(listener_); }

private:
    const int listener_ = socket(AF_INET, SOCK_STREAM, 0);
    Socket clients_[4];
};

TEST(Resolve, ASilentAddressOfANameLeavesTimeForTheOthers) {
    const Socket listener = std::move(Socket::listen({"127.0.0.1", 0})).value();
    const FullHost full("127.0.0.2", listener.port());
    const auto silent = Socket::connect({"127.0.0.2", listener.port()}, Milliseconds(300));
    ASSERT_FALSE(silent.ok());
    ASSERT_EQ(silent.error().code, Code::timed_out) << silent.error().message;
    const auto start = Clock::now();
    EXPECT_TRUE(Socket::connect({"two.test", listener.port()}, Milliseconds(1000)).ok());
    EXPECT_GE(Clock::now() - start, Milliseconds(400)) << "the silent one was tried first";
}

}  // namespace
}  // namespace headrace::remote
