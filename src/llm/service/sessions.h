#pragma once
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "base/result.h"
#include "llm/service/conversation.h"
#include "llm/service/memory_budget.h"
#include "llm/settings.h"

namespace headrace::llm {

/// What ends the wait of a request for its session.
struct Patience {
    const std::atomic<bool>* cancelled = nullptr;  ///< Session::wake makes it look
    std::chrono::steady_clock::time_point until = std::chrono::steady_clock::time_point::max();
};

/// A conversation. One request at a time uses it, between enter and leave.
class Session {
public:
    /// budget: in which what was said counts; null: it is not counted.
    Session(std::string session_name, std::string session_owner,
            std::shared_ptr<MemoryBudget> budget = nullptr)
        : name(std::move(session_name)), owner(std::move(session_owner)), held_(std::move(budget)) {}

    /// Waits for the request that runs. Code::busy when that one is read piece by piece, as it may never end;
    /// Code::not_found when the session was closed; Code::cancelled and Code::timed_out when patience ends.
    Status enter(bool by_pieces, const Patience& patience = {});
    void leave();
    /// Requests that wait look whether they are cancelled.
    void wake();
    bool is_running() const;
    /// False when it runs.
    bool close_if_idle();
    std::chrono::steady_clock::time_point last_used() const;
    void touch();

    /// One that somebody will come back to is not closed for being idle.
    void keep() { ++keepers_; }
    void release() { --keepers_; }
    bool is_kept() const { return keepers_ > 0; }

    /// What was said so far; whoever is between enter and leave adds to it.
    Messages messages() const;
    void remember(Messages messages);

    /// For the log.
    const std::string& label() const { return name.empty() ? owner : name; }

    const std::string name;   ///< empty: anonymous
    const std::string owner;  ///< for taking turns

private:
    std::atomic<int> keepers_ = 0;
    mutable std::mutex mutex_;
    std::condition_variable changed_;
    bool running_ = false, by_pieces_ = false;
    bool closed_ = false;  // evicted, or idle for too long
    Messages messages_;
    HeldMemory held_;
    std::chrono::steady_clock::time_point last_used_ = std::chrono::steady_clock::now();
};

/// Forgets the oldest messages, never the system's, until at most that many are left; 0 keeps all.
void trim_history(Messages& messages, int most);

/// The named conversations of a service, by name, and the number of anonymous ones. Thread-safe.
class Sessions {
public:
    explicit Sessions(const SessionSettings& settings, std::shared_ptr<MemoryBudget> budget = nullptr)
        : settings_(settings), budget_(std::move(budget)) {}

    /// The session of that name, new or known. Another that is idle is closed for it, the least recently used
    /// first; Code::busy when all of max_sessions are running.
    Result<std::shared_ptr<Session>> open(std::string_view name);
    /// Code::busy beyond max_concurrent.
    Result<std::shared_ptr<Session>> open_anonymous();
    void close(const std::shared_ptr<Session>& session);
    /// Closes named sessions that nobody used for idle_timeout_ms.
    void close_idle();

    /// Changes the limits for what is opened from now on.
    void limit(const SessionSettings& settings);

    std::size_t named() const;
    int anonymous() const;

private:
    void close_idle_locked();

    SessionSettings settings_;
    const std::shared_ptr<MemoryBudget> budget_;  // of what is said in them
    mutable std::mutex mutex_;
    std::map<std::string, std::shared_ptr<Session>, std::less<>> named_;
    int anonymous_ = 0;
    std::uint64_t next_ = 1;
};

}  // namespace headrace::llm
