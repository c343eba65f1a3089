#include "doors/serve/program.h"

#include <fmt/format.h>
#include <malloc.h>
#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <thread>
#include <utility>

#include "doors/serve/options/options.h"
#include "doors/serve/server.h"

extern char** environ;

namespace headrace::serve {
namespace {

constexpr std::chrono::seconds kGrace(30);

std::map<std::string, std::string> environment() {
    std::map<std::string, std::string> all;
    for (char** entry = environ; *entry; ++entry) {
        const std::string_view text = *entry;
        const auto equals = text.find('=');
        if (equals != std::string_view::npos) all.emplace(text.substr(0, equals), text.substr(equals + 1));
    }
    return all;
}

/// An idle server keeps no pages of what its requests took.
void trim_memory() {
#ifdef __GLIBC__
    malloc_trim(0);
#endif
}

/// Waits for SIGTERM and SIGINT, which no other thread gets while this lives, and ends the server.
class Signals {
public:
    Signals() {
        sigemptyset(&set_);
        sigaddset(&set_, SIGTERM);
        sigaddset(&set_, SIGINT);
        pthread_sigmask(SIG_BLOCK, &set_, &before_);
    }
    ~Signals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
    Signals(const Signals&) = delete;
    Signals& operator=(const Signals&) = delete;

    void end(Server& server, Listener& listener) {
        thread_ = std::thread([&] {
            // Threads keep memory of their own until they end: that is some time after the last request.
            std::pair<std::size_t, std::size_t> trimmed;
            while (!ends_ && !arrives(std::chrono::milliseconds(200))) {
                const std::pair now(server.handled(), listener.ended_threads());
                if (server.active() > 0 || now == trimmed) continue;
                trimmed = now;
                trim_memory();
            }
            if (ends_) return;
            std::fprintf(stderr, "headrace: stopping; answers that are being written have %d s\n",
                         static_cast<int>(kGrace.count()));
            listener.stop();
            const auto until = std::chrono::steady_clock::now() + kGrace;
            while (server.active() > 0 && std::chrono::steady_clock::now() < until && !ends_)
                if (arrives(std::chrono::milliseconds(50))) break;
            server.stop();
        });
    }

    /// Before the server and the listener go.
    void finish() {
        ends_ = true;
        pthread_kill(thread_.native_handle(), SIGTERM);  // for which it waits
        thread_.join();
    }

private:
    bool arrives(std::chrono::milliseconds patience) const {
        const timespec time{.tv_sec = 0, .tv_nsec = patience.count() * 1'000'000};
        return sigtimedwait(&set_, nullptr, &time) > 0;
    }

    sigset_t set_{}, before_{};
    std::atomic<bool> ends_ = false;
    std::thread thread_;
};

/// What large bodies took goes back to the system: glibc would learn from them to keep such blocks, in each
/// connection's arena.
void return_memory() {
#ifdef __GLIBC__
    constexpr int kLargest = 256 << 10;
    mallopt(M_MMAP_THRESHOLD, kLargest);
    mallopt(M_TRIM_THRESHOLD, kLargest);
#endif
}

/// What of its models the program shows.
std::string name_of(const ServeOptions& options) {
    if (!options.aliases.empty()) return options.aliases.front();
    const std::string& path =
        options.embedding_model.empty() ? options.ranking_model : options.embedding_model;
    return std::filesystem::path(path).filename().string();
}

/// A path to try, and the body that it wants.
std::pair<const char*, const char*> example_of(const ServeOptions& options) {
    if (!options.model.empty())
        return {"/v1/chat/completions", R"({"messages":[{"role":"user","content":"Hello"}]})"};
    if (!options.embedding_model.empty()) return {"/v1/embeddings", R"({"input":"Hello"})"};
    return {"/v1/rerank", R"({"query":"Hello","documents":["Hi","Bye"]})"};
}

void announce(const Listener& listener, const ServeOptions& options) {
    const std::vector<std::string> addresses = listener.addresses();
    std::string shown;
    for (const std::string& address : addresses)
        shown += fmt::format("{}{}", shown.empty() ? "" : ", ", address);
    std::printf("headrace: %s listens at %s\n", name_of(options).c_str(), shown.c_str());
    const std::string key = options.keys.empty() ? "" : " -H 'Authorization: Bearer KEY'";
    const auto [path, body] = example_of(options);
    if (addresses.front().starts_with("http"))
        std::printf("  try: curl %s%s -H 'Content-Type: application/json'%s -d '%s'\n",
                    addresses.front().c_str(), path, key.c_str(), body);
    if (options.offers_page && !options.model.empty() && addresses.front().starts_with("http"))
        std::printf("  or open %s/ in a browser\n", addresses.front().c_str());
    std::fflush(stdout);
}

}  // namespace

Status run(std::span<const std::string> arguments) {
    HR_ASSIGN(ServeOptions options, serve_options(arguments, environment()));
    if (options.shows_help) return std::fputs(serve_help().c_str(), stdout), success();
    if (options.shows_version) return std::printf("headrace %s\n", HEADRACE_VERSION), success();
    std::signal(SIGPIPE, SIG_IGN);  // a client that went away
    return_memory();
    Signals signals;  // before there are threads
    Server server(options);
    Listener listener(options.listener, [&](HttpRequest http) { return server.handle(std::move(http)); });
    HR_TRY(listener.bind());
    signals.end(server, listener);
    Status loaded = success();
    std::thread loader([&] {
        loaded = server.load();
        if (loaded.ok())
            announce(listener, options);
        else
            listener.stop();
    });
    listener.run();
    loader.join();
    signals.finish();
    return loaded;
}

}  // namespace headrace::serve
