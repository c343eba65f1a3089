#include <gmock/gmock.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <map>
#include <thread>

#include "ggml-backend.h"
#include "remote/host.h"
#include "remote/relay.h"
#include "remote/rpc_server.h"
#include "sample_outcome.h"

namespace headrace {
namespace {

using namespace testing;

/// gelu(x · w + b), a remainder in the middle that ggml lacks, then another dense layer.
Graph two_layers(bool with_remainder) {
    TestGraph g;
    const ValueId x = g.input("x", {8, 32});
    const auto dense = [&](ValueId v, unsigned seed) {
        const ValueId w = g.constant<float>({32, 32}, random_floats(32 * 32, seed));
        const ValueId b = g.constant<float>({32}, random_floats(32, seed + 1));
        return g.op("gelu", {g.op("add", {g.op("matmul", {v, w}), b})});
    };
    ValueId v = dense(x, 1);
    if (with_remainder) v = g.op("fmod", {v, g.constant<float>({}, {3})});
    g.output("y", dense(v, 3));
    return g.finish();
}

const std::vector<std::vector<std::int64_t>> kShapes{{8, 32}};

std::vector<float> on_cpu(bool with_remainder, const std::vector<float>& x) {
    Session session(compile(two_layers(with_remainder)));
    return run(session, kShapes, {x})[0];
}

TEST(Rpc, AGraphOfNativeOpsRunsOnTheRemoteDeviceInOneSplit) {
    const RpcServer server;
    const auto x = random_floats(8 * 32, 9);
    Session session(compile(two_layers(false), {.device = server.device()}));
    expect_close(run(session, kShapes, {x})[0], on_cpu(false, x), 1e-5f);
    const RunStats stats = session.stats();
    EXPECT_EQ(stats.splits, 1);
    ASSERT_EQ(stats.nodes.size(), 2u);
    for (const NodeStats& node : stats.nodes) {  // the CPU's packed kernel has a ggml lowering elsewhere
        EXPECT_EQ(node.title, "fused_matmul");
        EXPECT_EQ(node.implementation, "ggml");
        EXPECT_EQ(node.device, server.device());
    }
}

TEST(Rpc, WhatTheDeviceLacksRunsOnTheCpuBetweenTwoSplits) {
    const RpcServer server;
    const auto x = random_floats(8 * 32, 9);
    Session session(compile(two_layers(true), {.device = server.device()}));
    for (int i = 0; i < 2; ++i) expect_close(run(session, kShapes, {x})[0], on_cpu(true, x), 1e-5f);
    const RunStats stats = session.stats();
    EXPECT_EQ(stats.splits, 3);
    ASSERT_EQ(stats.nodes.size(), 3u);
    EXPECT_EQ(stats.nodes[1].title, "fmod");
    EXPECT_EQ(stats.nodes[1].device, "CPU");
    EXPECT_EQ(stats.nodes[2].device, server.device());
}

TEST(Rpc, AStateWrittenBesideARemoteDevicePersists) {
    const RpcServer server;
    TestGraph g;
    const ValueId x = g.input("x", {4});
    const ValueId total = g.state("total", {4});
    g.output("sum", g.op("accumulate", {total, g.op("neg", {x})}));
    Session session(compile(g.finish(), {.device = server.device()}));
    EXPECT_EQ(run(session, {{4}}, {{1, 2, 3, 4}})[0], (std::vector<float>{-1, -2, -3, -4}));
    EXPECT_EQ(run(session, {{4}}, {{1, 2, 3, 4}})[0], (std::vector<float>{-2, -4, -6, -8}));
}

TEST(Rpc, AGraphWithoutWorkHandsItsInputThrough) {
    const RpcServer server;
    TestGraph g;
    const ValueId x = g.input("x", {4});
    g.output("y", g.op("identity", {x}));
    g.output("c", g.constant<float>({2}, {7, 8}));
    Session session(compile(g.finish(), {.device = server.device()}));
    const auto out = run(session, {{4}}, {{1, 2, 3, 4}});
    EXPECT_EQ(out[0], (std::vector<float>{1, 2, 3, 4}));
    EXPECT_EQ(out[1], (std::vector<float>{7, 8}));
}

TEST(Rpc, AServerThatWentAwayIsAnErrorForNewSessionsAndNoneForTheListOfDevices) {
    auto server = std::make_unique<RpcServer>();
    const std::string device = server->device();
    {
        Session session(compile(two_layers(false), {.device = device}));
        run(session, kShapes, {random_floats(8 * 32, 9)});
        server.reset();
        EXPECT_THAT(devices(), ::testing::Contains(::testing::Field(&DeviceInfo::name, device)));
    }
    EXPECT_THAT(devices(), ::testing::Not(::testing::Contains(::testing::Field(&DeviceInfo::name, device))));
    const auto message = message_of(
        [&] {
            Session session(compile(two_layers(false), {.device = device}));
            run(session, kShapes, {random_floats(8 * 32, 9)});
        },
        Code::backend_failure);
    EXPECT_NE(message.find(device), std::string::npos) << message;
}

TEST(Rpc, ASessionGoesOnWhenItsHostIsBack) {
    RpcServer server;
    const auto x = random_floats(8 * 32, 9);
    Session session(compile(two_layers(true), {.device = server.device()}));
    run(session, kShapes, {x});
    server.stop();
    for (int i = 0; i < 2; ++i) {
        const auto message = message_of([&] { run(session, kShapes, {x}); }, Code::backend_failure);
        EXPECT_NE(message.find(server.device()), std::string::npos) << message;
    }
    server.start();
    expect_close(run(session, kShapes, {x})[0], on_cpu(true, x), 1e-5f);
}

TEST(Rpc, StatesThatAHostLostInARunMaySpoilAreNotGoneOnWith) {
    RpcServer server;
    TestGraph g;
    const ValueId x = g.input("x", {4});
    const ValueId total = g.state("total", {4});
    g.output("sum", g.op("accumulate", {total, g.op("neg", {x})}));
    Session session(compile(g.finish(), {.device = server.device()}));
    run(session, {{4}}, {{1, 2, 3, 4}});
    server.freeze();  // so that the run has begun when the host is lost
    std::thread failing([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(300));
        server.stop();
    });
    message_of([&] { run(session, {{4}}, {{1, 2, 3, 4}}); }, Code::backend_failure);
    failing.join();
    server.start();
    const auto message = message_of([&] { run(session, {{4}}, {{1, 2, 3, 4}}); }, Code::invalid_state);
    EXPECT_NE(message.find("reset_states()"), std::string::npos) << message;
    session.reset_states();
    EXPECT_EQ(run(session, {{4}}, {{1, 2, 3, 4}})[0], (std::vector<float>{-1, -2, -3, -4}));
}

TEST(Rpc, SessionsOfOneExecutableShareAHostThatComesBack) {
    RpcServer server;
    const auto x = random_floats(8 * 32, 9);
    const Executable executable = compile(two_layers(false), {.device = server.device()});
    Session first(executable), second(executable);
    for (Session* session : {&first, &second}) run(*session, kShapes, {x});
    server.stop();
    message_of([&] { run(first, kShapes, {x}); }, Code::backend_failure);
    server.start();
    for (Session* session : {&first, &second})
        expect_close(run(*session, kShapes, {x})[0], on_cpu(false, x), 1e-5f);
}

/// A server that says it has that much free memory.
class SmallHost {
public:
    explicit SmallHost(std::uint64_t bytes_free)
        : free(bytes_free), relay_(server.port(), [this](Relay::Bytes& bytes) {
              std::size_t unused = 0, total = 0;
              ggml_backend_dev_memory(ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU), &unused,
                                      &total);
              const auto* wanted = reinterpret_cast<const std::uint8_t*>(&total);
              const auto at = std::find_end(bytes.begin(), bytes.end(), wanted, wanted + 8);
              const std::uint64_t said = free;
              if (at != bytes.end() && at - bytes.begin() >= 8)
                  std::memcpy(&*(at - 8), &said, 8);  // it comes before the total, and may be the same
              return true;
          }) {}
    std::string device() const { return relay_.device(); }
    RpcServer server;
    std::atomic<std::uint64_t> free;

private:
    Relay relay_;
};

/// Dense layers of 4,224 bytes each.
Graph six_layers() {
    TestGraph g;
    ValueId v = g.input("x", {8, 32});
    for (unsigned layer = 0; layer < 6; ++layer) {
        const ValueId w = g.constant<float>({32, 32}, random_floats(32 * 32, 2 * layer));
        const ValueId b = g.constant<float>({32}, random_floats(32, 2 * layer + 1));
        v = g.op("gelu", {g.op("add", {g.op("matmul", {v, w}), b})});
    }
    g.output("y", v);
    return g.finish();
}

TEST(Rpc, HostsShareTheNodesOfAGraphByTheirMemory) {
    SmallHost first(10000), second(10000), third(10000);
    const std::string devices = first.device() + "," + second.device() + "," + third.device();
    const auto x = random_floats(8 * 32, 9);
    Session local(compile(six_layers()));
    const auto expected = run(local, kShapes, {x})[0];
    Session session(compile(six_layers(), {.device = devices}));
    for (int i = 0; i < 2; ++i) expect_close(run(session, kShapes, {x})[0], expected, 1e-4f);
    const RunStats stats = session.stats();
    EXPECT_EQ(stats.splits, 3);
    ASSERT_EQ(stats.nodes.size(), 6u);
    std::map<std::string, int> nodes;
    for (const NodeStats& node : stats.nodes) ++nodes[node.device];
    EXPECT_EQ(nodes,
              (std::map<std::string, int>{{first.device(), 2}, {second.device(), 2}, {third.device(), 2}}));
    second.server.stop();
    const auto message = message_of([&] { run(session, kShapes, {x}); }, Code::backend_failure);
    EXPECT_NE(message.find(second.device()), std::string::npos) << message;
    second.server.start();
    expect_close(run(session, kShapes, {x})[0], expected, 1e-4f);
}

TEST(Rpc, AGraphThatFitsOneHostTakesNoOther) {
    const RpcServer first, second;
    Session session(compile(six_layers(), {.device = first.device() + "," + second.device()}));
    run(session, kShapes, {random_floats(8 * 32, 9)});
    EXPECT_EQ(session.stats().splits, 1);
}

TEST(Rpc, AGraphBeginsOnTheHostWithTheFasterLinkWhicheverIsNamedFirst) {
    const RpcServer near, server;
    const Relay far(server.port(), delayed_by(std::chrono::milliseconds(10)));
    for (const std::string& devices :
         {near.device() + "," + far.device(), far.device() + "," + near.device()}) {
        Session session(compile(six_layers(), {.device = devices}));
        run(session, kShapes, {random_floats(8 * 32, 9)});
        for (const NodeStats& node : session.stats().nodes) EXPECT_EQ(node.device, near.device());
    }
}

TEST(Rpc, HostsWithTooLittleMemoryTogetherAreAnErrorWithTheNumbers) {
    const SmallHost first(10000), second(10000);
    const auto message = message_of(
        [&] {
            Session session(compile(six_layers(), {.device = first.device() + "," + second.device()}));
            run(session, kShapes, {random_floats(8 * 32, 9)});
        },
        Code::out_of_memory);
    for (const char* part : {"25344 bytes", "2 hosts", "18000"})
        EXPECT_NE(message.find(part), std::string::npos) << message;
}

TEST(Rpc, OneHostWithTooLittleMemoryIsAnErrorWithTheNumbers) {
    const SmallHost host(10000);
    const auto message = message_of(
        [&] {
            Session session(compile(six_layers(), {.device = host.device()}));
            run(session, kShapes, {random_floats(8 * 32, 9)});
        },
        Code::out_of_memory);
    for (const std::string& part : {host.device(), std::string("25344 bytes"), std::string("room for 9000")})
        EXPECT_NE(message.find(part), std::string::npos) << message;
}

TEST(Rpc, SessionsOfOneExecutableUseTheWeightsWhereTheyAre) {
    SmallHost first(10000), second(20000);
    const Executable executable = compile(six_layers(), {.device = first.device() + ", " + second.device()});
    std::map<std::string, int> expected;
    for (int i = 0; i < 3; ++i) {
        Session session(executable);
        run(session, kShapes, {random_floats(8 * 32, 9)});
        std::map<std::string, int> nodes;
        for (const NodeStats& node : session.stats().nodes) ++nodes[node.device];
        EXPECT_EQ(nodes.size(), 2u);
        if (i == 0) expected = nodes;
        EXPECT_EQ(nodes, expected);
        first.free = 100;  // what was taken by the weights, which are there
    }
}

TEST(Rpc, ListsOfHostsAreChecked) {
    const RpcServer server;
    const auto refused = [](const std::string& device) {
        return message_of([&] { compile(two_layers(false), {.device = device}); }, Code::invalid_argument);
    };
    EXPECT_NE(refused(server.device() + "," + server.device()).find("named twice"), std::string::npos);
    EXPECT_NE(refused(server.device() + ",").find("rpc://host:port"), std::string::npos);
    EXPECT_NE(refused(server.device() + ",cpu").find("cpu"), std::string::npos);
}

TEST(Rpc, AnUnreachableServerIsAnErrorThatNamesIt) {
    const auto message = message_of([] { compile(two_layers(false), {.device = "rpc://127.0.0.1:1"}); },
                                    Code::backend_failure);
    EXPECT_NE(message.find("rpc://127.0.0.1:1"), std::string::npos) << message;
}

TEST(Rpc, EverySampleOfTheCatalogAgreesOnARemoteDevice) {
    const RpcServer server;
    const auto host =
        remote::Host::open(server.device());  // kept, or each sample would measure the link anew
    ASSERT_TRUE(host.ok()) << host.error().message;
    int on_device = 0;
    for (const Case& c : all_cases()) {
        SCOPED_TRACE(std::string(c.op->name) + " " + std::to_string(c.index));
        const Built built = build(c);
        const Outcome reference = execute(built, {.packed_kernels = false, .native_ops = false});
        const Outcome remote = execute(built, {.device = server.device()});
        on_device += remote.device == server.device();
        for (std::size_t i = 0; i < remote.outputs.size(); ++i)
            expect_same(built.graph.value(built.graph.outputs[i].second).type, remote.outputs[i],
                        reference.outputs[i], c.sample.tolerance);
    }
    EXPECT_GT(on_device, 100);
}

}  // namespace
}  // namespace headrace
