#include "remote/link.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <map>
#include <set>
#include <vector>

#include "remote/protocol.h"

namespace headrace::remote {
namespace {

constexpr std::size_t kChunk = std::size_t{256} << 10;
constexpr auto kForever = std::chrono::hours(24);

/// Whether the other end of a loopback connection is a socket of this process.
bool is_own(const Socket& accepted) {
    sockaddr_in peer{};
    socklen_t size = sizeof(peer);
    if (getpeername(accepted.fd(), reinterpret_cast<sockaddr*>(&peer), &size) != 0) return false;
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator("/dev/fd", error)) {
        const std::string name = entry.path().filename();
        int fd = -1;
        std::from_chars(name.data(), name.data() + name.size(), fd);
        sockaddr_in own{};
        size = sizeof(own);
        if (getsockname(fd, reinterpret_cast<sockaddr*>(&own), &size) != 0 || own.sin_family != AF_INET)
            continue;
        if (own.sin_port == peer.sin_port && own.sin_addr.s_addr == peer.sin_addr.s_addr) return true;
    }
    return false;
}

/// A port that no link had before: ggml remembers for good what it has been told there.
Result<Socket> listen_at_new_port() {
    static std::mutex mutex;
    static auto* used = new std::set<int>;
    const std::lock_guard lock(mutex);
    std::vector<Socket> taken;  // until a new one is found, so that they are not given again
    for (;;) {
        HR_ASSIGN(Socket listener, Socket::listen({std::string(kLinkAddress), 0}));
        if (used->insert(listener.port()).second) return listener;
        taken.push_back(std::move(listener));
    }
}

}  // namespace

/// One connection of ggml's client, and the one to the host that it stands for.
class Link::Connection {
public:
    Connection(Link& link, Socket client)
        : link_(link), client_(std::move(client)), record_(link.alignments_) {
        thread_ = std::thread([this] { serve(); });
    }
    ~Connection() {
        client_.shut_down();
        thread_.join();
    }
    bool is_over() const { return is_over_; }

private:
    void serve();
    Status wait_for_request();
    Result<Request> read_request();
    void forward(Request& request);
    void forward_rest(const Request& request);
    void answer(const Request& request, std::uint64_t bytes);
    void answer_long(std::uint64_t bytes);
    void send_to_host(ByteView bytes);
    bool receive_from_host(std::span<std::uint8_t> bytes);
    void lose(const std::string& reason) { link_.lose(reason); }

    Link& link_;
    Socket client_, host_;
    PeerRecord record_;
    /// The graph that GRAPH_RECOMPUTE repeats on a device. The server forgets it when any buffer is freed.
    struct Graph {
        Bytes request;
        bool is_forgotten = false;
    };
    std::map<std::uint32_t, Graph> graphs_;
    Bytes chunk_;
    std::atomic<bool> is_over_ = false;
    std::thread thread_;
};

void Link::Connection::serve() {
    if (!link_.is_lost()) {
        Result<Socket> host = Socket::connect(link_.host_, link_.patience_.connect);
        if (host.ok())
            host_ = std::move(host).value();
        else
            lose(host.error().message);
    }
    chunk_.resize(kChunk);
    for (;;) {
        if (!wait_for_request().ok()) break;
        Result<Request> request = read_request();
        if (!request.ok()) break;
        forward(request.value());
    }
    client_.shut_down();
    host_.close();
    is_over_ = true;
}

/// Until then nothing may come from the host but its end.
Status Link::Connection::wait_for_request() {
    for (;;) {
        if (link_.is_lost()) host_.close();  // a server that serves one client at a time is free again
        const bool watches_host = host_.is_open();
        std::array<pollfd, 2> waiting{{{client_.fd(), POLLIN, 0}, {host_.fd(), POLLIN, 0}}};
        if (poll(waiting.data(), watches_host ? 2 : 1, -1) < 0) {
            if (errno == EINTR) continue;
            return failure(Code::io, "{}", std::strerror(errno));
        }
        if (waiting[0].revents) return success();
        if (waiting[1].revents) {
            std::uint8_t byte = 0;
            const Status end = host_.receive({&byte, 1}, link_.patience_.silence);
            lose(end.ok() ? "it sends what nobody asked for" : end.error().message);
        }
    }
}

Result<Request> Link::Connection::read_request() {
    std::array<std::uint8_t, kHeaderBytes> header{};
    HR_TRY(client_.receive(header, kForever));
    if (!is_command(header[0])) return unsupported("ggml's client sends the unknown command {}", header[0]);
    Request request{
        .command = static_cast<Command>(header[0]), .size = read_at<std::uint64_t>(header, 1), .head = {}};
    const bool is_whole = request.command == Command::graph_compute || request.size <= kChunk;
    request.head.resize(is_whole ? request.size : kChunk);
    HR_TRY(client_.receive(request.head, kForever));
    return request;
}

void Link::Connection::send_to_host(ByteView bytes) {
    if (link_.is_lost()) return;
    if (const Status sent = host_.send(bytes, link_.patience_.silence); !sent.ok())
        return lose(sent.error().message);
    link_.sent_ += bytes.size();
}

bool Link::Connection::receive_from_host(std::span<std::uint8_t> bytes) {
    if (link_.is_lost()) return false;
    if (const Status got = host_.receive(bytes, link_.patience_.silence); !got.ok())
        lose(got.error().message);
    link_.received_ += bytes.size();
    return !link_.is_lost();
}

void Link::Connection::forward(Request& request) {
    if (request.command == Command::hello)  // the capabilities would change the transport
        std::fill(request.head.begin(), request.head.end(), std::uint8_t{0});
    if (request.command == Command::free_buffer)
        for (auto& [device, graph] : graphs_) graph.is_forgotten = true;
    ++link_.requests_;
    const auto device = read_at<std::uint32_t>(request.head, 0);
    if (request.command == Command::graph_recompute && graphs_[device].is_forgotten) {
        send_to_host(message(Command::graph_compute, graphs_[device].request));
        graphs_[device].is_forgotten = false;
        return;
    }
    Bytes bytes{static_cast<std::uint8_t>(request.command)};  // one packet: ggml sends three
    append(bytes, request.size);
    bytes.insert(bytes.end(), request.head.begin(), request.head.end());
    send_to_host(bytes);
    forward_rest(request);
    if (const auto reply = reply_bytes(request)) answer(request, *reply);
    if (request.command == Command::graph_compute) graphs_[device] = {std::move(request.head), false};
}

void Link::Connection::forward_rest(const Request& request) {
    for (std::uint64_t left = request.size - request.head.size(); left > 0;) {
        const auto part = std::span(chunk_).first(std::min<std::uint64_t>(left, kChunk));
        if (!client_.receive(part, kForever).ok()) return lose("the transfer to it was broken off");
        send_to_host(part);
        left -= part.size();
    }
}

void Link::Connection::answer(const Request& request, std::uint64_t bytes) {
    ++link_.round_trips_;
    std::array<std::uint8_t, kSizeBytes> size{};
    if (receive_from_host(size) && read_at<std::uint64_t>(size, 0) != bytes)
        lose(fmt::format("it answers {} with {} bytes in place of {}", name_of(request.command),
                         read_at<std::uint64_t>(size, 0), bytes));
    if (request.command == Command::get_tensor) return answer_long(bytes);
    Bytes reply(bytes);
    if (receive_from_host(reply))
        if (const Status sane = record_.check(request, reply); !sane.ok()) lose(sane.error().message);
    if (link_.is_lost()) reply = stand_in(request);
    if (request.command == Command::hello) std::fill(reply.begin() + 4, reply.end(), std::uint8_t{0});
    Bytes whole;
    append(whole, bytes);
    whole.insert(whole.end(), reply.begin(), reply.end());
    static_cast<void>(client_.send(whole, kForever));  // a client that is gone is noticed at its next request
}

void Link::Connection::answer_long(std::uint64_t bytes) {
    Bytes whole;
    append(whole, bytes);
    for (std::uint64_t left = bytes; left > 0 || !whole.empty();) {
        const auto part = std::span(chunk_).first(std::min<std::uint64_t>(left, kChunk));
        if (!receive_from_host(part)) std::fill(part.begin(), part.end(), std::uint8_t{0});
        whole.insert(whole.end(), part.begin(), part.end());
        if (!client_.send(whole, kForever).ok()) return;
        whole.clear();
        left -= part.size();
    }
}

Link::Link(Address host, const Patience& patience, Socket listener)
    : host_(std::move(host)), patience_(patience), listener_(std::move(listener)) {}

Result<std::unique_ptr<Link>> Link::open(const Address& host, const Patience& patience) {
    HR_ASSIGN(Socket listener, listen_at_new_port());
    std::unique_ptr<Link> link(new Link(host, patience, std::move(listener)));
    if (pipe(link->stop_) != 0) return failure(Code::io, "no pipe: {}", std::strerror(errno));
    for (const int end : link->stop_) fcntl(end, F_SETFD, FD_CLOEXEC);
    const SignalsBlocked blocked;
    link->thread_ = std::thread([self = link.get()] { self->listen(); });
    return link;
}

Link::~Link() {
    // Closing would not wake it where a child process of the program's has the writing end, too.
    if (thread_.joinable() && write(stop_[1], "", 1) == 1) thread_.join();
    connections_.clear();
    for (const int end : stop_)
        if (end >= 0) ::close(end);
}

void Link::listen() {
    for (;;) {
        Result<Socket> client = listener_.accept(stop_[0]);
        if (!client.ok()) return lose(client.error().message);
        if (!client.value().is_open()) return;
        if (!is_own(client.value())) continue;
        connections_.remove_if([](const Connection& c) { return c.is_over(); });
        connections_.emplace_back(*this, std::move(client).value());
    }
}

void Link::lose(const std::string& reason) {
    const std::lock_guard lock(mutex_);
    if (is_lost_) return;
    reason_ = reason;
    is_lost_ = true;
}

std::string Link::reason() const {
    const std::lock_guard lock(mutex_);
    return reason_;
}

Traffic Link::traffic() const { return {sent_, received_, requests_, round_trips_}; }

}  // namespace headrace::remote
