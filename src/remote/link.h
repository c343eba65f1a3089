#pragma once
#include <atomic>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "base/result.h"
#include "remote/address.h"
#include "remote/protocol.h"
#include "remote/socket.h"

namespace headrace::remote {

/// How long the other end is waited for.
struct Patience {
    Milliseconds connect{5000};
    Milliseconds silence{60000};  ///< without a byte of a reply or of progress in sending

    bool operator==(const Patience&) const = default;
};

/// What went over a link.
struct Traffic {
    std::uint64_t sent = 0, received = 0;  ///< bytes
    std::uint64_t requests = 0;
    std::uint64_t round_trips = 0;  ///< requests that waited for a reply
};

inline constexpr std::string_view kLinkAddress = "127.0.0.1";

/// Stands between ggml's RPC client, which ends the process when a server is lost or answers nonsense, and a
/// host's server. ggml connects to a port of this process, open to this process only; what it sends goes to
/// the host, and replies that were checked come back. Once the host is lost, it stays so: ggml gets zeros,
/// its users see lost() and drop what they have there.
class Link {
public:
    static Result<std::unique_ptr<Link>> open(const Address& host, const Patience& patience);
    ~Link();
    Link(const Link&) = delete;
    Link& operator=(const Link&) = delete;

    /// What ggml connects to.
    std::string endpoint() const { return fmt::format("{}:{}", kLinkAddress, listener_.port()); }
    bool is_lost() const { return is_lost_; }
    /// Why; empty while it is not.
    std::string reason() const;
    Traffic traffic() const;
    const Patience& patience() const { return patience_; }

private:
    class Connection;
    Link(Address host, const Patience& patience, Socket listener);
    void listen();
    void lose(const std::string& reason);

    const Address host_;
    const Patience patience_;
    const std::shared_ptr<Alignments> alignments_ = std::make_shared<Alignments>();
    Socket listener_;
    int stop_[2] = {-1, -1};  // a pipe
    std::atomic<bool> is_lost_ = false;
    std::atomic<std::uint64_t> sent_ = 0, received_ = 0, requests_ = 0, round_trips_ = 0;
    mutable std::mutex mutex_;
    std::string reason_;
    std::list<Connection> connections_;
    std::thread thread_;
};

}  // namespace headrace::remote
