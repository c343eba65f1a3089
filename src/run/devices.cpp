#include "run/devices.h"

#include <map>
#include <mutex>
#include <string_view>

#include "ggml-backend.h"
#include "run/endpoint.h"
#include "run/mlx_device.h"

namespace headrace {
namespace {

constexpr std::string_view kRpcScheme = "rpc://";

/// Backends built as separate libraries are found only when asked for.
void load_backends() {
    static std::once_flag once;
    std::call_once(once, [] {
        if (ggml_backend_dev_count() == 0) ggml_backend_load_all();
    });
}

bool is_rpc(ggml_backend_dev_t device) {
    return std::string_view(ggml_backend_reg_name(ggml_backend_dev_backend_reg(device))) == "RPC";
}

/// MLX reports itself as a GPU even where it computes on the CPU; ggml's CPU is then the faster choice.
bool is_cpu_hosted_mlx(ggml_backend_dev_t device) {
    return std::string_view(ggml_backend_dev_name(device)).starts_with("MLX") &&
           std::string_view(ggml_backend_dev_description(device)).find("CPU") != std::string_view::npos;
}

std::string type_name(ggml_backend_dev_t device) {
    if (is_rpc(device)) return "rpc";
    switch (ggml_backend_dev_type(device)) {
        case GGML_BACKEND_DEVICE_TYPE_CPU: return "cpu";
        case GGML_BACKEND_DEVICE_TYPE_GPU: return "gpu";
        case GGML_BACKEND_DEVICE_TYPE_IGPU: return "igpu";
        default: return "accel";
    }
}

Device describe(ggml_backend_dev_t handle) {
    return {handle, ggml_backend_dev_name(handle),
            ggml_backend_dev_type(handle) == GGML_BACKEND_DEVICE_TYPE_CPU};
}

ggml_backend_dev_t find_gpu() {
    load_backends();
    for (auto wanted : {GGML_BACKEND_DEVICE_TYPE_GPU, GGML_BACKEND_DEVICE_TYPE_IGPU})
        for (std::size_t i = 0; i < ggml_backend_dev_count(); ++i) {
            ggml_backend_dev_t device = ggml_backend_dev_get(i);
            if (ggml_backend_dev_type(device) == wanted && !is_rpc(device) && !is_cpu_hosted_mlx(device))
                return device;
        }
    return nullptr;
}

/// A server's first device. ggml's client aborts when it asks a server that is gone, so what it said when it
/// was added is kept, and a new connection is made only after a look whether anybody answers.
struct Remote {
    ggml_backend_dev_t device = nullptr;
    std::size_t memory_free = 0, memory_total = 0;
    std::weak_ptr<const Connection> connection;
};

struct Remotes {
    std::mutex mutex;
    std::map<std::string, Remote> by_endpoint;
};
Remotes& remotes() {
    static Remotes instance;
    return instance;
}

Status check_server(const std::string& endpoint) {
    auto status = check_endpoint(endpoint);
    if (status.ok()) return status;
    return failure(status.error().code,
                   "device 'rpc://{}': no RPC server to use ({}); start one and check host and port",
                   endpoint, status.error().message);
}

Result<Device> find_remote(const std::string& name) {
    const std::string endpoint = name.substr(kRpcScheme.size());
    ggml_backend_reg_t reg = ggml_backend_reg_by_name("RPC");
    if (!reg) return unsupported("device '{}': this ggml was built without its RPC backend (GGML_RPC)", name);
    using AddServer = ggml_backend_reg_t (*)(const char*);
    const auto add =
        reinterpret_cast<AddServer>(ggml_backend_reg_get_proc_address(reg, "ggml_backend_rpc_add_server"));
    if (!add) return unsupported("device '{}': this ggml cannot add RPC servers at run time", name);
    // One registration per endpoint: ggml would list the server's devices again.
    const std::lock_guard lock(remotes().mutex);
    auto it = remotes().by_endpoint.find(endpoint);
    if (it == remotes().by_endpoint.end()) {
        HR_TRY(check_server(endpoint));
        ggml_backend_reg_t server = add(endpoint.c_str());
        if (!server || ggml_backend_reg_dev_count(server) == 0)
            return failure(Code::backend_failure, "device '{}': the RPC server offers no device", name);
        ggml_backend_register(server);
        Remote remote{.device = ggml_backend_reg_dev_get(server, 0)};
        ggml_backend_dev_memory(remote.device, &remote.memory_free, &remote.memory_total);
        it = remotes().by_endpoint.emplace(endpoint, remote).first;
    }
    return Device{it->second.device, name, false, endpoint};
}

void read_memory(ggml_backend_dev_t device, DeviceInfo& info) {
    if (!is_rpc(device)) {
        ggml_backend_dev_memory(device, &info.memory_free, &info.memory_total);
        return;
    }
    const std::lock_guard lock(remotes().mutex);
    for (const auto& [endpoint, remote] : remotes().by_endpoint) {
        if (remote.device != device) continue;
        info.memory_free = remote.memory_free;
        info.memory_total = remote.memory_total;
    }
}

}  // namespace

Result<std::shared_ptr<const Connection>> connect(const Device& device) {
    if (device.endpoint.empty()) return std::shared_ptr<const Connection>();
    const std::lock_guard lock(remotes().mutex);
    Remote& remote = remotes().by_endpoint.at(device.endpoint);
    auto connection = remote.connection.lock();
    if (!connection) {
        HR_TRY(check_server(device.endpoint));
        connection = std::make_shared<const Connection>();
        remote.connection = connection;
    }
    return connection;
}

std::vector<DeviceInfo> list_devices() {
    load_backends();
    std::vector<DeviceInfo> list;
    for (std::size_t i = 0; i < ggml_backend_dev_count(); ++i) {
        ggml_backend_dev_t device = ggml_backend_dev_get(i);
        DeviceInfo info{.name = ggml_backend_dev_name(device),
                        .description = ggml_backend_dev_description(device),
                        .type = type_name(device)};
        read_memory(device, info);
        list.push_back(std::move(info));
    }
    return list;
}

bool has_gpu() { return find_gpu() != nullptr; }

Result<Device> find_device(const std::string& name) {
    load_backends();
    if (name.starts_with(kRpcScheme)) return find_remote(name);
    if (name == "auto")
        if (ggml_backend_dev_t gpu = find_gpu()) return describe(gpu);
    if (name == "auto" || name == "cpu") {
        if (ggml_backend_dev_t cpu = ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU))
            return describe(cpu);
        return failure(Code::backend_failure, "ggml has no CPU backend; check the libraries beside libggml");
    }
    if (name == "mlx") {
        HR_ASSIGN(ggml_backend_dev_t mlx, load_mlx_device());
        return describe(mlx);
    }
    if (ggml_backend_dev_t device = ggml_backend_dev_by_name(name.c_str())) return describe(device);
    std::string known = "cpu, auto, mlx, rpc://host:port";
    for (const DeviceInfo& info : list_devices()) known += ", " + info.name;
    return invalid("there is no device '{}'; known: {}", name, known);
}

}  // namespace headrace
