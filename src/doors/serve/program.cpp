#include "doors/serve/program.h"

#include <fmt/ranges.h>
#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <thread>
#include <utility>

#include "doors/serve/options/options.h"
#include "doors/serve/server.h"
#include "headrace/headrace.h"

extern char** environ;

namespace headrace::serve {
namespace {

constexpr std::chrono::seconds kGrace(30);
/// Requests that were on their way when the server was asked to end hear of it in this time.
constexpr std::chrono::milliseconds kLastWords(300);
/// Answers that were ended have that long to say so, to clients that read.
constexpr std::chrono::seconds kLastError(1);
/// After that what is still computed for somebody who is gone is given up.
constexpr std::chrono::seconds kLastResort(5);

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

/// Waits for SIGTERM and SIGINT, which no other thread gets while this lives, and ends the server. SIGHUP
/// makes it read its configuration again.
class Signals {
public:
    Signals() {
        sigemptyset(&set_);
        sigaddset(&set_, SIGTERM);
        sigaddset(&set_, SIGINT);
        sigaddset(&set_, SIGHUP);
        pthread_sigmask(SIG_BLOCK, &set_, &before_);
    }
    ~Signals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
    Signals(const Signals&) = delete;
    Signals& operator=(const Signals&) = delete;

    void end(Server& server, Listener& listener) {
        thread_ = std::thread([&] {
            // Threads keep memory of their own until they end: that is some time after the last request.
            std::pair<std::size_t, std::size_t> trimmed;
            while (!ends_ && !ends_by(arriving(std::chrono::milliseconds(200)), server)) {
                const std::pair now(server.handled(), listener.ended_threads());
                if (server.active() > 0 || now == trimmed) continue;
                trimmed = now;
                trim_memory();
            }
            if (ends_) return;
            if (server.is_loading()) {
                // A load cannot be broken off, and there is nothing that would be lost.
                server.log().say(LogLevel::info, "stopping while the model is loaded");
                std::_Exit(0);
            }
            server.log().say(LogLevel::info, fmt::format("stopping; answers that are being written have {} s",
                                                         kGrace.count()));
            server.refuse_requests();
            std::this_thread::sleep_for(kLastWords);
            const auto until = std::chrono::steady_clock::now() + kGrace;
            while (server.active() > 0 && std::chrono::steady_clock::now() < until && !ends_)
                if (const int signal = arriving(std::chrono::milliseconds(50));
                    signal > 0 && signal != SIGHUP)
                    break;
            listener.stop();  // it breaks off what is still being written
            server.stop();
            if (server.loads_a_model() && server.active() == 0) std::_Exit(0);  // for nobody
            break_off(server, listener);
        });
    }

    /// Before the server and the listener go.
    void finish() {
        ends_ = true;
        pthread_kill(thread_.native_handle(), SIGTERM);  // for which it waits
        thread_.join();
    }

private:
    /// A client that sent half of a request, or reads no answer, would hold its thread for `--timeout`.
    void break_off(Server& server, Listener& listener) {
        const auto begin = std::chrono::steady_clock::now(), until = begin + kLastResort;
        while (!ends_) {
            if (server.active() == 0 || std::chrono::steady_clock::now() > begin + kLastError)
                listener.break_off();
            const int signal = arriving(std::chrono::milliseconds(100));
            if (ends_ || ((signal <= 0 || signal == SIGHUP) && std::chrono::steady_clock::now() < until))
                continue;
            server.log().say(LogLevel::warn, "stopped, though a request is still being worked on");
            std::_Exit(0);
        }
    }
    /// The signal's number, or less than 1.
    int arriving(std::chrono::milliseconds patience) const {
        const timespec time{.tv_sec = 0, .tv_nsec = patience.count() * 1'000'000};
        return sigtimedwait(&set_, nullptr, &time);
    }
    static bool ends_by(int signal, Server& server) {
        if (signal == SIGHUP) server.reload();
        return signal > 0 && signal != SIGHUP;
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

/// All threads that are started from now on.
Status keep_to_cpus(const std::vector<std::size_t>& cpus) {
    cpu_set_t set;
    CPU_ZERO(&set);
    for (const std::size_t cpu : cpus) CPU_SET(cpu, &set);
    if (sched_setaffinity(0, sizeof set, &set) == 0) return success();
    return invalid("--cpu-mask and --cpu-range: none of those CPUs is there ({})", std::strerror(errno));
}

void list_devices(const ServeOptions& options) {
    std::printf("Available devices:\n");
    for (const DeviceInfo& device : devices())
        std::printf("  %s: %s (%zu MiB, %zu MiB free)\n", device.name.c_str(), device.description.c_str(),
                    device.memory_total >> 20, device.memory_free >> 20);
    for (const std::string& name : options.devices)
        if (name.starts_with("rpc://")) std::printf("  %s: another machine's\n", name.c_str());
}

std::string first_of(std::initializer_list<std::string> texts) {
    for (const std::string& text : texts)
        if (!text.empty()) return text;
    return {};
}

/// What of its models the program shows.
std::string name_of(const ServeOptions& options) {
    if (!options.aliases.empty()) return options.aliases.front();
    const std::string path =
        first_of({options.embedding_model, options.ranking_model, options.models_preset, options.models_dir});
    return std::filesystem::path(path).filename().string();
}

/// What the options say that the model of -m is for.
enum class Purpose { writes, makes_vectors, ranks };

Purpose purpose_of(const ServeOptions& options) {
    const ParameterValue *vectors = options.parameters.find("embeddings"),
                         *pooling = options.parameters.find("pooling");
    if (!vectors || *vectors != ParameterValue(true)) return Purpose::writes;
    return pooling && *pooling == ParameterValue("rank") ? Purpose::ranks : Purpose::makes_vectors;
}

/// A path to try, and the body that it wants.
std::pair<const char*, const char*> example_of(const ServeOptions& options) {
    const bool has_model = !options.model.empty();
    const Purpose purpose = purpose_of(options);
    if (has_model && purpose == Purpose::writes)
        return {"/v1/chat/completions", R"({"messages":[{"role":"user","content":"Hello"}]})"};
    if (has_model ? purpose == Purpose::makes_vectors : !options.embedding_model.empty())
        return {"/v1/embeddings", R"({"input":"Hello"})"};
    if (has_model || !options.ranking_model.empty())
        return {"/v1/rerank", R"({"query":"Hello","documents":["Hi","Bye"]})"};
    return {"/v1/models", nullptr};
}

void announce(const Listener& listener, const ServeOptions& options, const ServerLog& log) {
    std::vector<std::string> addresses = listener.addresses();
    for (std::string& address : addresses)
        if (address.starts_with("http")) address += options.api_prefix;
    const std::string said = fmt::format("{} listens at {}", name_of(options), fmt::join(addresses, ", "));
    if (log.is_json())
        return log.say(LogLevel::info, said + " now",
                       {{"addresses", addresses}, {"model", name_of(options)}});
    std::printf("headrace: %s\n", said.c_str());
    log.keep(LogLevel::info, said);
    const std::string key = options.keys.empty() ? "" : " -H 'Authorization: Bearer KEY'";
    const auto [path, body] = example_of(options);
    if (addresses.front().starts_with("http") && body)
        std::printf("  try: curl %s%s -H 'Content-Type: application/json'%s -d '%s'\n",
                    addresses.front().c_str(), path, key.c_str(), body);
    else if (addresses.front().starts_with("http"))
        std::printf("  its models: curl %s%s\n", addresses.front().c_str(), path);
    const bool writes = !options.model.empty() && purpose_of(options) == Purpose::writes;
    if (options.offers_page && writes && addresses.front().starts_with("http"))
        std::printf("  or open %s/ in a browser\n", addresses.front().c_str());
    std::fflush(stdout);
}

}  // namespace

namespace {

Status serve_until_stopped(const ServeOptions& options) {
    if (!options.cpus.empty()) HR_TRY(keep_to_cpus(options.cpus));
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
            announce(listener, options, server.log());
        else
            listener.stop();
    });
    listener.run();
    loader.join();
    signals.finish();
    return loaded;
}

}  // namespace

Result<ServeOptions> program_options(std::span<const std::string> arguments) {
    HR_ASSIGN(ServeOptions options, serve_options(arguments, environment()));
    add_program_defaults(options);
    return options;
}

Status run(const ServeOptions& options) {
    if (options.lists_devices) return list_devices(options), success();
    const Status served = serve_until_stopped(options);
    if (served.ok() || !options.logs_json) return served;
    ServerLog(true, LogLevel::error).say(LogLevel::error, served.error().message);
    std::_Exit(1);  // the caller would say it in a line of text
}

}  // namespace headrace::serve
