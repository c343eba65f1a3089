#include "doors/serve/pool/model_schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <set>

namespace headrace::serve {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;
using Kind = ModelSchedule::Action::Kind;
using State = ModelSchedule::State;

constexpr std::uint64_t kMib = 1 << 20;

/// Does what a schedule says, at once or when it is told to, and checks what holds at every moment.
class Pool {
public:
    explicit Pool(const ModelSchedule::Limits& limits) : schedule(limits), limits_(limits) {}

    void offer(const std::vector<ModelSchedule::Model>& models) {
        for (const auto& model : models) pinned_[model.id] = model.is_pinned;
        schedule.configure(models, now);
    }
    ModelSchedule::Ticket ask(const std::string& id) {
        const auto ticket = schedule.ask(id, now);
        waiting[ticket] = id;
        turn();
        return ticket;
    }
    void set_limits(const ModelSchedule::Limits& limits) {
        limits_ = limits;
        schedule.set_limits(limits);
        turn();
    }
    void drop(ModelSchedule::Ticket ticket) {
        schedule.drop(ticket, now);
        waiting.erase(ticket);
        turn();
    }
    void end(ModelSchedule::Ticket ticket) {
        schedule.release(running.at(ticket), now);
        running.erase(ticket);
        turn();
    }
    void finish_load(const ApiError* error = nullptr) {
        const auto [instance, id] = *loading.begin();
        loading.erase(loading.begin());
        if (error) {
            schedule.failed(id, instance, *error);
        } else {
            in_memory[instance] = id;
            schedule.loaded(instance, {{"", bytes[id]}}, now);
        }
        turn();
    }
    void finish_free() {
        const auto instance = *freeing.begin();
        freeing.erase(freeing.begin());
        in_memory.erase(instance);
        schedule.freed(instance);
        turn();
    }
    void finish_all() {
        while (!loading.empty() || !freeing.empty()) loading.empty() ? finish_free() : finish_load();
    }
    void pass(milliseconds time) {
        now += time;
        turn();
    }
    void turn() {
        for (;;) {
            const ModelSchedule::Action action = schedule.next(now);
            if (action.kind == Kind::wait) {
                until = action.until;
                break;
            }
            perform(action);
        }
        for (auto entry = waiting.begin(); entry != waiting.end();) {
            const auto answer = schedule.answer(entry->first);
            if (!answer) {
                ++entry;
                continue;
            }
            if (answer->granted) {
                EXPECT_EQ(in_memory.at(answer->granted), entry->second);
                EXPECT_FALSE(freeing.contains(answer->granted));
                running[entry->first] = answer->granted;
            } else {
                refused[entry->first] = answer->refused->what();
            }
            entry = waiting.erase(entry);
        }
    }

    ModelSchedule schedule;
    ModelSchedule::Time now{};
    std::optional<ModelSchedule::Time> until;
    std::map<std::string, std::uint64_t> bytes;
    std::map<ModelSchedule::Ticket, std::string> waiting, refused;
    std::map<ModelSchedule::Ticket, ModelSchedule::Instance> running;
    std::map<ModelSchedule::Instance, std::string> loading, in_memory;
    std::set<ModelSchedule::Instance> freeing;
    std::vector<std::string> loads, frees;

private:
    void perform(const ModelSchedule::Action& action) {
        if (action.kind == Kind::measure) return schedule.measured(action.id, {{"", bytes.at(action.id)}});
        if (action.kind == Kind::load) {
            EXPECT_TRUE(loading.empty()) << "two loads at once";
            loading[action.instance] = action.id;
            loads.push_back(action.id);
            return check_limits();
        }
        for (const auto& [ticket, instance] : running)
            EXPECT_NE(instance, action.instance) << action.id << " is freed while it answers";
        EXPECT_TRUE(freeing.insert(action.instance).second);
        frees.push_back(action.id);
    }
    void check_limits() const {
        std::uint64_t all = 0;
        std::size_t models = 0;
        for (const auto* held : {&loading, &in_memory})
            for (const auto& [instance, id] : *held) {
                all += bytes.at(id);
                models += !pinned_.at(id);
            }
        EXPECT_LE(all, limits_.bytes > 0 ? limits_.bytes : all);
        EXPECT_LE(models, limits_.models > 0 ? limits_.models : models);
    }

    ModelSchedule::Limits limits_;
    std::map<std::string, bool> pinned_;
};

/// Models a, b, c ... of one version.
std::vector<ModelSchedule::Model> models(const std::string& ids) {
    std::vector<ModelSchedule::Model> all;
    for (const char id : ids) all.push_back({.id = std::string(1, id), .version = "1"});
    return all;
}

Pool pool_of(const std::string& ids, const ModelSchedule::Limits& limits, std::uint64_t bytes = 100 * kMib) {
    Pool pool(limits);
    for (const char id : ids) pool.bytes[std::string(1, id)] = bytes;
    pool.offer(models(ids));
    return pool;
}

TEST(ModelSchedule, LoadsAModelWhenSomebodyAsksForIt) {
    Pool pool = pool_of("ab", {});
    EXPECT_EQ(pool.schedule.state("a"), State::unloaded);
    const auto first = pool.ask("a"), second = pool.ask("a");
    EXPECT_EQ(pool.schedule.state("a"), State::loading);
    pool.finish_load();
    EXPECT_EQ(pool.running.at(first), pool.running.at(second));
    EXPECT_EQ(pool.schedule.state("a"), State::loaded);
    EXPECT_THAT(pool.loads, testing::ElementsAre("a"));
}

TEST(ModelSchedule, GivesBackTheIdleOneThatWasUsedLeastRecently) {
    Pool pool = pool_of("abc", {.models = 2});
    for (const char* id : {"a", "b", "a"}) {
        const auto ticket = pool.ask(id);
        pool.finish_all();
        pool.pass(seconds(1));
        pool.end(ticket);
    }
    pool.ask("c");
    pool.finish_all();
    EXPECT_THAT(pool.frees, testing::ElementsAre("b"));
    EXPECT_THAT(pool.loads, testing::ElementsAre("a", "b", "c"));
}

TEST(ModelSchedule, GivesIdleModelsBackThatAreAboveLimitsWhichBecameSmaller) {
    for (const ModelSchedule::Limits& smaller : {ModelSchedule::Limits{.models = 1}, {.bytes = 150 * kMib}}) {
        Pool pool = pool_of("abc", {});
        const auto busy = pool.ask("a");
        for (const char* id : {"b", "c"}) {
            const auto ticket = pool.ask(id);
            pool.finish_all();
            pool.end(ticket);
        }
        pool.set_limits(smaller);
        pool.finish_all();
        EXPECT_THAT(pool.frees, testing::UnorderedElementsAre("b", "c"));
        EXPECT_TRUE(pool.running.contains(busy));
    }
}

TEST(ModelSchedule, EndsNoRequestForAnother) {
    Pool pool = pool_of("ab", {.bytes = 150 * kMib});
    const auto long_one = pool.ask("a");
    pool.finish_load();
    const auto other = pool.ask("b");
    for (int i = 0; i < 100; ++i) pool.pass(seconds(10));
    EXPECT_TRUE(pool.running.contains(long_one));
    EXPECT_TRUE(pool.waiting.contains(other));
    pool.end(long_one);
    pool.finish_all();
    EXPECT_TRUE(pool.running.contains(other));
}

TEST(ModelSchedule, LetsNoModelWaitForEverBehindOneThatIsAlwaysAsked) {
    Pool pool = pool_of("ab", {.models = 1});
    auto busy = pool.ask("a");
    pool.pass(seconds(3));
    pool.finish_load();
    const auto other = pool.ask("b");
    for (int second = 0; second < 3; ++second) {
        const auto next = pool.ask("a");
        EXPECT_TRUE(pool.running.contains(next)) << "it takes requests for as long as its load took";
        pool.end(busy);
        busy = next;
        pool.pass(seconds(1));
    }
    const auto queued = pool.ask("a");
    EXPECT_TRUE(pool.waiting.contains(queued));
    EXPECT_EQ(pool.schedule.state("a"), State::leaving);
    pool.end(busy);
    pool.finish_free();
    pool.finish_load();
    EXPECT_TRUE(pool.running.contains(other));
    pool.end(other);
    pool.finish_all();
    EXPECT_TRUE(pool.running.contains(queued)) << "and then it is its turn again";
}

TEST(ModelSchedule, TakesRequestsAgainWhenNobodyWaitsForTheOtherAnyMore) {
    Pool pool = pool_of("ab", {.models = 1});
    const auto running = pool.ask("a");
    pool.finish_load();
    const auto other = pool.ask("b");
    const auto queued = pool.ask("a");
    ASSERT_TRUE(pool.waiting.contains(queued));
    pool.drop(other);
    EXPECT_TRUE(pool.running.contains(queued));
    EXPECT_TRUE(pool.running.contains(running));
    EXPECT_THAT(pool.loads, testing::ElementsAre("a"));
}

TEST(ModelSchedule, KeepsPinnedModelsAndRefusesWhatNeverFitsBesideThem) {
    Pool pool({.bytes = 250 * kMib});
    pool.bytes = {{"a", 200 * kMib}, {"b", 100 * kMib}, {"c", 300 * kMib}};
    auto all = models("abc");
    all[0].is_pinned = true;
    pool.offer(all);
    pool.end([&] {
        const auto ticket = pool.ask("a");
        pool.finish_all();
        return ticket;
    }());
    const auto beside = pool.ask("b"), large = pool.ask("c");
    EXPECT_THAT(pool.refused.at(beside), HasSubstr("b needs 100 MiB"));
    EXPECT_THAT(pool.refused.at(beside), HasSubstr("always stay have 200"));
    EXPECT_THAT(pool.refused.at(large), HasSubstr("--models-memory-mib"));
    EXPECT_EQ(pool.schedule.state("a"), State::loaded);
}

TEST(ModelSchedule, KeepsWhatIsPinnedLaterAndGivesBackWhatIsPinnedNoMore) {
    Pool pool = pool_of("ab", {.bytes = 150 * kMib});
    const auto use = [&](const char* id) {
        const auto ticket = pool.ask(id);
        pool.finish_all();
        if (pool.running.contains(ticket)) pool.end(ticket);
        return ticket;
    };
    use("a");
    auto all = models("ab");
    all[0].is_pinned = true;
    pool.offer(all);
    EXPECT_THAT(pool.refused.at(use("b")), HasSubstr("always stay have 100"));
    pool.offer(models("ab"));
    EXPECT_FALSE(pool.refused.contains(use("b")));
    EXPECT_THAT(pool.frees, testing::ElementsAre("a"));
}

TEST(ModelSchedule, IsPinnedAsTheConfigurationSaysWhenItsLoadEnds) {
    Pool pool = pool_of("ab", {.bytes = 150 * kMib});
    const auto first = pool.ask("a");
    auto all = models("ab");
    all[0].is_pinned = true;
    pool.offer(all);
    pool.finish_load();
    pool.end(first);
    EXPECT_THAT(pool.refused.at(pool.ask("b")), HasSubstr("always stay have 100"));
}

TEST(ModelSchedule, ReplacesAPinnedVersionWhereThereIsRoomForOne) {
    Pool pool = pool_of("a", {.bytes = 150 * kMib});
    auto all = models("a");
    all[0].is_pinned = true;
    all[0].idle_limit = seconds(1);
    pool.offer(all);
    pool.end([&] {
        const auto ticket = pool.ask("a");
        pool.finish_all();
        return ticket;
    }());
    pool.pass(seconds(60));
    EXPECT_TRUE(pool.frees.empty()) << "what is pinned stays, however long nobody asks";
    all[0].version = "2";
    pool.offer(all);
    pool.end(pool.ask("a"));  // by the old one: the request that finds it out
    pool.finish_all();
    const auto ticket = pool.ask("a");
    pool.finish_all();
    EXPECT_TRUE(pool.running.contains(ticket));
    EXPECT_THAT(pool.loads, testing::ElementsAre("a", "a"));
}

TEST(ModelSchedule, CountsWhatALoadHasTakenWhenItComesAgain) {
    ModelSchedule schedule({.bytes = 10 * kMib});
    schedule.configure({{.id = "a"}}, {});
    const auto ticket = schedule.ask("a", {});
    EXPECT_EQ(schedule.next({}).kind, Kind::measure);
    schedule.measured("a", {{"", 2 * kMib}});
    const auto loaded = schedule.next({}).instance;
    schedule.loaded(loaded, {{"", 12 * kMib}}, {});
    schedule.release(schedule.answer(ticket)->granted, {});
    EXPECT_EQ(schedule.next({}).kind, Kind::free) << "it takes more than all may";
    schedule.freed(loaded);
    const auto again = schedule.ask("a", {});
    EXPECT_EQ(schedule.next({}).kind, Kind::wait);
    const auto answer = schedule.answer(again);
    ASSERT_TRUE(answer && answer->refused);
    EXPECT_THAT(answer->refused->what(), HasSubstr("a needs 12 MiB"));
}

TEST(ModelSchedule, MeasuresAnotherVersionAnew) {
    for (const bool by_configuration : {true, false}) {
        Pool pool = pool_of("a", {.bytes = 150 * kMib});
        pool.end([&] {
            const auto ticket = pool.ask("a");
            pool.finish_all();
            return ticket;
        }());
        pool.bytes["a"] = 500 * kMib;
        auto all = models("a");
        all[0].version = "2";
        by_configuration ? pool.offer(all) : pool.schedule.set_version("a", "2");
        pool.ask("a");
        EXPECT_THAT(pool.schedule.failure("a"), HasSubstr("a needs 500 MiB"));
        EXPECT_EQ(pool.schedule.state("a"), State::loaded) << "the old one answers on";
    }
}

TEST(ModelSchedule, EndsTheBusyOneThatWasAskedLeastRecently) {
    Pool pool = pool_of("abc", {.models = 2});
    for (const char* id : {"a", "b"}) {
        pool.ask(id);
        pool.finish_all();
        pool.pass(seconds(1));
    }
    pool.ask("a");
    pool.pass(seconds(10));
    pool.ask("c");
    EXPECT_EQ(pool.schedule.state("a"), State::loaded);
    EXPECT_EQ(pool.schedule.state("b"), State::leaving);
}

TEST(ModelSchedule, CountsOnceWhatSeveralModelsHaveTogether) {
    ModelSchedule schedule({.bytes = 10 * kMib});
    schedule.configure({{.id = "a"}, {.id = "b"}, {.id = "c"}}, {});
    const auto load = [&](const std::string& id, const ModelSchedule::Size& size) {
        schedule.drop(schedule.ask(id, {}), {});
        const auto ticket = schedule.ask(id, {});
        EXPECT_EQ(schedule.next({}).kind, Kind::measure);
        schedule.measured(id, size);
        const ModelSchedule::Action action = schedule.next({});
        if (action.kind != Kind::load) return false;
        schedule.loaded(action.instance, {}, {});
        schedule.release(schedule.answer(ticket)->granted, {});
        return true;
    };
    EXPECT_TRUE(load("a", {{"weights", 6 * kMib}, {"", 2 * kMib}}));
    EXPECT_TRUE(load("b", {{"weights", 6 * kMib}, {"", 2 * kMib}}));
    EXPECT_EQ(schedule.bytes_held(), 10 * kMib);
    EXPECT_FALSE(load("c", {{"", 1 * kMib}}));  // one of them goes first
}

TEST(ModelSchedule, GivesModelsBackThatNobodyUsed) {
    Pool pool = pool_of("a", {});
    auto all = models("a");
    all[0].idle_limit = seconds(60);
    pool.offer(all);
    const auto ticket = pool.ask("a");
    pool.finish_load();
    pool.pass(seconds(600));
    EXPECT_TRUE(pool.frees.empty());
    pool.end(ticket);
    ASSERT_EQ(pool.until, pool.now + seconds(60));
    pool.pass(seconds(59));
    EXPECT_TRUE(pool.frees.empty());
    pool.pass(seconds(1));
    EXPECT_THAT(pool.frees, testing::ElementsAre("a"));
}

TEST(ModelSchedule, PutsANewVersionInPlaceWhileTheOldOneAnswers) {
    Pool pool = pool_of("a", {});
    const auto before = pool.ask("a");
    pool.finish_load();
    pool.schedule.set_version("a", "2");
    const auto meanwhile = pool.ask("a");
    EXPECT_EQ(pool.running.at(meanwhile), pool.running.at(before));
    pool.finish_load();
    const auto after = pool.ask("a");
    EXPECT_NE(pool.running.at(after), pool.running.at(before));
    EXPECT_TRUE(pool.frees.empty());
    pool.end(before);
    pool.end(meanwhile);
    EXPECT_EQ(pool.freeing.size(), 1u);
    EXPECT_TRUE(pool.running.contains(after));
}

TEST(ModelSchedule, LetsTheOldVersionEndFirstWhereThereIsNoRoomForBoth) {
    Pool pool = pool_of("a", {.bytes = 150 * kMib});
    const auto before = pool.ask("a");
    pool.finish_load();
    pool.schedule.set_version("a", "2");
    const auto after = pool.ask("a");
    EXPECT_TRUE(pool.running.contains(after)) << "the request that finds it out";
    const auto later = pool.ask("a");
    EXPECT_TRUE(pool.waiting.contains(later));
    pool.end(before);
    pool.end(after);
    pool.finish_all();
    EXPECT_TRUE(pool.running.contains(later));
}

TEST(ModelSchedule, KeepsTheOldVersionWhereTheNewOneCannotBeLoaded) {
    Pool pool = pool_of("a", {});
    pool.ask("a");
    pool.finish_load();
    pool.schedule.set_version("a", "damaged");
    pool.ask("a");
    const ApiError error(500, "server_error", "it is damaged");
    pool.finish_load(&error);
    const auto later = pool.ask("a");
    EXPECT_TRUE(pool.running.contains(later));
    EXPECT_TRUE(pool.loading.empty()) << "the same version is not tried at every request";
    EXPECT_EQ(pool.schedule.failure("a"), "it is damaged");
    pool.schedule.set_version("a", "3");
    pool.ask("a");
    pool.finish_load();
    EXPECT_EQ(pool.schedule.failure("a"), "");
}

TEST(ModelSchedule, TriesAVersionThatCameWhileAnEarlierOneFailedToLoad) {
    Pool pool = pool_of("a", {});
    pool.ask("a");
    pool.finish_load();
    pool.schedule.set_version("a", "half written");
    pool.ask("a");
    pool.schedule.set_version("a", "whole");
    const ApiError error(500, "server_error", "it is damaged");
    pool.finish_load(&error);
    pool.ask("a");
    EXPECT_EQ(pool.loading.size(), 1u);
    pool.finish_load();
    EXPECT_EQ(pool.schedule.failure("a"), "");
}

TEST(ModelSchedule, TellsAllWhoWaitThatALoadFailedAndTriesAgainWhenAsked) {
    Pool pool = pool_of("a", {});
    const auto first = pool.ask("a"), second = pool.ask("a");
    const ApiError error(500, "server_error", "no such file");
    pool.finish_load(&error);
    EXPECT_EQ(pool.refused.at(first), "no such file");
    EXPECT_EQ(pool.refused.at(second), "no such file");
    const auto third = pool.ask("a");
    pool.finish_load();
    EXPECT_TRUE(pool.running.contains(third));
}

TEST(ModelSchedule, RefusesWhatIsNotThereAndMoreThanMayWait) {
    Pool pool = pool_of("ab", {.waiting = 2});
    EXPECT_THROW(pool.schedule.ask("x", pool.now), ApiError);
    pool.ask("a");
    pool.ask("b");
    try {
        pool.schedule.ask("b", pool.now);
        FAIL();
    } catch (const ApiError& error) {
        EXPECT_EQ(error.status, 503);
        EXPECT_GT(error.retry_after, 0);
    }
    pool.finish_all();
    EXPECT_EQ(pool.running.size(), 2u);
}

TEST(ModelSchedule, TakesModelsOutOnceTheirRequestsHaveEnded) {
    Pool pool = pool_of("ab", {});
    const auto running = pool.ask("a");
    pool.finish_load();
    const auto waiting = pool.ask("b");
    pool.schedule.configure({}, pool.now);
    pool.turn();
    EXPECT_THAT(pool.refused.at(waiting), HasSubstr("any more"));
    pool.finish_load();  // of b, for nobody
    EXPECT_THAT(pool.frees, testing::ElementsAre("b"));
    pool.end(running);
    EXPECT_THAT(pool.frees, testing::ElementsAre("b", "a"));
}

/// What happens to a pool at random; whatever it is, `Pool` checks its limits and that no answer is ended.
class RandomPool : public testing::TestWithParam<int> {
protected:
    std::size_t number(std::size_t below) { return random_() % below; }
    template <class Map>
    auto any_of(const Map& map) {
        return std::next(map.begin(), static_cast<std::ptrdiff_t>(number(map.size())));
    }
    void configure(Pool& pool) {
        std::vector<ModelSchedule::Model> all;
        for (const char id : std::string("abcdefg"))
            if (number(8) > 0)
                all.push_back({.id = std::string(1, id),
                               .version = std::to_string(number(2)),
                               .is_pinned = id == 'a',
                               .idle_limit = id == 'b' ? milliseconds(500) : milliseconds(0)});
        pool.offer(all);
        pool.turn();
    }
    void step(Pool& pool) {
        const ApiError error(500, "server_error", "it failed");
        const std::string id(1, "abcdefg"[number(7)]);
        switch (number(10)) {
            case 0:
            case 1:
            case 2: try { pool.ask(id);
                } catch (const ApiError&) {  // it was taken out, or too many wait
                }
                return;
            case 3:
                if (!pool.waiting.empty()) pool.drop(any_of(pool.waiting)->first);
                return;
            case 4:
            case 5:
                if (!pool.running.empty()) pool.end(any_of(pool.running)->first);
                return;
            case 6:
                if (!pool.loading.empty()) pool.finish_load(number(5) == 0 ? &error : nullptr);
                return;
            case 7:
                if (!pool.freeing.empty()) pool.finish_free();
                return;
            case 8: return pool.pass(milliseconds(number(200)));
            default: break;
        }
        if (number(10) == 0) return configure(pool);
        number(2) == 0 ? void(pool.schedule.unload(id))
                       : pool.schedule.set_version(id, std::to_string(number(3)));
        pool.turn();
    }

private:
    std::mt19937 random_{static_cast<unsigned>(GetParam())};
};

TEST_P(RandomPool, KeepsItsLimitsAndAnswersEverybodyInTheEnd) {
    Pool pool({.bytes = 400 * kMib, .models = 1 + number(4), .waiting = 20});
    for (const char id : std::string("abcdefg")) pool.bytes[std::string(1, id)] = (20 + number(200)) * kMib;
    configure(pool);
    for (int i = 0; i < 3000; ++i) step(pool);
    // New requests have stopped: all that waits is answered.
    for (int i = 0; i < 1000 && !(pool.waiting.empty() && pool.running.empty()); ++i) {
        pool.finish_all();
        while (!pool.running.empty()) pool.end(pool.running.begin()->first);
        pool.pass(seconds(1));
    }
    EXPECT_TRUE(pool.waiting.empty()) << pool.waiting.begin()->second << " was never loaded";
    EXPECT_TRUE(pool.running.empty());
    EXPECT_EQ(pool.schedule.waiting(), 0u);
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomPool, testing::Range(0, 200));

}  // namespace
}  // namespace headrace::serve
