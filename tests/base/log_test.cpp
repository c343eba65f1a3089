#include "base/log.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/inotify.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>

#include "base/log_sink.h"
#include "base/temporary_log.h"

namespace headrace {
namespace {

using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;

class Logging : public TemporaryLog {};

/// A test in a process of its own, so that signals, limits and file descriptors are its own, too.
class LoggingDeath : public TemporaryLog {
protected:
    LoggingDeath() { testing::FLAGS_gtest_death_test_style = "threadsafe"; }

    /// Ends a process that a death test started: it made a folder of its own, and destructors are not run.
    [[noreturn]] void end(int status) const {
        std::error_code ignored;
        std::filesystem::remove_all(folder_, ignored);
        _exit(status);
    }
};

TEST_F(Logging, WritesWhatTheLevelLetsThrough) {
    configure(LogLevel::warn);
    for (const LogLevel level :
         {LogLevel::debug, LogLevel::info, LogLevel::warn, LogLevel::error, LogLevel::none})
        log(level, "level " + std::to_string(static_cast<int>(level)));
    EXPECT_THAT(lines(), ElementsAre(EndsWith(" warn  level 2"), EndsWith(" error level 3")));
    EXPECT_FALSE(log_enabled(LogLevel::info));
    EXPECT_TRUE(log_enabled(LogLevel::warn));
}

TEST_F(Logging, WritesNothingAtTheLevelNone) {
    configure(LogLevel::none);
    log(LogLevel::error, "lost");
    log(LogLevel::none, "lost, too");
    EXPECT_EQ(text(), "");
}

TEST_F(Logging, FormatsOnlyWhatIsWritten) {
    configure(LogLevel::info);
    int formatted = 0;
    const auto count = [&] { return ++formatted; };
    const LogContext context{"s", 3};
    HR_LOG(debug, context, "{}", count());
    HR_LOG(info, context, "loaded {} in {} ms", "model", count());
    EXPECT_EQ(formatted, 1);
    EXPECT_THAT(lines(), ElementsAre(EndsWith(" info  session=s request=3 loaded model in 1 ms")));
}

TEST_F(Logging, KnowsItsLevelsByName) {
    EXPECT_EQ(parse_log_level("debug").value(), LogLevel::debug);
    EXPECT_EQ(parse_log_level("none").value(), LogLevel::none);
    EXPECT_THAT(parse_log_level("loud").error().message, HasSubstr("\"loud\" is not known: use debug, info"));
}

TEST_F(Logging, KeepsLinesFromThreadsWhole) {
    configure(LogLevel::debug, "json");
    constexpr int kThreads = 8, kLines = 500;
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t)
        threads.emplace_back([t] {
            const std::string session = "thread " + std::to_string(t);
            for (int i = 1; i <= kLines; ++i)
                HR_LOG(info, (LogContext{session, static_cast<std::uint64_t>(i)}), "{}",
                       std::string(300, 'x'));
        });
    for (std::thread& thread : threads) thread.join();
    std::set<std::pair<std::string, int>> seen;
    for (const std::string& line : lines()) {
        const nlohmann::json object = nlohmann::json::parse(line);
        EXPECT_EQ(object["message"], std::string(300, 'x'));
        seen.emplace(object["session"], object["request"]);
    }
    EXPECT_EQ(seen.size(), std::size_t{kThreads * kLines});
}

TEST_F(Logging, MayBeConfiguredWhileThreadsLog) {
    configure(LogLevel::info);
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t)
        threads.emplace_back([] {
            for (int i = 0; i < 200; ++i) log(LogLevel::info, "a line");
        });
    for (int i = 0; i < 50; ++i) {
        configure(LogLevel::info);
        set_log_callback(i % 2 ? std::function<void(const LogLine&)>() : [](const LogLine&) {});
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(lines().size(), 800u);
}

TEST_F(Logging, AppendsToTheFileAndOpensItAnew) {
    configure(LogLevel::info);
    log(LogLevel::info, "one");
    std::filesystem::rename(file_, file_ + ".old");
    log(LogLevel::info, "two");
    EXPECT_EQ(text(), "");
    configure(LogLevel::info);
    log(LogLevel::info, "three");
    configure(LogLevel::info);
    log(LogLevel::info, "four");
    EXPECT_THAT(lines(), ElementsAre(EndsWith("three"), EndsWith("four")));
}

TEST_F(Logging, StaysAsItWasWhenAConfigurationFails) {
    configure(LogLevel::info);
    EXPECT_THAT(set_log(LogLevel::error, "text", folder_).error().message,
                HasSubstr("log file " + folder_ + ": Is a directory"));
    EXPECT_EQ(set_log(LogLevel::error, "text", folder_ + "/none/log").error().code, Code::io);
    EXPECT_THAT(set_log(LogLevel::error, "xml", "").error().message, HasSubstr("\"xml\" is not known"));
    log(LogLevel::info, "still here");
    EXPECT_THAT(lines(), ElementsAre(EndsWith("still here")));
}

TEST_F(Logging, GoesToTheCallbackToo) {
    configure(LogLevel::info);
    std::vector<std::string> seen;
    set_log_callback([&](const LogLine& line) {
        seen.push_back(std::string(line.message) + " " + std::string(line.context.session));
        log(LogLevel::error, "from within");
    });
    log(LogLevel::info, "a\nb", {"s", 1});
    log(LogLevel::debug, "below the level");
    EXPECT_THAT(seen, ElementsAre("a\nb s"));
    EXPECT_EQ(lines().size(), 1u) << "what the callback logs is dropped";
}

TEST_F(Logging, SurvivesACallbackThatThrows) {
    configure(LogLevel::info);
    set_log_callback([](const LogLine&) { throw std::runtime_error("no"); });
    log(LogLevel::info, "one");
    log(LogLevel::info, "two");
    EXPECT_EQ(lines().size(), 2u);
}

/// The file is a pipe that is read here.
TEST_F(Logging, CountsTheLinesThatAFullPipeLoses) {
    ASSERT_EQ(mkfifo(file_.c_str(), 0600), 0);
    EXPECT_THAT(set_log(LogLevel::info, "text", file_).error().message, HasSubstr("No such device"))
        << "nobody reads it: waiting would stop the process";
    const int reader = open(file_.c_str(), O_RDONLY | O_NONBLOCK);
    configure(LogLevel::info);
    constexpr int kLines = 2000;
    for (int i = 0; i < kLines; ++i) log(LogLevel::info, std::string(100, 'x'));
    std::string received(1 << 20, '\0');
    received.resize(
        static_cast<std::size_t>(std::max<ssize_t>(0, read(reader, received.data(), received.size()))));
    log(LogLevel::info, "after");
    std::string rest(4096, '\0');
    rest.resize(static_cast<std::size_t>(std::max<ssize_t>(0, read(reader, rest.data(), rest.size()))));
    close(reader);
    const auto written = std::count(received.begin(), received.end(), '\n');
    EXPECT_GT(written, 10);
    EXPECT_LT(written, kLines);
    EXPECT_THAT(
        rest, HasSubstr(fmt::format("warn  {} lines of the log were lost: Resource temp", kLines - written)));
    EXPECT_THAT(rest, EndsWith("info  after\n"));
}

/// Logs to a pipe whose reader is gone, which is the process's stderr.
void log_to_closed_pipe() {
    int ends[2];
    if (pipe(ends) != 0) _exit(2);
    dup2(ends[1], 2);
    close(ends[0]);
    log(LogLevel::info, "nobody reads this");
}

bool is_pending(int signal) {
    sigset_t pending;
    sigpending(&pending);
    return sigismember(&pending, signal);
}

bool is_blocked(int signal) {
    sigset_t mask;
    pthread_sigmask(SIG_SETMASK, nullptr, &mask);
    return sigismember(&mask, signal);
}

int outlive_a_closed_pipe() {
    log_to_closed_pipe();
    struct sigaction action;
    sigaction(SIGPIPE, nullptr, &action);
    return is_pending(SIGPIPE) || is_blocked(SIGPIPE) || action.sa_handler != SIG_DFL;
}

int keep_a_pending_signal() {
    sigset_t mask;
    sigemptyset(&mask);
    sigaddset(&mask, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &mask, nullptr);
    raise(SIGPIPE);
    log_to_closed_pipe();
    return !is_pending(SIGPIPE) || !is_blocked(SIGPIPE);
}

int fill_a_file_to_its_limit(const std::string& file) {
    std::fflush(stdout);  // the thread sanitizer does at the end, when stdout may be a file beyond the limit
    const rlimit limit{.rlim_cur = 1000, .rlim_max = 1000};
    if (setrlimit(RLIMIT_FSIZE, &limit) != 0 || !set_log(LogLevel::info, "text", file)) return 2;
    for (int i = 0; i < 100; ++i) log(LogLevel::info, "a line");
    return std::filesystem::file_size(file) != 1000;
}

int log_to_a_full_disk() {
    if (!set_log(LogLevel::info, "text", "/dev/full")) return 2;
    for (int i = 0; i < 3; ++i) log(LogLevel::info, "no room");
    if (!set_log(LogLevel::info, "text", "")) return 3;
    log(LogLevel::info, "after");
    return 0;
}

TEST_F(LoggingDeath, AClosedPipeEndsNoProcess) {
    EXPECT_EXIT(end(outlive_a_closed_pipe()), testing::ExitedWithCode(0), "");
}

TEST_F(LoggingDeath, AHostKeepsTheSignalThatItHasPending) {
    EXPECT_EXIT(end(keep_a_pending_signal()), testing::ExitedWithCode(0), "");
}

TEST_F(LoggingDeath, AFileAtItsSizeLimitEndsNoProcess) {
    EXPECT_EXIT(end(fill_a_file_to_its_limit(file_)), testing::ExitedWithCode(0), "");
}

TEST_F(LoggingDeath, AFullDiskLosesTheLinesAndTheNextOneSaysSo) {
    EXPECT_EXIT(end(log_to_a_full_disk()), testing::ExitedWithCode(0),
                "warn  3 lines of the log were lost: No space left on device\n.*info  after\n");
}

TEST_F(LoggingDeath, TheEnvironmentNamesTheFirstLevel) {
    setenv("HEADRACE_LOG", "error", 1);
    EXPECT_EXIT(end(log_enabled(LogLevel::warn)    ? 1
                    : log_enabled(LogLevel::error) ? 0
                                                   : 2),
                testing::ExitedWithCode(0), "");
    setenv("HEADRACE_LOG", "loud", 1);
    EXPECT_EXIT(end(log_enabled(LogLevel::info) ? 0 : 1), testing::ExitedWithCode(0),
                "warn  HEADRACE_LOG: the log level \"loud\" is not known");
    unsetenv("HEADRACE_LOG");
    EXPECT_EXIT(end(log_enabled(LogLevel::info) && !log_enabled(LogLevel::debug) ? 0 : 1),
                testing::ExitedWithCode(0), "");
}

TEST_F(LoggingDeath, TheEnvironmentNamesFormatAndFile) {
    setenv("HEADRACE_LOG_FORMAT", "json", 1);
    EXPECT_EXIT((log(LogLevel::warn, "to stderr"), end(0)), testing::ExitedWithCode(0),
                R"("level":"warn","message":"to stderr")");
    // The process that the death test starts begins this test anew, with a folder of its own: it takes this
    // one's.
    setenv("HEADRACE_LOG_FILE", file_.c_str(), 0);
    EXPECT_EXIT((log(LogLevel::warn, "to the file"), end(0)), testing::ExitedWithCode(0), "^$");
    EXPECT_THAT(lines(), ElementsAre(HasSubstr(R"("level":"warn","message":"to the file")")));
    unsetenv("HEADRACE_LOG_FORMAT");
    unsetenv("HEADRACE_LOG_FILE");
}

TEST_F(LoggingDeath, TheEnvironmentsFileIsOpenedOnce) {
    setenv("HEADRACE_LOG_FILE", file_.c_str(), 1);
    const auto count_opens = [this] {
        std::fclose(std::fopen(file_.c_str(), "a"));
        const int watch = inotify_init1(IN_NONBLOCK);
        inotify_add_watch(watch, file_.c_str(), IN_OPEN);
        log(LogLevel::warn, "first");
        const bool is_known = log_environment().file == file_;
        inotify_event opened[8];
        const ssize_t bytes = read(watch, opened, sizeof opened);
        end(is_known && bytes == sizeof(inotify_event) ? 0 : 1);
    };
    EXPECT_EXIT(count_opens(), testing::ExitedWithCode(0), "^$");
    unsetenv("HEADRACE_LOG_FILE");
}

TEST_F(Logging, SinksOfOneFileOpenItOnceAndKeepTheirLinesApart) {
    configure(LogLevel::info);
    const int watch = inotify_init1(IN_NONBLOCK);
    inotify_add_watch(watch, file_.c_str(), IN_OPEN);
    Result<LogSink> sink = LogSink::open(file_);
    ASSERT_TRUE(sink.ok());
    configure(LogLevel::info, "json");
    inotify_event opened;
    EXPECT_EQ(read(watch, &opened, sizeof opened), -1) << "it was opened again";
    close(watch);
    EXPECT_TRUE(sink.value().write("of the sink\n"));
    configure(LogLevel::info);
    log(LogLevel::info, "of the log");
    EXPECT_THAT(lines(), ElementsAre("of the sink", EndsWith("of the log")));
}

TEST_F(LoggingDeath, WhatTheEnvironmentHasWrongIsAWarning) {
    setenv("HEADRACE_LOG_FORMAT", "xml", 1);
    setenv("HEADRACE_LOG_FILE", (folder_ + "/none/log").c_str(), 1);
    EXPECT_EXIT((log(LogLevel::info, "goes on"), end(0)), testing::ExitedWithCode(0),
                "HEADRACE_LOG_FORMAT: the log format \"xml\" is not known.*\n.*"
                "HEADRACE_LOG_FILE: log file .*No such file or directory.*\n.*info  goes on");
    unsetenv("HEADRACE_LOG_FORMAT");
    unsetenv("HEADRACE_LOG_FILE");
}

TEST_F(LoggingDeath, WhatAProgramTellsItsUserIsShownAtEveryLevel) {
    const auto tell = [this] {
        configure(LogLevel::none);
        tell_user("no such file");
        end(0);
    };
    EXPECT_EXIT(tell(), testing::ExitedWithCode(0), "^headrace: no such file\n$");
}

}  // namespace
}  // namespace headrace
