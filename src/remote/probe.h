#pragma once
#include <string>
#include <vector>

#include "base/result.h"
#include "remote/address.h"
#include "remote/socket.h"

namespace headrace::remote {

/// What a host's RPC server said of itself, and how fast the way there is.
struct Probe {
    struct Memory {
        std::size_t free = 0, total = 0;  ///< bytes
    };
    std::string version;          ///< of the protocol
    std::vector<Memory> devices;  ///< of each that it serves
    double round_trip_ms = 0;     ///< the shortest of a few
    double bytes_per_second = 0;  ///< towards the host

    /// Milliseconds for sending that many bytes and waiting for the answer.
    double hop_ms(double bytes) const {
        return round_trip_ms + (bytes_per_second > 0 ? 1e3 * bytes / bytes_per_second : 0);
    }
};

/// Asks over a connection of its own. patience: with one answer; all of them may take four times as long.
/// Errors name the host, what is wrong and the remedy.
Result<Probe> probe(const Address& address, Milliseconds patience);

}  // namespace headrace::remote
