#pragma once
#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <string>

#include "base/result.h"
#include "doors/serve/access.h"
#include "doors/serve/http/message.h"
#include "doors/serve/log/server_log.h"
#include "doors/serve/models/service.h"

namespace headrace::serve {

/// Models behind HTTP's APIs. Thread-safe; `handle` answers from its first moment on, and says that models
/// are being loaded until they are.
class Server {
public:
    explicit Server(ServeOptions options);

    /// Loads the models; once. Errors: of the load.
    Status load();
    HttpResponse handle(HttpRequest http);
    /// Models and keys as the arguments and their files say now. What is wrong in them is said, and changes
    /// nothing.
    void reload();
    /// From now on; those that run go on.
    void refuse_requests();
    /// Requests that run end with an error, later ones are refused.
    void stop();
    /// Requests that are answered now.
    std::size_t active() const { return active_; }
    /// Requests so far.
    std::size_t handled() const { return handled_; }
    bool is_loading() const { return state_ == State::loading; }
    /// A model that somebody asked for.
    bool loads_a_model() const { return service_.is_loading(); }
    const ServerLog& log() const { return service_.log(); }

private:
    enum class State { loading, ready, failed, stopping };

    HttpResponse dispatch(HttpRequest& http, std::string& route);
    HttpResponse respond(HttpRequest& http, std::string& route);
    std::shared_ptr<const Access> access() const;
    void check_state() const;
    void check_host(const HttpRequest& http) const;
    bool is_foreign(const HttpRequest& http) const;
    HttpResponse health() const;
    void add_cors(const HttpRequest& http, HttpResponse& response) const;
    void note(const HttpRequest& http, int status, std::chrono::duration<double> took) const;

    Service service_;  // its models are there when state_ is ready
    const bool is_for_this_machine_;
    mutable std::mutex access_mutex_;       // libc++ has no atomic shared_ptr
    std::shared_ptr<const Access> access_;  // of whoever asks from now on
    std::atomic<State> state_ = State::loading;
    std::atomic<std::size_t> active_ = 0, handled_ = 0;
};

}  // namespace headrace::serve
