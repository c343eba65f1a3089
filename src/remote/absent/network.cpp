// What of remote hosts needs POSIX's sockets and processes, on systems that have none: no host is reached and
// none is served.
#include "remote/link.h"
#include "remote/probe.h"
#include "remote/server.h"
#include "remote/socket.h"

namespace headrace::remote {

Result<Probe> probe(const Address& address, Milliseconds) {
    return unsupported("device '{}': remote hosts are not for this system; a device of this machine will do",
                       address.name());
}

Status serve(const ServerOptions&) {
    return unsupported("serve-rpc is not for this system: it gives each client a process by fork");
}

// No link is ever opened, since that follows a probe.
class Link::Connection {};
Result<std::unique_ptr<Link>> Link::open(const Address& address, const Patience& patience) {
    return probe(address, patience.connect).error();
}
Link::~Link() = default;
std::string Link::reason() const { return reason_; }
Traffic Link::traffic() const { return {}; }

Socket::~Socket() = default;
int Socket::port() const { return 0; }

SignalsBlocked::SignalsBlocked() = default;
SignalsBlocked::~SignalsBlocked() = default;

}  // namespace headrace::remote
