#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace headrace::remote {

/// How names of remote devices begin.
inline constexpr std::string_view kScheme = "rpc://";

inline bool is_remote(std::string_view device) { return device.starts_with(kScheme); }

/// The names of a list with commas, without the blanks around them.
std::vector<std::string> split_names(std::string_view list);

/// Where a host's RPC server listens.
struct Address {
    std::string host;  ///< a name or an IP address
    int port = 0;

    /// "rpc://host:port"; an IPv6 address stands in brackets.
    static Result<Address> parse(std::string_view name);
    std::string name() const;
};

}  // namespace headrace::remote
