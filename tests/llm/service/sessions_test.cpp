#include "llm/service/sessions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <optional>
#include <thread>

namespace headrace::llm {
namespace {

using ::testing::StartsWith;
using namespace std::chrono_literals;

TEST(SessionThreads, LetOneRequestInAtATime) {
    Session session("ada", "session:ada");
    std::atomic<int> inside = 0, most = 0, entered = 0;
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i)
        threads.emplace_back([&] {
            for (int k = 0; k < 50; ++k) {
                if (!session.enter(false).ok()) continue;
                ++entered;
                most = std::max(most.load(), ++inside);
                --inside;
                session.leave();
            }
        });
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(entered, 200);
    EXPECT_EQ(most, 1);
}

TEST(Session, IsBusyWhileAnAnswerIsReadPieceByPiece) {
    Session session("ada", "session:ada");
    ASSERT_TRUE(session.enter(true).ok());
    EXPECT_EQ(session.enter(false).error().code, Code::busy);
    session.leave();
    EXPECT_TRUE(session.enter(false).ok());
}

TEST(Session, IsCalledByItsNameWhereItHasOne) {
    Session named("ada", "session:ada"), nameless("", "anonymous:3");
    for (Session* session : {&named, &nameless}) ASSERT_TRUE(session->enter(true).ok());
    EXPECT_THAT(named.enter(false).error().message, StartsWith("the session 'ada' has an answer"));
    EXPECT_THAT(nameless.enter(false).error().message, StartsWith("the conversation has an answer"));
    for (Session* session : {&named, &nameless}) session->leave();
    ASSERT_TRUE(nameless.enter(false).ok());
    const Patience none{.until = std::chrono::steady_clock::now()};
    EXPECT_EQ(nameless.enter(false, none).error().message,
              "another request of the conversation took all the time");
}

TEST(SessionThreads, WakeAWaitingRequestThatIsCancelled) {
    Session session("ada", "session:ada");
    ASSERT_TRUE(session.enter(false).ok());
    std::atomic<bool> cancelled = false;
    std::optional<Code> code;
    std::thread waiting([&] { code = session.enter(false, {.cancelled = &cancelled}).error().code; });
    std::this_thread::sleep_for(5ms);
    session.wake();  // nobody asked it to give up
    cancelled = true;
    session.wake();
    waiting.join();
    EXPECT_EQ(code, Code::cancelled);
    session.leave();
    EXPECT_TRUE(session.enter(false).ok()) << "the one that was cancelled holds nothing";
}

TEST(Session, KeepsNoRequestWaitingBeyondItsTime) {
    Session session("ada", "session:ada");
    ASSERT_TRUE(session.enter(false).ok());
    EXPECT_EQ(session.enter(false, {.until = std::chrono::steady_clock::now() + 5ms}).error().code,
              Code::timed_out);
}

TEST(SessionThreads, TellAWaitingRequestThatAnotherReadsPieceByPiece) {
    for (int i = 0; i < 50; ++i) {
        Session session("ada", "session:ada");
        ASSERT_TRUE(session.enter(false).ok());
        // Whichever comes first, the other must not wait for pieces that nobody may ever read.
        std::atomic<int> busy = 0, waited = 0;
        auto enter = [&](bool by_pieces) {
            const Status status = session.enter(by_pieces);
            if (!status.ok())
                ++busy;
            else if (!by_pieces)
                ++waited, session.leave();
        };
        std::thread pieces(enter, true), whole(enter, false);
        std::this_thread::sleep_for(1ms);
        session.leave();
        pieces.join();
        whole.join();
        EXPECT_EQ(busy + waited, 1);
    }
}

TEST(Session, CannotBeEnteredOnceClosed) {
    Session session("ada", "session:ada");
    ASSERT_TRUE(session.enter(false).ok());
    EXPECT_FALSE(session.close_if_idle());
    session.leave();
    EXPECT_TRUE(session.close_if_idle());
    EXPECT_EQ(session.enter(false).error().code, Code::not_found);
}

TEST(Sessions, CloseTheOneUsedLeastRecentlyForAnother) {
    Sessions sessions({.max_sessions = 2});
    const auto ada = sessions.open("ada").value(), leo = sessions.open("leo").value();
    std::this_thread::sleep_for(2ms);
    ada->touch();
    ASSERT_TRUE(sessions.open("mia").ok());
    EXPECT_FALSE(leo->enter(false).ok());
    EXPECT_EQ(sessions.open("ada").value(), ada);
    EXPECT_EQ(sessions.named(), 2u);
}

TEST(Sessions, AreBusyWhenAllRun) {
    Sessions sessions({.max_sessions = 1, .max_concurrent = 1});
    ASSERT_TRUE(sessions.open("ada").value()->enter(false).ok());
    EXPECT_EQ(sessions.open("leo").error().code, Code::busy);
    const auto anonymous = sessions.open_anonymous();
    ASSERT_TRUE(anonymous.ok());
    EXPECT_EQ(sessions.open_anonymous().error().code, Code::busy);
    sessions.close(anonymous.value());
    EXPECT_TRUE(sessions.open_anonymous().ok());
}

TEST(Sessions, RefuseANameBeyondMeasure) {
    Sessions sessions(SessionSettings{});
    EXPECT_TRUE(sessions.open(std::string(256, 'x')).ok());
    const Error error = sessions.open(std::string(257, 'x')).error();
    EXPECT_THAT(error.message, ::testing::HasSubstr("257 bytes"));
    EXPECT_EQ(error.parameter, "session_id");
}

TEST(Sessions, CloseWhatIsIdleForTooLongUnlessToldNotTo) {
    for (const bool cleanup : {true, false}) {
        Sessions sessions({.idle_timeout_ms = 1, .auto_cleanup = cleanup});
        ASSERT_TRUE(sessions.open("ada").ok());
        std::this_thread::sleep_for(5ms);
        sessions.close_idle();
        EXPECT_EQ(sessions.named(), cleanup ? 0u : 1u);
    }
}

}  // namespace
}  // namespace headrace::llm
