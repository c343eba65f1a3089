#pragma once
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "doors/serve/http/message.h"

namespace headrace::serve {

struct ListenerOptions {
    std::vector<std::string> hosts = {"127.0.0.1"};
    int port = 8080;                      ///< 0 chooses a free one
    std::size_t most_connections = 4096;  ///< served at once; more are told to come back
    std::size_t most_body_bytes = std::size_t{16} << 20;
    std::chrono::seconds patience{3600};  ///< for a client that neither sends nor reads
    bool shares_port = false;             ///< others may listen at it, too
};

/// HTTP by cpp-httplib: a thread for each connection, up to a number.
class Listener {
public:
    Listener(ListenerOptions options, HttpHandler handler);
    ~Listener();
    Listener(const Listener&) = delete;
    Listener& operator=(const Listener&) = delete;

    /// Binds to all addresses. Errors: one that cannot be had, with what is wrong.
    Status bind();
    /// After stop(): ends connections whatever they wait for, half of a request or a client that does not
    /// read.
    void break_off();
    /// After bind: where it listens, "http://127.0.0.1:8080".
    std::vector<std::string> addresses() const;
    /// Serves until stop.
    void run();
    /// Threads of connections that have ended so far.
    std::size_t ended_threads() const;
    /// From any thread. Connections that are served end first.
    void stop();

private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace headrace::serve
