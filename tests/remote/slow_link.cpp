// A slow way to a server, for systems without tc netem: bytes arrive later by a delay, at a limited rate, and
// now and then only after a lost packet's time of repetition.
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <condition_variable>
#include <cstdio>
#include <deque>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

#include "remote/socket.h"

namespace {

using namespace headrace;
using remote::Clock;
using remote::Socket;

constexpr remote::Milliseconds kPatience{600000};

struct Options {
    std::string listen = "127.0.0.1", to = "127.0.0.1";
    int port = 0, to_port = 50052;
    double delay_ms = 0;  // each way
    double mbit = 0;      // each way; 0: no limit
    double loss = 0;      // share of messages
    double repeat_ms = 200;
};

/// One direction: a thread reads, another sends what is due.
class Direction {
public:
    Direction(const Options& options, const Socket& from, const Socket& to, unsigned seed)
        : options_(options), from_(from), to_(to), seed_(seed) {}

    void read() {
        std::minstd_rand random(seed_);
        std::uniform_real_distribution<double> chance(0, 1);
        auto line_free = Clock::now();
        for (bool open = true; open;) {
            std::vector<std::uint8_t> bytes(65536);
            pollfd waiting{from_.fd(), POLLIN, 0};
            poll(&waiting, 1, -1);
            const ssize_t got = recv(from_.fd(), bytes.data(), bytes.size(), 0);
            if (got < 0 && (errno == EAGAIN || errno == EINTR)) continue;
            open = got > 0;
            bytes.resize(open ? static_cast<std::size_t>(got) : 0);
            line_free = std::max(line_free, Clock::now());
            if (options_.mbit > 0)
                line_free += of_ms(8e-3 * static_cast<double>(bytes.size()) / options_.mbit);
            if (chance(random) < options_.loss) line_free += of_ms(options_.repeat_ms);
            const std::lock_guard lock(mutex_);
            queue_.push_back({line_free + of_ms(options_.delay_ms), std::move(bytes)});
            changed_.notify_one();
        }
    }
    void write() {
        prctl(PR_SET_TIMERSLACK, 1);
        for (;;) {
            std::unique_lock lock(mutex_);
            changed_.wait(lock, [&] { return !queue_.empty(); });
            Late message = std::move(queue_.front());
            queue_.pop_front();
            lock.unlock();
            std::this_thread::sleep_until(message.due);
            if (message.bytes.empty() || !to_.send(message.bytes, kPatience).ok()) break;
        }
        to_.shut_down();
        from_.shut_down();
    }

private:
    struct Late {
        Clock::time_point due;
        std::vector<std::uint8_t> bytes;
    };
    static Clock::duration of_ms(double ms) {
        return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double, std::milli>(ms));
    }

    const Options& options_;
    const Socket &from_, &to_;
    const unsigned seed_;
    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<Late> queue_;
};

void pass(const Options& options, Socket client, unsigned seed) {
    auto server = Socket::connect({options.to, options.to_port}, kPatience);
    if (!server.ok()) return;
    Direction there(options, client, server.value(), seed), back(options, server.value(), client, seed + 1);
    std::thread threads[] = {std::thread([&] { there.read(); }), std::thread([&] { there.write(); }),
                             std::thread([&] { back.read(); })};
    back.write();
    for (auto& thread : threads) thread.join();
}

}  // namespace

int main(int argc, char** argv) {
    CLI::App app{"A slow way to a server."};
    Options options;
    app.add_option("--listen", options.listen, "address");
    app.add_option("--port", options.port, "0: a free one");
    app.add_option("--to", options.to, "address of the server");
    app.add_option("--to-port", options.to_port, "of the server");
    app.add_option("--delay-ms", options.delay_ms, "each way");
    app.add_option("--mbit", options.mbit, "a second, each way; 0: no limit");
    app.add_option("--loss", options.loss, "share of messages that come only at a repetition");
    app.add_option("--repeat-ms", options.repeat_ms, "until the repetition");
    CLI11_PARSE(app, argc, argv);
    auto listener = Socket::listen({options.listen, options.port});
    if (!listener.ok()) {
        std::fprintf(stderr, "cannot listen: %s\n", listener.error().message.c_str());
        return 1;
    }
    std::printf("listening at %s:%d\n", options.listen.c_str(), listener.value().port());
    std::fflush(stdout);
    for (unsigned seed = 1;; seed += 2) {
        auto client = listener.value().accept(-1);
        if (!client.ok()) return 1;
        std::thread(pass, std::cref(options), std::move(client).value(), seed).detach();
    }
}
