#include "backends/mlx/backend.h"

#include "backends/mlx/arrays/status.h"
#include "backends/mlx/arrays/stream.h"
#include "backends/mlx/device.h"
#include "backends/mlx/memory/weight_cache.h"
#include "ggml-backend-impl.h"

namespace headrace::mlx {
namespace {

Backend& backend(ggml_backend_t b) { return *static_cast<Backend*>(b->context); }

ggml_status compute(ggml_backend_t b, ggml_cgraph* graph) {
    Backend& self = backend(b);
    const std::lock_guard lock(self.mutex);
    const ggml_status status = guarded("computing a graph", [&] {
        const StreamScope scope(self.stream);
        self.runner.run(graph);
    });
    // What was started before a failure still uses ggml's memory.
    if (status != GGML_STATUS_SUCCESS)
        guarded("waiting after a failure", [&] {
            mx::synchronize(self.stream);
            mx::synchronize(self.host);
        });
    return status;
}

constexpr ggml_backend_i kBackendInterface{
    .get_name = [](ggml_backend_t) { return "MLX0"; },
    .free =
        [](ggml_backend_t b) {
            delete &backend(b);
            delete b;
        },
    .graph_compute = compute,
};

ggml_guid_t guid() {
    static ggml_guid id{0x68, 0x72, 0x6d, 0x6c, 0x78, 0x4b, 0x9e, 0x21,
                        0x83, 0x5c, 0xd0, 0x17, 0x6a, 0xf4, 0x02, 0xbe};
    return &id;
}

}  // namespace

Backend::Backend()
    : stream(make_stream(mlx_device())),
      host(mlx_device() == mx::Device::cpu ? stream : make_stream(mx::Device::cpu)),
      runner(stream, host) {}

StreamScope::StreamScope(mx::Stream stream)
    : device_(mx::default_device()), stream_(mx::default_stream(stream.device)) {
    mx::set_default_device(stream.device);
    mx::set_default_stream(stream);
}

StreamScope::~StreamScope() {
    mx::set_default_stream(stream_);
    mx::set_default_device(device_);
}

RunCounts run_counts(ggml_backend* b) { return backend(b).runner.counts(); }

ggml_backend_t make_backend() {
    WeightCache::limit();  // says now rather than in the first long prompt what is wrong with its setting
    Backend* made = nullptr;
    if (guarded("opening the device", [&] { made = new Backend; }) != GGML_STATUS_SUCCESS) return nullptr;
    return new ggml_backend{.guid = guid(), .iface = kBackendInterface, .device = device(), .context = made};
}

}  // namespace headrace::mlx
