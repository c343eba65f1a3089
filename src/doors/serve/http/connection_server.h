#pragma once
#include <cpp-httplib/httplib.h>

#include <memory>

#include "doors/serve/http/client_presence.h"

namespace headrace::serve {

/// httplib's server, with connections that live on when a client closes its end. Requests for a part of an
/// answer (Range) get all of it, as RFC 9110 allows.
class ConnectionServer : public httplib::Server {
public:
    /// The client of the connection that this thread serves.
    static const std::shared_ptr<ClientPresence>& client();

private:
    bool process_and_close_socket(socket_t socket) override;
    bool serve(socket_t socket);
    bool wait_for_request(const httplib::Stream& connection) const;
};

}  // namespace headrace::serve
