#pragma once
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"

namespace headrace::remote {

struct ServerOptions {
    std::string host = "127.0.0.1";
    int port = 50052;  ///< 0 chooses a free one
    /// Listen where other machines can connect. The protocol knows no passwords, and its clients read and
    /// write this process's memory.
    bool allow_public = false;
    std::vector<std::string> devices;  ///< by name; none: the GPUs, else the CPU
    int threads = 0;                   ///< of the CPU; 0: one per core
    std::string cache;                 ///< folder for weights, so that they are sent once; empty: none
    int max_clients = 16;
    std::function<void()> prepare;  ///< run in each client's process, when the devices are known
};

/// Serves devices of this machine to other hosts by ggml's RPC protocol, each client in a process of its own:
/// one that sends nonsense ends nothing but its own. Returns only with an error.
Status serve(const ServerOptions& options);

}  // namespace headrace::remote
