#pragma once
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "lower/lower.h"
#include "run/device_constants.h"
#include "run/devices.h"
#include "run/tensor_memory.h"

struct ggml_backend;
struct ggml_tensor;

namespace headrace {

/// An input or output of an instance that lies in its device's memory: a caller's tensor's there, or, for
/// callers that have none there, the instance's own.
class DeviceOperand {
public:
    /// views: of the tensor, which go where it goes.
    DeviceOperand(ggml_tensor* tensor, std::vector<ggml_tensor*> views, std::string what)
        : tensor_(tensor), views_(std::move(views)), what_(std::move(what)) {}

    ggml_tensor* tensor() const { return tensor_; }
    /// Before the first run: so that ggml's allocator gives it no memory. The buffer is an empty one of the
    /// device.
    void hold_place(ggml_backend_buffer* placeholder);
    Status use(TensorMemory& memory, const Device& device) {
        return memory.place_on(device, tensor_, views_);
    }
    /// Errors: out_of_memory.
    Status use_own(const Device& device);

private:
    ggml_tensor* tensor_;
    std::vector<ggml_tensor*> views_;
    std::string what_;  ///< for errors
    BackendBuffer own_;
};

/// In the graph's order; null: what does not lie there.
struct DeviceOperands {
    std::vector<std::unique_ptr<DeviceOperand>> inputs, outputs;
};

/// Inputs that are read on the device alone, and outputs that are computed there into memory of their own:
/// given the backend of every node of the ggml graph, of which views count for nothing.
DeviceOperands choose_device_operands(const LoweredGraph& lowered, const Graph& graph,
                                      std::span<ggml_backend* const> backends, ggml_backend* device);

/// What ggml's scheduler copies in a run between backends. It has given every node that reads something of
/// another backend's a copy of its own as source.
struct SplitCopies {
    std::int64_t count = 0;
    std::size_t bytes = 0;
};
SplitCopies count_split_copies(const LoweredGraph& lowered);

}  // namespace headrace
