#include "doors/serve/http/listener.h"

#include <fmt/format.h>
#include <netdb.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <thread>
#include <utility>

#include "doors/serve/http/connection_server.h"
#include "doors/serve/http/connection_threads.h"
#include "doors/serve/http/target.h"

namespace headrace::serve {
namespace {

HttpRequest request_of(const httplib::Request& given) {
    HttpRequest request{
        .method = given.method, .path = std::string(origin_form(given.path)), .body = given.body};
    for (const auto& [name, value] : given.params) request.query.emplace(name, value);
    for (const auto& [name, value] : given.headers) request.add_header(name, value);
    request.id = new_request_id();
    const std::shared_ptr<ClientPresence> client = ConnectionServer::client();
    client->begin_request(given.version != "HTTP/1.0");
    request.is_gone = [client] { return client->is_gone(); };
    request.sends_no_more = [client] { return client->sends_no_more(); };
    return request;
}

class Sink : public HttpSink {
public:
    explicit Sink(httplib::DataSink& sink) : sink_(sink) {}
    bool write(std::string_view bytes) override { return sink_.write(bytes.data(), bytes.size()); }

private:
    httplib::DataSink& sink_;
};

/// The mark of a response that the handler has made.
constexpr const char* kIsAnswered = "answered";

/// The connection's end is that of the body. httplib ends it where no more of a body can be had.
void end_with_connection(httplib::Response& response, const std::string& type,
                         std::function<void(HttpSink&)> write) {
    response.set_content_provider(type, [write = std::move(write)](std::size_t, httplib::DataSink& sink) {
        Sink out(sink);
        write(out);
        return false;
    });
}

void answer(const HttpHandler& handler, const httplib::Request& given, httplib::Response& response,
            int refused) {
    HttpRequest request = request_of(given);
    request.refused = refused;
    HttpResponse made = handler(std::move(request));
    ConnectionServer::client()->begin_answer();
    response.user_data.set(kIsAnswered, true);
    response.status = made.status;
    for (const auto& [name, value] : made.headers) response.set_header(name, value);
    if (given.method == "HEAD") response.set_header("Accept-Ranges", "none");  // httplib says bytes
    if (!made.stream) {
        if (!made.body.empty() || made.status != 204) response.set_content(std::move(made.body), made.type);
    } else if (given.version == "HTTP/1.0") {  // which knows no chunks
        end_with_connection(response, made.type, std::move(made.stream));
    } else {
        response.set_chunked_content_provider(
            made.type, [write = std::move(made.stream)](std::size_t, httplib::DataSink& sink) {
                Sink out(sink);
                write(out);
                sink.done();
                return true;
            });
    }
}

/// The body is whole, and nothing follows it: not even what lies there of a request that was not read.
void answer_last(const HttpHandler& handler, const httplib::Request& given, httplib::Response& response,
                 int refused) {
    answer(handler, given, response, refused);
    const std::string type = response.get_header_value("Content-Type");
    response.headers.erase("Content-Type");  // which the next call sets
    end_with_connection(response, type,
                        [body = std::exchange(response.body, {})](HttpSink& sink) { sink.write(body); });
}

/// httplib says of every error that it ends the connection, and waits for another request all the same.
void tell_of_connection(const httplib::Request& given, httplib::Response& response) {
    const bool ends = response.content_provider_ && !response.is_chunked_content_provider_;
    const bool is_read = given.body_consumed_ ||
                         !(given.has_header("Content-Length") || given.has_header("Transfer-Encoding"));
    const bool stays = response.status >= 400 && is_read && given.version == "HTTP/1.1" &&
                       !httplib::detail::has_header_token(given.headers, "Connection", "close");
    if (ends || stays) response.headers.erase("Connection");
    if (ends) response.headers.erase("Keep-Alive");
    if (ends) response.set_header("Connection", "close");
}

/// Why a host and a port cannot be listened at; number: errno.
Error refusal(const std::string& host, int port, int number) {
    constexpr const char* kRemedy = "127.0.0.1 is for this machine alone, 0.0.0.0 for whoever reaches it";
    addrinfo* found = nullptr;
    if (const int unknown = getaddrinfo(host.c_str(), nullptr, nullptr, &found); unknown != 0)
        return failure(Code::io, "--host: '{}' is no address: {}. {}", host, gai_strerror(unknown), kRemedy);
    freeaddrinfo(found);
    if (number == EADDRNOTAVAIL)
        return failure(Code::io, "--host: '{}' is no address of this machine. {}", host, kRemedy);
    if (port == 0) return failure(Code::io, "--host: cannot listen at {}: {}", host, std::strerror(number));
    return failure(Code::io, "cannot listen at {}, port {}: {}. Name another --port, or 0 for a free one",
                   host, port, std::strerror(number));
}

/// A server that was killed leaves its file, at which nobody listens.
void remove_dead_socket(const std::string& path) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (path.size() >= sizeof address.sun_path) return;
    std::memcpy(address.sun_path, path.data(), path.size());
    const int probe = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (probe < 0) return;
    const bool is_refused =
        ::connect(probe, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 &&
        errno == ECONNREFUSED;
    ::close(probe);
    if (is_refused) ::unlink(path.c_str());
}

/// One more than the largest descriptor that this process may have.
int most_descriptors() {
    constexpr long kAny = 1 << 20;
    const long most = sysconf(_SC_OPEN_MAX);
    return static_cast<int>(most < 0 ? kAny : std::min(most, kAny));
}

/// host: an address, or the path of a socket, for which the port is 0.
bool is_connection_of(int descriptor, const std::string& host, int port) {
    sockaddr_storage own{}, other{};
    socklen_t own_size = sizeof(own), other_size = sizeof(other);
    if (getsockname(descriptor, reinterpret_cast<sockaddr*>(&own), &own_size) != 0 ||
        getpeername(descriptor, reinterpret_cast<sockaddr*>(&other), &other_size) != 0)
        return false;
    if (own.ss_family == AF_UNIX)
        return port == 0 && host == reinterpret_cast<const sockaddr_un&>(own).sun_path;
    const in_port_t bound = own.ss_family == AF_INET    ? reinterpret_cast<const sockaddr_in&>(own).sin_port
                            : own.ss_family == AF_INET6 ? reinterpret_cast<const sockaddr_in6&>(own).sin6_port
                                                        : 0;
    return port > 0 && ntohs(bound) == port;
}

}  // namespace

struct Listener::Impl {
    /// One for each address: httplib's server has one socket.
    struct Socket {
        std::string host;
        int port = 0;
        ConnectionServer server;
    };
    ListenerOptions options;
    HttpHandler handler;
    std::vector<std::unique_ptr<Socket>> sockets;
    std::atomic<std::size_t> ended_threads = 0;

    void configure(ConnectionServer& server) {
        server.new_task_queue = [this] {
            return new ConnectionThreads(options.most_connections, ended_threads);
        };
        server.set_payload_max_length(options.most_body_bytes);
        server.set_read_timeout(options.patience);
        server.set_write_timeout(options.patience);
        server.set_keep_alive_timeout(15);
        server.set_keep_alive_max_count(10'000);
        server.set_tcp_nodelay(true);
        // Without httplib's SO_REUSEPORT, by which a second server would take a part of the first one's
        // clients.
        server.set_socket_options([this](socket_t socket) {
            httplib::set_socket_opt(socket, SOL_SOCKET, SO_REUSEADDR, 1);
            if (options.shares_port) httplib::set_socket_opt(socket, SOL_SOCKET, SO_REUSEPORT, 1);
        });
        // Before the body is sent: whoever sends too much hears it at once.
        server.set_pre_routing_handler([this](const httplib::Request& given, httplib::Response& response) {
            if (given.get_header_value_u64("Content-Length") <= options.most_body_bytes)
                return httplib::Server::HandlerResponse::Unhandled;
            answer(handler, given, response, 413);  // what is on its way is not read
            return httplib::Server::HandlerResponse::Handled;
        });
        const auto serve = [this](const httplib::Request& given, httplib::Response& response) {
            if (ConnectionThreads::is_surplus()) return answer_last(handler, given, response, 503);
            answer(handler, given, response, 0);
        };
        server.Get(".*", serve);
        server.Post(".*", serve);
        server.Put(".*", serve);
        server.Patch(".*", serve);
        server.Delete(".*", serve);
        server.Options(".*", serve);
        // What httplib refuses by itself, in the same shape.
        server.set_error_handler([this](const httplib::Request& given, httplib::Response& response) {
            if (response.user_data.has(kIsAnswered)) return httplib::Server::HandlerResponse::Unhandled;
            answer_last(handler, given, response, response.status);
            return httplib::Server::HandlerResponse::Handled;
        });
        server.set_post_routing_handler(tell_of_connection);
    }

    Status bind(const std::string& host) {
        auto socket = std::make_unique<Socket>();
        socket->host = host;
        configure(socket->server);
        if (host.ends_with(".sock")) {
            socket->server.set_address_family(AF_UNIX);
            remove_dead_socket(host);
            if (!socket->server.bind_to_port(host, 8080))
                return failure(Code::io, "--host: cannot listen at the socket {}: {}", host,
                               std::strerror(errno));
        } else if (options.port == 0) {
            socket->port = socket->server.bind_to_any_port(host);
            if (socket->port <= 0) return refusal(host, 0, errno);
            options.port = socket->port;  // the other addresses take the same
        } else {
            socket->port = options.port;
            if (!socket->server.bind_to_port(host, options.port)) return refusal(host, options.port, errno);
        }
        sockets.push_back(std::move(socket));
        return success();
    }
};

Listener::Listener(ListenerOptions options, HttpHandler handler)
    : impl_(new Impl{.options = std::move(options), .handler = std::move(handler), .sockets = {}}) {}

Listener::~Listener() = default;

Status Listener::bind() {
    for (const std::string& host : impl_->options.hosts) HR_TRY(impl_->bind(host));
    return success();
}

std::vector<std::string> Listener::addresses() const {
    std::vector<std::string> all;
    for (const auto& socket : impl_->sockets)
        all.push_back(socket->port == 0 ? socket->host
                      : socket->host.find(':') != std::string::npos
                          ? fmt::format("http://[{}]:{}", socket->host, socket->port)
                          : fmt::format("http://{}:{}", socket->host, socket->port));
    return all;
}

void Listener::run() {
    std::vector<std::thread> others;
    for (std::size_t i = 1; i < impl_->sockets.size(); ++i)
        others.emplace_back([socket = impl_->sockets[i].get()] { socket->server.listen_after_bind(); });
    impl_->sockets.front()->server.listen_after_bind();
    for (std::thread& other : others) other.join();
}

std::size_t Listener::ended_threads() const { return impl_->ended_threads; }

void Listener::stop() {
    for (const auto& socket : impl_->sockets) socket->server.stop();
}

// httplib keeps the sockets of its connections to itself: ours are those of the process that have the address
// where we listened.
void Listener::break_off() {
    for (int descriptor = 3; descriptor < most_descriptors(); ++descriptor)
        for (const auto& socket : impl_->sockets)
            if (is_connection_of(descriptor, socket->host, socket->port)) ::shutdown(descriptor, SHUT_RDWR);
}

}  // namespace headrace::serve
