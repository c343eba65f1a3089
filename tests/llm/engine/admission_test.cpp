#include "llm/engine/admission.h"

#include <gmock/gmock.h>

#include "llm/engine_parts.h"

namespace headrace::llm {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::IsEmpty;

class AdmissionTest : public EngineParts {
protected:
    AdmissionTest() : EngineParts(2) {
        settings.queue.max_waiting = 3;
        settings.cache.retention_ms = 1000;
        settings.cache.pressure_threshold = 1;
        admission.emplace(*sequences, settings.queue, settings.cache, 2, counters);
    }
    /// Admits a request and takes it in.
    Stream* add(Priority priority, RequestSettings request = tiny_settings().request) {
        request.priority = priority;
        std::unique_ptr<Stream> made =
            stream({.prompt = prompt(10), .settings = request, .owner = std::to_string(last_id)});
        Stream* added = made.get();
        EXPECT_TRUE(admission->admit(std::move(made)).ok());
        admission->receive(now);
        return added;
    }
    std::vector<Stream*> choose() { return admission->choose_active(now += 1ms); }

    Clock::time_point now = Clock::now();
    std::optional<Admission> admission;
};

TEST_F(AdmissionTest, RefusesMoreThanMayWaitAndCountsThem) {
    for (int i = 0; i < 3; ++i) add(Priority::normal);
    const Status refused =
        admission->admit(stream({.prompt = prompt(10), .settings = tiny_settings().request}));
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error().code, Code::busy);
    EXPECT_EQ(refused.error().message,
              "3 requests are waiting already, and queue.max_waiting is 3. Try again later");
    EXPECT_EQ(admission->rejected(), 1u);
    EXPECT_EQ(choose().size(), 2u);
    EXPECT_EQ(admission->waiting(), 1u) << "what runs does not wait";
}

TEST_F(AdmissionTest, TakesTheSequenceOfALessUrgentStreamWhenNoneIsFree) {
    Stream* first = add(Priority::normal);
    Stream* second = add(Priority::normal);
    EXPECT_THAT(choose(), ElementsAre(first, second));
    Stream* urgent = add(Priority::urgent);
    EXPECT_THAT(choose(), ElementsAre(urgent));
    EXPECT_TRUE(urgent->sequence.has_value());
    EXPECT_NE(first->sequence.has_value(), second->sequence.has_value()) << "one place was needed";
    EXPECT_EQ(first->outcome.pauses, 1);
    EXPECT_EQ(second->outcome.pauses, 1);
}

TEST_F(AdmissionTest, LetsAStreamWithOtherAdaptersWaitForThoseThatRun) {
    Stream* first = add(Priority::normal);
    Stream* other = add(Priority::normal);
    Stream* third = add(Priority::normal);
    other->variant = 7;
    EXPECT_THAT(choose(), ElementsAre(first)) << "the third would overtake the other";
    first->end(StopReason::token_limit);
    EXPECT_EQ(admission->take_ended(now).size(), 1u);
    EXPECT_THAT(choose(), ElementsAre(other));
    EXPECT_FALSE(third->began);
}

TEST_F(AdmissionTest, SaysWhenAMoreUrgentStreamArrivesAndExpectsMoreForAWhile) {
    add(Priority::normal);
    EXPECT_FALSE(admission->is_overtaken());
    RequestSettings request = tiny_settings().request;
    request.priority = Priority::urgent;
    ASSERT_TRUE(admission->admit(stream({.prompt = prompt(10), .settings = request})).ok());
    EXPECT_TRUE(admission->is_overtaken());
    admission->receive(now);
    EXPECT_FALSE(admission->is_overtaken()) << "it is one of those that may run now";
    choose().front()->end(StopReason::token_limit);
    admission->take_ended(now);
    EXPECT_TRUE(admission->expects_urgent(now + 9s));
    EXPECT_FALSE(admission->expects_urgent(now + 11s));
}

TEST_F(AdmissionTest, MakesRoomFromRememberedPromptsThenPausedStreamsThenTheYoungest) {
    Stream* ended = add(Priority::normal);
    ASSERT_THAT(choose(), ElementsAre(ended));
    fill(*ended->sequence, 10);
    ended->end(StopReason::token_limit);
    admission->take_ended(now);
    ASSERT_EQ(sequences->idle_count(), 1u);
    Stream* paused = add(Priority::low);
    ASSERT_THAT(choose(), ElementsAre(paused));
    Stream* running = add(Priority::normal);
    ASSERT_THAT(choose(), ElementsAre(running));
    fill(*running->sequence, 10);

    while (sequences->idle_count() > 0) admission->make_room();
    EXPECT_TRUE(paused->sequence);
    admission->make_room();
    EXPECT_FALSE(paused->sequence);
    EXPECT_TRUE(running->sequence);

    Stream* youngest = add(Priority::normal);
    ASSERT_THAT(choose(), ElementsAre(running, youngest));
    admission->make_room();
    EXPECT_FALSE(youngest->sequence);
    EXPECT_EQ(youngest->outcome.pauses, 1);
    EXPECT_THAT(choose(), ElementsAre(running)) << "it may not come back while the room is short";

    admission->make_room();
    EXPECT_EQ(running->outcome.reason, StopReason::context_full);
    admission->take_ended(now);
    EXPECT_THAT(choose(), ElementsAre(youngest));
}

TEST_F(AdmissionTest, HandsOverWhatWasCancelledOrWaitedTooLong) {
    RequestSettings impatient = tiny_settings().request;
    impatient.queue_timeout_ms = 1000;
    Stream* late = add(Priority::normal, impatient);
    Stream* cancelled = add(Priority::normal);
    add(Priority::normal);
    EXPECT_THAT(admission->take_ended(now), IsEmpty());
    cancelled->generation->cancel();
    const auto ended = admission->take_ended(late->generation->arrival() + 1s);
    ASSERT_EQ(ended.size(), 2u);
    EXPECT_EQ(ended[0]->outcome.detail, "not begun within queue_timeout_ms 1000");
    EXPECT_EQ(ended[1]->outcome.reason, StopReason::cancelled);
    EXPECT_EQ(admission->waiting(), 1u);
    EXPECT_EQ(admission->streams().size(), 1u);
}

TEST_F(AdmissionTest, ForgetsRememberedPromptsOnceTheyExpire) {
    Stream* ended = add(Priority::normal);
    choose();
    fill(*ended->sequence, 10);
    ended->end(StopReason::token_limit);
    admission->take_ended(now);
    admission->evict_expired(Clock::now());
    EXPECT_EQ(sequences->idle_count(), 1u);
    admission->evict_expired(Clock::now() + 2s);
    EXPECT_EQ(sequences->idle_count(), 0u);
}

}  // namespace
}  // namespace headrace::llm
