#pragma once
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "headrace/headrace.h"

struct ggml_backend_device;

namespace headrace {

/// A device that a graph can be compiled for.
struct Device {
    ggml_backend_device* handle = nullptr;
    std::string name;
    bool is_cpu = true;
    std::string endpoint = {};  ///< "host:port" of a remote device
};

/// Somebody is connected to a remote device: kept while anything of ours lives there.
struct Connection {};
/// For a remote device, after a look whether its server still answers; null for a local one.
Result<std::shared_ptr<const Connection>> connect(const Device& device);

/// Every device that ggml found, remote ones that were named before included.
std::vector<DeviceInfo> list_devices();

/// "cpu"; "auto": the best local GPU, else the CPU; a name from list_devices(); "mlx": libggml-mlx.so, loaded
/// when it is asked for; or "rpc://host:port".
Result<Device> find_device(const std::string& name);

/// True when find_device("auto") would give a GPU.
bool has_gpu();

}  // namespace headrace
