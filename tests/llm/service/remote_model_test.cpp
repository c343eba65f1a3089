#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <random>
#include <thread>

#include "headrace/language_model.h"
#include "llm/model/context_memory.h"
#include "llm/model/context_params.h"
#include "llm/model/placement.h"
#include "llm/split_model.h"
#include "llm/tiny_model.h"
#include "remote/relay.h"
#include "remote/rpc_server.h"

namespace headrace::llm {
namespace {

using headrace::testing::delayed_by;
using headrace::testing::Relay;
using headrace::testing::RpcServer;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using namespace std::chrono_literals;

/// Hosts are copies of this process and compute attention as it does, as those of `headrace serve-rpc` do.
class AttentionOfHosts : public ::testing::Environment {
    void SetUp() override { start_llama(); }
};
[[maybe_unused]] const auto* const kAttentionOfHosts =
    ::testing::AddGlobalTestEnvironment(new AttentionOfHosts);

constexpr const char* kStory = "Tell me a story about a fox.";

Settings on_hosts(const std::vector<std::string>& hosts, const std::vector<float>& split = {}) {
    Settings settings = tiny_settings();
    settings.model.devices = hosts;
    settings.model.tensor_split = split;
    settings.model.fit_margin_mib = 0;
    return settings;
}

/// This machine's with the kernels that hosts have: ours round otherwise, and near ties fall otherwise.
std::shared_ptr<Engine> local_engine() {
    Settings settings = tiny_settings();
    settings.model.repack = false;
    return tiny_engine(settings);
}

Tokens tokens_of(Engine& engine, const char* text) {
    return ask(engine, question(engine, text))->wait().tokens;
}

std::string config_of(const std::string& device) {
    return fmt::format(
        R"({{"devices": ["{}"], "temp": 0, "n_ctx": 512, "fit_margin_mib": 0, "log_level": "none"}})",
        device);
}

/// What the call threw; an empty message where it did not.
template <class Call>
Error thrown_error(Call call) {
    try {
        call();
    } catch (const Exception& error) {
        return {error.code(), error.what()};
    }
    return {Code::invalid_argument, ""};
}

TEST(Placement, FillsTheFastestPlaceFirstAndUsesNoOtherThatIsNotNeeded) {
    const std::vector<std::uint64_t> layers(10, 100);
    const Place near{"near", 2000, 0.1}, far{"far", 2000, 10};
    EXPECT_THAT(share_layers(layers, std::vector{far, near}, 0), ElementsAre(0, 10));
    EXPECT_THAT(share_layers(layers, std::vector{near, far}, 500), ElementsAre(10, 0));
}

TEST(Placement, GoesOnWithTheNextFastestWhereMemoryEnds) {
    const std::vector<std::uint64_t> layers(10, 100);
    const Place near{"near", 450, 0.1}, middle{"middle", 300, 1}, far{"far", 2000, 10};
    EXPECT_THAT(share_layers(layers, std::vector{far, near, middle}, 0), ElementsAre(3, 4, 3));
    EXPECT_THAT(share_layers(layers, std::vector{far, near, middle}, 100), ElementsAre(5, 3, 2));
}

TEST(Placement, LeavesOutWhatFitsNowhere) {
    const std::vector<std::uint64_t> layers(10, 100);
    EXPECT_THAT(share_layers(layers, std::vector{Place{"a", 250, 1}, Place{"b", 50, 1}}, 0),
                ElementsAre(2, 0));
}

TEST(RemoteModel, OnOneToThreeHostsGeneratesTheLocalModelsTokens) {
    const RpcServer servers[3];
    const Tokens local = tokens_of(*local_engine(), kStory);
    ASSERT_GT(local.size(), 20u);
    std::vector<std::string> hosts;
    for (const RpcServer& server : servers) {
        hosts.push_back(server.device());
        const auto engine = tiny_engine(on_hosts(hosts, std::vector<float>(hosts.size(), 1)));
        EXPECT_EQ(tokens_of(*engine, kStory), local) << hosts.size();
        EXPECT_EQ(engine->model().hosts().size(), hosts.size());
        for (const auto& host : engine->model().hosts()) EXPECT_GT(host->traffic().round_trips, local.size());
    }
}

TEST(RemoteModel, InSeveralFilesIsPlacedAsOneInASingleFile) {
    const RpcServer servers[2];
    const SplitModel split(tiny_model());
    const Settings settings = on_hosts({servers[0].device(), servers[1].device()});
    const auto runner = open_runner(split.part(0), settings);
    ASSERT_TRUE(runner.ok()) << runner.error().message;
    EXPECT_EQ(runner.value().engine->model().hosts().size(), 1u) << "one has room for all";
    EXPECT_EQ(tokens_of(*runner.value().engine, kStory), tokens_of(*local_engine(), kStory));
}

TEST(RemoteModel, KeepsToOneHostWhenThatHasRoomForAll) {
    const RpcServer servers[2];
    const auto engine = tiny_engine(on_hosts({servers[0].device(), servers[1].device()}));
    EXPECT_EQ(engine->model().hosts().size(), 1u);
    EXPECT_EQ(tokens_of(*engine, "What is 2+3?"), tokens_of(*local_engine(), "What is 2+3?"));
}

TEST(RemoteModel, IsPlacedOnTheHostWithTheFasterLinkWhicheverIsNamedFirst) {
    const RpcServer near, server;
    const Relay far(server.port(), delayed_by(10ms));
    for (const auto& hosts : {std::vector{near.device(), far.device()}, {far.device(), near.device()}}) {
        const auto engine = tiny_engine(on_hosts(hosts));
        ASSERT_EQ(engine->model().hosts().size(), 1u);
        EXPECT_EQ(engine->model().hosts().front()->name(), near.device());
        EXPECT_EQ(tokens_of(*engine, "What is 2+3?"), tokens_of(*local_engine(), "What is 2+3?"));
    }
}

TEST(RemoteModel, OfAHostWithTooLittleMemoryIsAnErrorWithTheNumbers) {
    const RpcServer server;
    Settings settings = on_hosts({server.device()});
    settings.model.fit_margin_mib = 1 << 24;  // 16 TiB
    const auto runner = open_runner(tiny_model(), settings);
    ASSERT_FALSE(runner.ok());
    EXPECT_EQ(runner.error().code, Code::out_of_memory);
    EXPECT_THAT(runner.error().message, HasSubstr(server.device()));
    EXPECT_THAT(runner.error().message, HasSubstr("GiB free"));
}

/// What the tiny model's layers would get on these hosts if its context took so much.
Result<Placement> placed_with(const ContextNeeds& needs, const std::vector<std::string>& hosts,
                              const std::vector<float>& split = {}) {
    return place_model(inspect_model_file(tiny_model()).value(), on_hosts(hosts, split).model, needs);
}

std::uint64_t free_on(const RpcServer& server) {
    return remote::Host::open(server.device()).value()->memory(0).free;
}

TEST(RemoteModel, HasRoomForItsCacheWhereItsLayersAre) {
    const RpcServer servers[2];
    const std::vector<std::string> hosts{servers[0].device(), servers[1].device()};
    const auto alone = placed_with({}, hosts);
    ASSERT_TRUE(alone.ok()) << alone.error().message;
    ASSERT_EQ(alone.value().split.size(), 1u) << "the weights have room on one";
    const auto shared = placed_with({.cache = free_on(servers[0]) / 4 * 5}, hosts);
    ASSERT_TRUE(shared.ok()) << shared.error().message;
    EXPECT_EQ(shared.value().split.size(), 2u) << "the caches have not";
    EXPECT_EQ(shared.value().n_gpu_layers, alone.value().n_gpu_layers);
    const auto partly = placed_with({.cache = free_on(servers[0]) * 4}, hosts);
    ASSERT_TRUE(partly.ok()) << partly.error().message;
    EXPECT_LT(partly.value().n_gpu_layers, alone.value().n_gpu_layers);
    EXPECT_GT(partly.value().local_bytes, 0u);
}

TEST(RemoteModel, LeavesRoomToComputeOnEachHost) {
    const RpcServer server;
    const std::uint64_t room = free_on(server);
    EXPECT_TRUE(placed_with({.compute = room / 2}, {server.device()}).ok());
    for (const std::vector<float>& split : {std::vector<float>{}, std::vector<float>{1}}) {
        const auto placement = placed_with({.compute = room}, {server.device()}, split);
        ASSERT_FALSE(placement.ok());
        EXPECT_EQ(placement.error().code, Code::out_of_memory);
        for (const std::string& part :
             {server.device(), std::string("GiB free"), std::string("GiB to compute"),
              std::string("fit_margin_mib"), std::string("n_ctx")})
            EXPECT_THAT(placement.error().message, HasSubstr(part));
    }
}

TEST(RemoteModel, WithSharesThatAHostsMemoryDoesNotHoldIsAnErrorWithTheNumbers) {
    const RpcServer servers[2];
    const auto placement =
        placed_with({.cache = free_on(servers[0]) * 3}, {servers[0].device(), servers[1].device()}, {1, 1});
    ASSERT_FALSE(placement.ok());
    EXPECT_EQ(placement.error().code, Code::out_of_memory);
    EXPECT_THAT(placement.error().message, HasSubstr(servers[0].device()));
    EXPECT_THAT(placement.error().message, HasSubstr("with their part of the context need"));
    EXPECT_THAT(placement.error().message, HasSubstr("tensor_split"));
}

TEST(RemoteModel, KnowsWhatItsContextTakesBeforeItIsLoaded) {
    start_llama();
    const ModelFile file = inspect_model_file(tiny_model()).value();
    ContextSettings settings = tiny_settings().context;
    const ContextNeeds small = measure_context(tiny_model(), file, settings);
    EXPECT_GT(small.compute, 0u);
    const auto engine = tiny_engine();
    llama_context_params params = context_params(engine->model(), settings).value();
    EXPECT_EQ(small.cache, context_bytes(engine->model(), params));
    settings.n_ctx *= 64;
    const ContextNeeds large = measure_context(tiny_model(), file, settings);
    EXPECT_EQ(large.cache, 64 * small.cache);
    EXPECT_GT(large.compute, small.compute);
    settings.n_ctx *= 1024;  // beyond what is laid out for it
    const ContextNeeds huge = measure_context(tiny_model(), file, settings);
    EXPECT_EQ(huge.cache, 1024 * large.cache);
    EXPECT_GT(huge.compute, 500 * (large.compute - small.compute));
    settings.offload_kqv = false;
    EXPECT_EQ(measure_context(tiny_model(), file, settings).cache, 0u) << "it stays here";
}

TEST(RemoteModel, OfAContextThatItsHostCannotHoldIsRefusedBeforeItIsSentThere) {
    const RpcServer server;
    Settings settings = on_hosts({server.device()});
    settings.context.n_ctx = 1 << 28;
    const auto runner = open_runner(tiny_model(), settings);
    ASSERT_FALSE(runner.ok());
    EXPECT_EQ(runner.error().code, Code::out_of_memory);
    EXPECT_THAT(runner.error().message, HasSubstr(server.device()));
    EXPECT_THAT(runner.error().message, HasSubstr("smaller n_ctx"));
}

TEST(RemoteModel, WhoseHostCannotAllocateNamesItAsTheUserDid) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "sanitizers end a process that runs out of memory";
#endif
    const RpcServer server(std::size_t{2} << 20);
    Settings settings = on_hosts({server.device()});
    settings.context.n_ctx = 1 << 17;
    const auto runner = open_runner(tiny_model(), settings);
    ASSERT_FALSE(runner.ok());
    EXPECT_THAT(runner.error().message, HasSubstr("allocate"));
    EXPECT_THAT(runner.error().message, HasSubstr(server.device()));
    EXPECT_THAT(runner.error().message, Not(HasSubstr("[127.0.0.1:"))) << "the link's own port";
}

TEST(RemoteModel, OfAnUnreachableHostIsAnErrorThatNamesIt) {
    const auto runner = open_runner(tiny_model(), on_hosts({"rpc://127.0.0.1:1"}));
    ASSERT_FALSE(runner.ok());
    EXPECT_THAT(runner.error().message, HasSubstr("rpc://127.0.0.1:1"));
}

TEST(RemoteModel, LosesItsHostInTheMiddleOfAnAnswerAndIsLoadedAgainWhenItIsBack) {
    RpcServer server;
    LanguageModel model =
        LanguageModel::load(tiny_model(), {.parameters = Parameters::from_json(config_of(server.device()))});
    headrace::Generation answer = model.stream(kStory);
    ASSERT_TRUE(answer.next());
    server.stop();
    const auto start = Clock::now();
    const auto lost = thrown_error([&] {
        while (answer.next()) continue;
    });
    EXPECT_LT(Clock::now() - start, 30s);
    EXPECT_EQ(lost.code, Code::backend_failure);
    EXPECT_THAT(lost.message, HasSubstr(server.device() + "' was lost"));

    const auto away = thrown_error([&] { model.generate("What is 2+3?"); });
    EXPECT_THAT(away.message, HasSubstr("cannot be loaded again"));
    server.start();
    EXPECT_EQ(model.generate("What is 2+3?").text, "2+3=5");
}

TEST(RemoteModel, ThatIsLoadedAgainDoesNotUndoASwapMadeMeanwhile) {
    RpcServer server;
    enum { passes, breaks, holds } link = passes;
    bool held = false;
    std::mutex mutex;
    std::condition_variable changed;
    const auto set = [&](auto state) {
        const std::lock_guard lock(mutex);
        link = state;
        changed.notify_all();
    };
    const Relay relay(server.port(), [&](Relay::Bytes&) {
        std::unique_lock lock(mutex);
        if (link == holds) held = true, changed.notify_all();
        changed.wait(lock, [&] { return link != holds; });
        return link == passes;
    });
    LanguageModel model =
        LanguageModel::load(tiny_model(), {.parameters = Parameters::from_json(config_of(relay.device()))});
    set(breaks);
    EXPECT_NE(thrown_error([&] { model.generate(kStory); }).message, "") << "the host is lost";
    set(holds);
    std::thread waiting([&] { EXPECT_EQ(thrown_error([&] { model.generate(kStory); }).message, ""); });
    {
        std::unique_lock lock(mutex);
        EXPECT_TRUE(changed.wait_for(lock, 20s, [&] { return held; })) << "the model is being loaded again";
    }
    const auto here = thrown_error([&] {
        model.replace(tiny_model(), {.parameters = {{"temp", 0}, {"n_ctx", 512}, {"log_level", "none"}}});
    });
    set(passes);
    waiting.join();
    EXPECT_EQ(here.message, "");
    server.stop();
    EXPECT_EQ(model.generate("What is 2+3?").text, "2+3=5")
        << "the model that replaced the other needs no host";
}

TEST(RemoteModel, GivesEachOfManyRequestsTheErrorWhenTheHostIsLost) {
    RpcServer server;
    const auto engine = tiny_engine(on_hosts({server.device()}));
    std::vector<std::shared_ptr<Generation>> running;
    for (int i = 0; i < 20; ++i) running.push_back(ask(*engine, question(*engine, kStory)));
    ASSERT_TRUE(running.front()->next().ok()) << "they have begun";
    server.stop();
    int failed = 0;
    for (auto& generation : running) {
        const Outcome& outcome = generation->wait();
        if (!outcome.failed()) continue;
        ++failed;
        EXPECT_THAT(outcome.detail, HasSubstr("was lost"));
    }
    EXPECT_GT(failed, 0);
    EXPECT_FALSE(engine->submit(question(*engine, kStory)).ok());
}

TEST(RemoteModel, ARequestsDeadlineHoldsWhileItsHostHangs) {
    const RpcServer server;
    const auto engine = tiny_engine(on_hosts({server.device()}));
    tokens_of(*engine, "What is 2+3?");
    server.freeze();
    RequestSettings settings = tiny_settings().request;
    settings.timeout_ms = 400;
    const auto start = Clock::now();
    const Outcome outcome = ask(*engine, question(*engine, kStory, settings))->wait();
    EXPECT_EQ(outcome.reason, StopReason::timed_out);
    EXPECT_THAT(outcome.detail, HasSubstr("timeout_ms 400"));
    EXPECT_LT(Clock::now() - start, 20s);
    server.thaw();
    EXPECT_EQ(tokens_of(*engine, "What is 2+3?"), tokens_of(*local_engine(), "What is 2+3?"))
        << "a host that was only slow is still there";
}

TEST(RemoteModel, ForVectorsKeepsARequestsDeadlineWhileItsHostHangs) {
    const RpcServer server;
    Settings settings = on_hosts({server.device()});
    settings.context.embeddings = true;
    settings.context.pooling = "mean";
    const auto runner = open_runner(tiny_model(), settings);
    ASSERT_TRUE(runner.ok()) << runner.error().message;
    Embedder& embedder = *runner.value().embedder;
    RequestSettings request;
    const auto expected = embedder.embed({kStory}, request);
    ASSERT_TRUE(expected.ok()) << expected.error().message;
    server.freeze();
    request.timeout_ms = 400;
    const auto start = Clock::now();
    const auto late = embedder.embed({kStory}, request);
    ASSERT_FALSE(late.ok());
    EXPECT_EQ(late.error().code, Code::timed_out);
    EXPECT_LT(Clock::now() - start, 20s);
    server.thaw();
    const auto again = embedder.embed({kStory}, RequestSettings());
    ASSERT_TRUE(again.ok()) << again.error().message;
    EXPECT_EQ(again.value(), expected.value()) << "a host that was only slow is still there";
}

TEST(RemoteModel, TwoModelsOnOneHostDoNotDisturbEachOther) {
    const RpcServer server;
    const Tokens expected = tokens_of(*local_engine(), kStory);
    Settings settings = on_hosts({server.device()});
    const auto first = tiny_engine(settings);
    EXPECT_EQ(tokens_of(*first, kStory), expected);
    for (int i = 0; i < 3; ++i) {
        settings.context.n_ctx += 256;
        const auto second = tiny_engine(settings);
        const auto other = ask(*second, question(*second, kStory));
        EXPECT_EQ(tokens_of(*first, kStory), expected);
        EXPECT_EQ(other->wait().tokens, expected);
    }  // its memory is freed there
    EXPECT_EQ(tokens_of(*first, kStory), expected);
}

TEST(RemoteModel, AHostThatSendsGarbageFailsRequestsAndNothingElse) {
    const RpcServer server;
    int lost = 0;
    for (unsigned seed = 1; seed <= 12; ++seed) {
        SCOPED_TRACE(seed);
        std::mt19937 random(seed);
        std::atomic<bool> lies = seed % 3 == 0;  // from the load on
        const Relay relay(server.port(), [&](Relay::Bytes& bytes) {
            if (!lies || random() % 10) return true;
            if (random() % 2)
                bytes.resize(random() % bytes.size());
            else
                bytes[random() % bytes.size()] ^= static_cast<std::uint8_t>(1 + random() % 255);
            return true;
        });
        Settings settings = on_hosts({relay.device()});
        settings.model.host_timeout_ms = 200;
        const auto runner = open_runner(tiny_model(), settings);
        lost += !runner.ok();
        if (!runner.ok()) continue;
        lies = true;
        Engine& engine = *runner.value().engine;
        for (int i = 0; i < 2; ++i)
            if (auto generation = engine.submit(question(engine, kStory)); generation.ok())
                generation.value()->wait();
        lost += engine.is_lost();
    }
    EXPECT_GE(lost, 6);
}

}  // namespace
}  // namespace headrace::llm
