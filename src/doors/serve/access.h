#pragma once
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "doors/serve/http/message.h"

namespace headrace::serve {

/// The keys of those who may use a server, compared in a time that does not depend on where they differ.
class Access {
public:
    /// before: the keys until now. Those of them that stay keep their names, and nobody else ever gets one.
    explicit Access(const std::vector<std::string>& keys, const Access* before = nullptr);

    bool asks_for_keys() const { return !keys_.empty(); }
    /// A name for the key that the request brings, in `authorization: Bearer` or `x-api-key`: not the key
    /// itself. Throws ApiError 401 without one that is known.
    std::string client_of(const HttpRequest& http) const;

private:
    struct Key {
        std::string text;
        std::size_t number;
    };
    std::vector<Key> keys_;
    std::size_t next_number_ = 0;
};

}  // namespace headrace::serve
