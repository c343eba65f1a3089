#include "remote/server.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <thread>
#ifdef __linux__
#include <sys/prctl.h>
#endif

#include "base/cpu_count.h"
#include "base/log.h"
#include "base/machine_memory.h"
#include "ggml-backend.h"
#include "loading/backends.h"
#include "loading/ggml_log.h"
#include "remote/protocol.h"
#include "remote/socket.h"

namespace headrace::remote {
namespace {

constexpr Milliseconds kStart{10000}, kSilence{60000};
constexpr double kMib = 1 << 20;

using StartServer = void (*)(const char*, const char*, std::size_t, std::size_t, ggml_backend_dev_t*);

bool is_loopback(const sockaddr* address) {
    if (address->sa_family == AF_INET)
        return (ntohl(reinterpret_cast<const sockaddr_in*>(address)->sin_addr.s_addr) >> 24) == 127;
    return address->sa_family == AF_INET6 &&
           IN6_IS_ADDR_LOOPBACK(&reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr);
}

Status check_host(const ServerOptions& options) {
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = AI_PASSIVE;
    addrinfo* list = nullptr;
    if (const int status = getaddrinfo(options.host.c_str(), nullptr, &hints, &list); status != 0)
        return invalid("--host {}: {}", options.host, gai_strerror(status));
    bool is_private = true;
    for (const addrinfo* a = list; a; a = a->ai_next) is_private &= is_loopback(a->ai_addr);
    freeaddrinfo(list);
    if (is_private || options.allow_public) return success();
    return failure(
        Code::denied,
        "--host {}: other machines could connect there, and RPC has neither passwords nor encryption: "
        "whoever connects can use this machine's memory. Serve 127.0.0.1 and let clients come through "
        "ssh -L, or say --allow-public in a network that you trust",
        options.host);
}

Result<std::vector<ggml_backend_dev_t>> chosen_devices(const std::vector<std::string>& names) {
    load_backends();
    std::vector<ggml_backend_dev_t> devices;
    std::string known;
    for (std::size_t i = 0; i < ggml_backend_dev_count(); ++i) {
        ggml_backend_dev_t device = ggml_backend_dev_get(i);
        const auto type = ggml_backend_dev_type(device);
        known += fmt::format("{}{}", i ? ", " : "", ggml_backend_dev_name(device));
        if (names.empty() && (type == GGML_BACKEND_DEVICE_TYPE_GPU || type == GGML_BACKEND_DEVICE_TYPE_IGPU))
            devices.push_back(device);
    }
    for (const std::string& name : names) {
        ggml_backend_dev_t device = ggml_backend_dev_by_name(name.c_str());
        if (!device) return invalid("--device {}: there is none; there are: {}", name, known);
        devices.push_back(device);
    }
    if (devices.empty())
        if (ggml_backend_dev_t cpu = ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU)) devices = {cpu};
    if (devices.empty()) return failure(Code::backend_failure, "ggml found no device to serve");
    return devices;
}

Result<StartServer> server_function() {
    ggml_backend_reg_t reg = ggml_backend_reg_by_name("RPC");
    void* start = reg ? ggml_backend_reg_get_proc_address(reg, "ggml_backend_rpc_start_server") : nullptr;
    if (!start) return unsupported("this ggml was built without its RPC backend (GGML_RPC)");
    return reinterpret_cast<StartServer>(start);
}

/// What a child does first: it ends with its parent, and ggml's server shows nothing of its own.
void settle_child() {
#ifdef __linux__
    prctl(PR_SET_PDEATHSIG, SIGKILL);
#endif
    std::signal(SIGCHLD, SIG_DFL);
    setenv("GGML_NO_BACKTRACE", "1", 1);  // an assert would start a debugger
    capture_ggml_log();
}

/// Prints what is served. In a process of its own: the parent loads no GPU's driver, which no fork survives.
Status announce(const ServerOptions& options) {
    HR_ASSIGN(const auto devices, chosen_devices(options.devices));
    HR_TRY(server_function());
    for (ggml_backend_dev_t device : devices) {
        std::size_t free = 0, total = 0;
        ggml_backend_dev_memory(device, &free, &total);
        if (ggml_backend_dev_type(device) == GGML_BACKEND_DEVICE_TYPE_CPU) free = available_memory();
        std::printf("serving %s: %s, %.0f of %.0f MiB free\n", ggml_backend_dev_name(device),
                    ggml_backend_dev_description(device), static_cast<double>(free) / kMib,
                    static_cast<double>(total) / kMib);
    }
    std::fflush(stdout);
    return success();
}

Status announce_in_child(const ServerOptions& options) {
    int report[2];
    if (pipe(report) != 0) return failure(Code::io, "no pipe: {}", std::strerror(errno));
    const pid_t child = fork();
    if (child == 0) {
        settle_child();
        const Status status = announce(options);
        const std::string text = status.ok() ? "" : status.error().message;
        const bool told = write(report[1], text.data(), text.size()) == static_cast<ssize_t>(text.size());
        _exit(status.ok() && told ? 0 : 1);
    }
    ::close(report[1]);
    std::string text;
    std::array<char, 512> piece{};
    for (ssize_t n; (n = read(report[0], piece.data(), piece.size())) > 0;) text.append(piece.data(), n);
    ::close(report[0]);
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) != child || status != 0)
        return invalid("{}", text.empty() ? "ggml's devices cannot be looked at" : text);
    return success();
}

/// ggml calls all memory of a CPU free. Follows what a client asks, which is one thing after the other where
/// it waits for an answer, and tells it what is available.
class FreeMemory {
public:
    explicit FreeMemory(const std::vector<ggml_backend_dev_t>& devices) : devices_(devices) {}

    void see_requests(ByteView bytes) {
        while (!bytes.empty()) {
            std::size_t taken = 1;
            if (at_ < kHeaderBytes)
                header_[at_] = bytes[0];
            else if (at_ < kHeaderBytes + sizeof(device_))
                device_[at_ - kHeaderBytes] = bytes[0];
            else  // weights come this way, too
                taken = std::min<std::uint64_t>(bytes.size(), request_bytes() - at_);
            bytes = bytes.subspan(taken);
            at_ += taken;
            if (at_ < kHeaderBytes || at_ < request_bytes()) continue;
            at_ = 0;
            if (header_[0] == static_cast<std::uint8_t>(Command::get_device_memory) && is_cpu())
                reply_at_ = 0;
        }
    }
    void change_replies(std::span<std::uint8_t> bytes) {
        for (std::uint8_t& byte : bytes) {
            if (reply_at_ == kReplyBytes) return;
            if (reply_at_ == kSizeBytes) free_ = available_memory();
            if (reply_at_ >= kSizeBytes && reply_at_ < kSizeBytes + sizeof(free_))
                byte = static_cast<std::uint8_t>(free_ >> 8 * (reply_at_ - kSizeBytes));
            ++reply_at_;
        }
    }

private:
    static constexpr std::size_t kReplyBytes = kSizeBytes + 16;  // free and total

    std::uint64_t request_bytes() const { return kHeaderBytes + read_at<std::uint64_t>(header_, 1); }
    bool is_cpu() const {
        const auto device = read_at<std::uint32_t>(device_, 0);
        return device < devices_.size() &&
               ggml_backend_dev_type(devices_[device]) == GGML_BACKEND_DEVICE_TYPE_CPU;
    }

    const std::vector<ggml_backend_dev_t>& devices_;
    std::array<std::uint8_t, kHeaderBytes> header_{};
    std::array<std::uint8_t, sizeof(std::uint32_t)> device_{};
    std::uint64_t at_ = 0, free_ = 0;     // bytes of the request
    std::size_t reply_at_ = kReplyBytes;  // bytes of the reply to it
};

/// The two ends of a client and of ggml's server in this process, until one of them closes.
void relay(const Socket& client, const Socket& server, FreeMemory memory) {
    std::vector<std::uint8_t> bytes(std::size_t{256} << 10);
    const std::array<const Socket*, 2> ends{&client, &server};
    for (;;) {
        std::array<pollfd, 2> waiting{{{client.fd(), POLLIN, 0}, {server.fd(), POLLIN, 0}}};
        if (poll(waiting.data(), waiting.size(), -1) < 0 && errno != EINTR) return;
        for (std::size_t i = 0; i < ends.size(); ++i) {
            if (!waiting[i].revents) continue;
            const ssize_t got = recv(ends[i]->fd(), bytes.data(), bytes.size(), 0);
            if (got < 0 && (errno == EAGAIN || errno == EINTR)) continue;
            if (got <= 0) return;
            if (i == 0)
                memory.see_requests({bytes.data(), static_cast<std::size_t>(got)});
            else
                memory.change_replies({bytes.data(), static_cast<std::size_t>(got)});
            if (!ends[1 - i]->send({bytes.data(), static_cast<std::size_t>(got)}, kSilence).ok()) return;
        }
    }
}

/// ggml's server serves one client at a time and asserts what it is sent, so each client gets one.
[[noreturn]] void serve_client(const ServerOptions& options, Socket client) {
    settle_child();
    if (!freopen("/dev/null", "w", stdout)) _exit(1);
    auto devices = chosen_devices(options.devices);
    const auto start = server_function();
    Result<Socket> place = Socket::listen({"127.0.0.1", 0});
    if (!devices.ok() || !start.ok() || !place.ok()) _exit(1);
    if (options.prepare) options.prepare();
    const Address own{"127.0.0.1", place.value().port()};
    place.value().close();
    const std::string endpoint = fmt::format("{}:{}", own.host, own.port);
    const auto threads = static_cast<std::size_t>(options.threads > 0 ? options.threads : usable_cpus());
    std::thread([&, serve = start.value()] {
        serve(endpoint.c_str(), options.cache.empty() ? nullptr : options.cache.c_str(), threads,
              devices.value().size(), devices.value().data());
        _exit(1);
    }).detach();
    Result<Socket> server = Socket();
    for (const auto end = Clock::now() + kStart; !server.value().is_open() && Clock::now() < end;) {
        Result<Socket> connected = Socket::connect(own, kStart);
        if (connected.ok())
            server = std::move(connected);
        else
            std::this_thread::sleep_for(Milliseconds(5));
    }
    if (server.value().is_open()) relay(client, server.value(), FreeMemory(devices.value()));
    _exit(0);
}

int g_child_ended[2] = {-1, -1};  // a pipe: a signal handler may write there

void on_child_end(int) {
    const int error = errno;
    if (write(g_child_ended[1], "x", 1) < 0) errno = error;  // full: it will be read anyway
    errno = error;
}

class Clients {
public:
    explicit Clients(const ServerOptions& options) : options_(options) {}

    void serve(Socket client, const Socket& listener) {
        if (std::cmp_greater_equal(workers_.size(), options_.max_clients)) {
            HR_LOG(warn, {}, "a client was sent away: {} are served already (--max-clients)",
                   options_.max_clients);
            return;
        }
        const int number = ++count_;
        const pid_t child = fork();
        if (child == 0) {
            ::close(listener.fd());
            serve_client(options_, std::move(client));
        }
        if (child < 0) {
            HR_LOG(error, {}, "client {}: no process for it: {}", number, std::strerror(errno));
            return;
        }
        workers_[child] = number;
        HR_LOG(info, {}, "client {} connected", number);
    }

    void reap() {
        std::array<char, 64> bytes{};
        while (read(g_child_ended[0], bytes.data(), bytes.size()) > 0) continue;
        int status = 0;
        for (pid_t child; (child = waitpid(-1, &status, WNOHANG)) > 0;) {
            if (WIFSIGNALED(status))
                HR_LOG(error, {}, "client {}: what it sent ended its worker (signal {})", workers_[child],
                       WTERMSIG(status));
            else
                HR_LOG(info, {}, "client {} left", workers_[child]);
            workers_.erase(child);
        }
    }

private:
    const ServerOptions& options_;
    std::map<pid_t, int> workers_;
    int count_ = 0;
};

Status watch_children() {
    if (pipe(g_child_ended) != 0) return failure(Code::io, "no pipe: {}", std::strerror(errno));
    for (const int end : g_child_ended) {
        fcntl(end, F_SETFL, O_NONBLOCK);
        fcntl(end, F_SETFD, FD_CLOEXEC);
    }
    struct sigaction action {};
    action.sa_handler = &on_child_end;
    action.sa_flags = SA_RESTART;
    sigaction(SIGCHLD, &action, nullptr);
    return success();
}

}  // namespace

Status serve(const ServerOptions& options) {
    HR_TRY(check_host(options));
    if (std::error_code error; !options.cache.empty() && !std::filesystem::is_directory(options.cache, error))
        return failure(Code::not_found, "--cache {}: there is no such folder", options.cache);
    HR_TRY(announce_in_child(options));
    Result<Socket> listener = Socket::listen({options.host, options.port});
    if (!listener.ok())
        return failure(Code::io, "cannot listen at {}: {}", Address{options.host, options.port}.name(),
                       listener.error().message);
    HR_TRY(watch_children());
    std::printf("listening at %s\n", Address{options.host, listener.value().port()}.name().c_str());
    std::fflush(stdout);
    Clients clients(options);
    for (;;) {
        HR_ASSIGN(Socket client, listener.value().accept(g_child_ended[0]));
        if (client.is_open())
            clients.serve(std::move(client), listener.value());
        else
            clients.reap();
    }
}

}  // namespace headrace::remote
