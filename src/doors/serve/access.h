#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "doors/serve/http/message.h"

namespace headrace::serve {

/// Who may use a server: keys, compared in a time that does not depend on where they differ.
class Access {
public:
    explicit Access(std::vector<std::string> keys) : keys_(std::move(keys)) {}

    bool asks_for_keys() const { return !keys_.empty(); }
    /// A name for the key that the request brings, in `authorization: Bearer` or `x-api-key`: not the key
    /// itself. Throws ApiError 401 without one that is known.
    std::string client_of(const HttpRequest& http) const;

private:
    std::vector<std::string> keys_;
};

}  // namespace headrace::serve
