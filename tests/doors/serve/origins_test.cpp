#include "doors/serve/origins.h"

#include <gtest/gtest.h>

namespace headrace::serve {
namespace {

TEST(Origins, AreRefusedUnlessTheyAreNamed) {
    EXPECT_FALSE(allows_origin("", "http://a.example"));
    EXPECT_TRUE(allows_origin("*", "http://a.example"));
    EXPECT_TRUE(allows_origin("http://b.example,http://a.example", "http://a.example"));
    EXPECT_FALSE(allows_origin("http://a.example", "http://a.example.evil"));
    EXPECT_TRUE(allows_origin("localhost", "http://localhost:3000"));
    EXPECT_TRUE(allows_origin("localhost", "http://[::1]:3000"));
    EXPECT_TRUE(allows_origin("localhost", "https://127.0.0.1"));
    EXPECT_FALSE(allows_origin("localhost", "http://localhost.evil"));
    EXPECT_FALSE(allows_origin("localhost", "null"));
}

TEST(Hosts, OfThisMachineAreNamesThatNobodyElseCanHave) {
    for (const char* host :
         {"localhost", "LocalHost", "app.localhost", "127.0.0.1", "127.1.2.3", "::1", "[::1]"})
        EXPECT_TRUE(is_loopback(host)) << host;
    for (const char* host : {"", "localhost.evil", "evil", "127.evil.example", "127.0.0.1.evil", "10.0.0.1",
                             "0.0.0.0", "[::2]", ".localhost"})
        EXPECT_FALSE(is_loopback(host)) << host;
}

TEST(Hosts, OfAServerAreAllLoopbackOrNot) {
    EXPECT_TRUE(are_loopback({"127.0.0.1", "::1"}));
    EXPECT_TRUE(are_loopback({"/run/headrace.sock", "localhost"}));
    EXPECT_FALSE(are_loopback({"127.0.0.1", "0.0.0.0"}));
    EXPECT_FALSE(are_loopback({"/run/headrace.sock"})) << "no page reaches it";
}

TEST(Hosts, AreTakenByNameWithAnyPort) {
    for (const char* authority : {"", "localhost", "localhost:8080", "127.0.0.1:1", "[::1]:8080", "[::1]"})
        EXPECT_TRUE(allows_host("", authority)) << authority;
    for (const char* authority : {"evil.example", "evil.example:8080", "localhost.evil:8080", "[::1", "["})
        EXPECT_FALSE(allows_host("", authority)) << authority;
    EXPECT_TRUE(allows_host("a.example,llm.example", "LLM.example:8080"));
    EXPECT_TRUE(allows_host("llm.example:8080", "llm.example:8080"));
    EXPECT_FALSE(allows_host("llm.example:8080", "llm.example:80"));
    EXPECT_FALSE(allows_host("llm.example", "llm.example.evil"));
    EXPECT_TRUE(allows_host("*", "evil.example"));
}

}  // namespace
}  // namespace headrace::serve
