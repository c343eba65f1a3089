#include "run/devices.h"

#include <algorithm>
#include <iterator>
#include <string_view>

#include "ggml-backend.h"
#include "loading/backends.h"
#include "remote/host.h"
#include "run/mlx_device.h"

namespace headrace {
namespace {

/// MLX reports itself as a GPU even where it computes on the CPU; ggml's CPU is then the faster choice.
bool is_cpu_hosted_mlx(ggml_backend_dev_t device) {
    return std::string_view(ggml_backend_dev_name(device)).starts_with("MLX") &&
           std::string_view(ggml_backend_dev_description(device)).find("CPU") != std::string_view::npos;
}

std::string type_name(ggml_backend_dev_t device) {
    switch (ggml_backend_dev_type(device)) {
        case GGML_BACKEND_DEVICE_TYPE_CPU: return "cpu";
        case GGML_BACKEND_DEVICE_TYPE_GPU: return "gpu";
        case GGML_BACKEND_DEVICE_TYPE_IGPU: return "igpu";
        default: return "accel";
    }
}

std::string describe(const remote::Probe& probe) {
    return fmt::format("RPC {}, round trip {:.2f} ms, {:.0f} MB/s", probe.version, probe.round_trip_ms,
                       probe.bytes_per_second / 1e6);
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
            if (ggml_backend_dev_type(device) == wanted && !is_cpu_hosted_mlx(device)) return device;
        }
    return nullptr;
}

constexpr double kActivationBytes = 256 << 10;  // what a graph may send from one host to the next
constexpr std::chrono::milliseconds kLeastTimeout{100}, kMostTimeout{1 << 30};
constexpr std::size_t kMostHosts = 15;  // ggml's scheduler takes 16 backends, and the CPU is one

/// One host, or those of a list, nearest first.
Result<Device> find_remote(std::string_view names, std::chrono::milliseconds host_timeout) {
    std::vector<Device> found;
    for (const std::string& listed : remote::split_names(names)) {
        HR_ASSIGN(std::shared_ptr<remote::Host> host, remote::Host::open(listed, {.silence = host_timeout}));
        for (const Device& other : found)
            if (other.host == host) return invalid("device '{}' is named twice", host->name());
        ggml_backend_dev_t first = host->devices().front();
        std::string name = host->name();
        found.push_back({first, std::move(name), false, std::move(host)});
    }
    if (found.size() > kMostHosts)
        return unsupported("{} hosts are named for a graph, and {} are the most", found.size(), kMostHosts);
    std::stable_sort(found.begin(), found.end(), [](const Device& a, const Device& b) {
        return a.host->probe().hop_ms(kActivationBytes) < b.host->probe().hop_ms(kActivationBytes);
    });
    Device nearest = std::move(found.front());
    nearest.others.assign(std::make_move_iterator(found.begin() + 1), std::make_move_iterator(found.end()));
    return nearest;
}

/// What find_device() takes here, for its message.
std::string known_devices() {
    std::string known = "cpu, auto (the best GPU, else the CPU)";
    for (const DeviceInfo& info : list_devices())
        if (info.type != "cpu") known += ", " + info.name;
    if (has_mlx_library()) known += ", mlx";
    return known + ", rpc://host:port";
}

}  // namespace

std::vector<ggml_backend_device*> Device::handles() const {
    if (is_cpu) return {};
    std::vector<ggml_backend_device*> all{handle};
    for (const Device& other : others) all.push_back(other.handle);
    return all;
}

std::vector<DeviceInfo> list_devices() {
    load_backends();
    std::vector<DeviceInfo> list;
    for (std::size_t i = 0; i < ggml_backend_dev_count(); ++i) {
        ggml_backend_dev_t device = ggml_backend_dev_get(i);
        DeviceInfo info{.name = ggml_backend_dev_name(device),
                        .description = ggml_backend_dev_description(device),
                        .type = type_name(device)};
        ggml_backend_dev_memory(device, &info.memory_free, &info.memory_total);
        list.push_back(std::move(info));
    }
    for (const auto& host : remote::open_hosts()) {
        const auto is_same = [&](const DeviceInfo& info) { return info.name == host->name(); };
        if (std::any_of(list.begin(), list.end(), is_same)) continue;  // with another patience
        for (const remote::Probe::Memory& memory : host->probe().devices)
            list.push_back({.name = host->name(),
                            .description = describe(host->probe()),
                            .type = "rpc",
                            .memory_free = memory.free,
                            .memory_total = memory.total});
    }
    return list;
}

std::uint64_t room_for_constants(const Device& device) {
    std::size_t free = 0, total = 0;
    if (!device.is_cpu && !device.host) ggml_backend_dev_memory(device.handle, &free, &total);
    return total > 0 ? free / 10 * 9 : UINT64_MAX;
}

void warm_up_cpu() { make_cpu_tables(); }

bool has_gpu() { return find_gpu() != nullptr; }

Result<Device> find_device(const std::string& name, std::chrono::milliseconds host_timeout) {
    if (host_timeout < kLeastTimeout || host_timeout > kMostTimeout)
        return invalid("host_timeout_ms is {}; it must be {} to {}", host_timeout.count(),
                       kLeastTimeout.count(), kMostTimeout.count());
    load_backends();
    if (remote::is_remote(name)) return find_remote(name, host_timeout);
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
    return invalid("there is no device '{}'; known: {}; docs/devices.md tells how a GPU is added", name,
                   known_devices());
}

}  // namespace headrace
