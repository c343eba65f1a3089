#pragma once
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "doors/serve/http/answer_record.h"

namespace headrace::serve {

/// A request as handlers see it, whatever brought it.
struct HttpRequest {
    std::string method, path, body;
    std::map<std::string, std::string> query;
    std::map<std::string, std::string> headers;  ///< names in lower case
    std::string id;                              ///< of the log, and of the header x-request-id
    int refused = 0;     ///< the status with which HTTP itself refuses it: only its shape is asked for
    std::string client;  ///< whose key it came with; empty where none is asked for
    std::shared_ptr<AnswerRecord> record = std::make_shared<AnswerRecord>();
    /// Whether nobody waits for the answer any more.
    std::function<bool()> is_gone = [] { return false; };
    /// Whether whoever waits has closed its end of the connection. It may be gone, which only what is written
    /// to it tells.
    std::function<bool()> sends_no_more = [] { return false; };

    /// Empty when there is none.
    std::string_view header(const std::string& name) const;
    /// The first of a name counts.
    void add_header(std::string name, std::string value);
};

/// For the log.
std::string new_request_id();

/// Takes a response in pieces.
class HttpSink {
public:
    virtual ~HttpSink() = default;
    /// False when nobody reads them any more.
    virtual bool write(std::string_view bytes) = 0;
};

struct HttpResponse {
    int status = 200;
    std::string type = "application/json; charset=utf-8";
    std::string body;
    std::vector<std::pair<std::string, std::string>> headers;
    /// In place of a body: writes it piece by piece, and returns at its end.
    std::function<void(HttpSink&)> stream;
};

using HttpHandler = std::function<HttpResponse(HttpRequest)>;

}  // namespace headrace::serve
