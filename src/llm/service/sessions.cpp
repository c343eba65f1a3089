#include "llm/service/sessions.h"

#include "base/log.h"

namespace headrace::llm {
namespace {

constexpr std::size_t kLongestName = 256;

/// For who asks: names of our own, which conversations without one have, mean nothing there.
std::string named(const Session& session) {
    return session.name.empty() ? "conversation" : fmt::format("session '{}'", session.name);
}

Error being_read(const Session& session) {
    return failure(Code::busy, "the {} has an answer that is being read piece by piece; finish that first",
                   named(session));
}

}  // namespace

Status Session::enter(bool by_pieces, const Patience& patience) {
    std::unique_lock lock(mutex_);
    const auto is_cancelled = [&] { return patience.cancelled && *patience.cancelled; };
    const auto can_go_on = [&] { return !running_ || by_pieces_ || is_cancelled(); };
    if (patience.until == std::chrono::steady_clock::time_point::max())  // what wait_until may not take
        changed_.wait(lock, can_go_on);
    else if (!changed_.wait_until(lock, patience.until, can_go_on))
        return failure(Code::timed_out, "another request of the {} took all the time", named(*this));
    if (is_cancelled()) return failure(Code::cancelled, "cancelled while another request of the session ran");
    if (running_) return being_read(*this);  // by one that waited, too, and was first
    if (closed_)
        return failure(Code::not_found, "session '{}' was closed, idle or for another one; open it again",
                       name);
    running_ = true;
    by_pieces_ = by_pieces;
    return success();
}

void Session::leave() {
    {
        const std::lock_guard lock(mutex_);
        running_ = false;
        last_used_ = std::chrono::steady_clock::now();
    }
    changed_.notify_all();
}

void Session::wake() {
    const std::lock_guard lock(mutex_);  // nobody is between looking and waiting
    changed_.notify_all();
}

bool Session::is_running() const {
    const std::lock_guard lock(mutex_);
    return running_;
}

bool Session::close_if_idle() {
    const std::lock_guard lock(mutex_);
    if (running_) return false;
    closed_ = true;
    return true;
}

std::chrono::steady_clock::time_point Session::last_used() const {
    const std::lock_guard lock(mutex_);
    return last_used_;
}

void Session::touch() {
    const std::lock_guard lock(mutex_);
    last_used_ = std::chrono::steady_clock::now();
}

Messages Session::messages() const {
    const std::lock_guard lock(mutex_);
    return messages_;
}

void Session::remember(Messages messages) {
    std::size_t bytes = 0;
    for (const Message& message : messages)
        bytes += sizeof message + message.role.size() + message.content.size() + message.reasoning.size();
    const std::lock_guard lock(mutex_);
    held_.note(bytes);
    messages_ = std::move(messages);
}

void trim_history(Messages& messages, int most) {
    if (most <= 0 || messages.empty()) return;
    const std::size_t first = messages.front().role == "system" ? 1 : 0;
    if (messages.size() - first <= static_cast<std::size_t>(most)) return;
    std::size_t drop = messages.size() - first - static_cast<std::size_t>(most);
    drop += drop % 2;  // a question goes with its answer
    messages.erase(messages.begin() + static_cast<std::ptrdiff_t>(first),
                   messages.begin() + static_cast<std::ptrdiff_t>(std::min(messages.size(), first + drop)));
}

Result<std::shared_ptr<Session>> Sessions::open(std::string_view name) {
    if (name.size() > kLongestName)
        return invalid("'session_id' is a name of {} bytes; at most {} are allowed", name.size(),
                       kLongestName)
            .of_parameter("session_id");
    const std::lock_guard lock(mutex_);
    if (settings_.auto_cleanup) close_idle_locked();
    if (const auto found = named_.find(name); found != named_.end()) {
        found->second->touch();
        return found->second;
    }
    if (std::cmp_greater_equal(named_.size(), settings_.max_sessions)) {
        auto oldest = named_.end();
        do {  // again when the one that was found begins to run
            oldest = named_.end();
            for (auto entry = named_.begin(); entry != named_.end(); ++entry)
                if (!entry->second->is_running() &&
                    (oldest == named_.end() || entry->second->last_used() < oldest->second->last_used()))
                    oldest = entry;
        } while (oldest != named_.end() && !oldest->second->close_if_idle());
        if (oldest == named_.end())
            return failure(Code::busy, "all {} sessions are running, and session.max_sessions allows no more",
                           named_.size());
        HR_LOG(info, LogContext{oldest->first}, "closed: {} is opened and max_sessions is {}", name,
               settings_.max_sessions);
        named_.erase(oldest);
    }
    auto session = std::make_shared<Session>(std::string(name), fmt::format("session:{}", name), budget_);
    named_.emplace(name, session);
    return session;
}

Result<std::shared_ptr<Session>> Sessions::open_anonymous() {
    const std::lock_guard lock(mutex_);
    if (anonymous_ >= settings_.max_concurrent)
        return failure(Code::busy,
                       "{} conversations without a name are open, and session.max_concurrent allows no more; "
                       "close one",
                       anonymous_);
    ++anonymous_;
    return std::make_shared<Session>("", fmt::format("anonymous:{}", next_++), budget_);
}

void Sessions::close(const std::shared_ptr<Session>& session) {
    const std::lock_guard lock(mutex_);
    session->touch();
    if (session->name.empty()) --anonymous_;  // a named one is remembered until it is idle for too long
}

void Sessions::close_idle() {
    const std::lock_guard lock(mutex_);
    if (settings_.auto_cleanup) close_idle_locked();
}

void Sessions::close_idle_locked() {
    if (settings_.idle_timeout_ms <= 0) return;
    const auto before =
        std::chrono::steady_clock::now() - std::chrono::milliseconds(settings_.idle_timeout_ms);
    std::erase_if(named_, [&](const auto& entry) {
        Session& session = *entry.second;
        if (session.is_kept() || session.last_used() >= before || !session.close_if_idle()) return false;
        HR_LOG(info, LogContext{entry.first}, "closed: not used for {} ms", settings_.idle_timeout_ms);
        return true;
    });
}

void Sessions::limit(const SessionSettings& settings) {
    const std::lock_guard lock(mutex_);
    settings_ = settings;
}

std::size_t Sessions::named() const {
    const std::lock_guard lock(mutex_);
    return named_.size();
}

int Sessions::anonymous() const {
    const std::lock_guard lock(mutex_);
    return anonymous_;
}

}  // namespace headrace::llm
