#pragma once
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "headrace/headrace.h"

struct ggml_backend_device;

namespace headrace {
namespace remote {
class Host;
}

/// A device that a graph can be compiled for.
struct Device {
    ggml_backend_device* handle = nullptr;
    std::string name;
    bool is_cpu = true;
    std::shared_ptr<remote::Host> host = nullptr;  ///< of a remote device
    std::vector<Device> others = {};               ///< remote ones that share a graph with it, nearest first

    /// Its own and the others', as the plan wants them: none of the CPU, which takes everything.
    std::vector<ggml_backend_device*> handles() const;
};

/// Every device that ggml found, and the remote ones that are in use.
std::vector<DeviceInfo> list_devices();

/// "cpu"; "auto": the best local GPU, else the CPU; a name from list_devices(); "mlx": libggml-mlx.so, loaded
/// when it is asked for; "rpc://host:port"; or several of those with commas between them, which share a
/// graph. host_timeout: remote ones that are silent for so long are lost.
Result<Device> find_device(const std::string& name,
                           std::chrono::milliseconds host_timeout = std::chrono::seconds(60));

/// Bytes that constants may take of a local device's free memory, of which a tenth is left to activations; no
/// limit where the device does not tell, and of remote ones, which share their nodes by what each has.
std::uint64_t room_for_constants(const Device& device);

/// Makes what the CPU's first graph would otherwise wait for.
void warm_up_cpu();

/// True when find_device("auto") would give a GPU.
bool has_gpu();

}  // namespace headrace
