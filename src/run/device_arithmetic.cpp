#include "run/device_arithmetic.h"

#include <array>
#include <cmath>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <vector>

#include "emit/emit.h"
#include "ggml-backend.h"
#include "ggml.h"
#include "run/device_call.h"
#include "run/device_constants.h"
#include "run/device_findings.h"

namespace headrace {
namespace {

constexpr std::int64_t kRows = 32, kColumns = 32, kInner = 32;
/// Of the sum of the absolute terms. Sums of f32 stay below, and terms of 11 bits come to ten times that.
constexpr double kMostError = 4e-6;

struct ProbeContextFree {
    void operator()(ggml_context* context) const { ggml_free(context); }
};
struct ProbeBackendFree {
    void operator()(ggml_backend* backend) const { ggml_backend_free(backend); }
};

/// Random matrices; what f16 does not hold is among their elements.
struct Factors {
    std::vector<float> a, b;

    Factors() : a(kRows * kInner), b(kInner * kColumns) {
        std::mt19937 random(1);
        std::uniform_real_distribution<float> real(-1, 1);
        for (std::size_t i = 0; i < a.size(); ++i) a[i] = real(random) * (i % 3 == 0 ? 1e5f : 1.0f);
        for (float& v : b) v = real(random);
    }

    bool are_multiplied_exactly(const std::vector<float>& product) const {
        for (std::int64_t i = 0; i < kRows; ++i)
            for (std::int64_t j = 0; j < kColumns; ++j) {
                double sum = 0, size = 0;
                for (std::int64_t k = 0; k < kInner; ++k) {
                    const double term = static_cast<double>(a[i * kInner + k]) * b[k * kColumns + j];
                    sum += term;
                    size += std::abs(term);
                }
                if (!(std::abs(product[i * kColumns + j] - sum) <= kMostError * size)) return false;
            }
        return true;
    }
};

bool takes_all(ggml_backend_dev_t device, ggml_context* context) {
    for (ggml_tensor* t = ggml_get_first_tensor(context); t; t = ggml_get_next_tensor(context, t))
        if (!ggml_backend_dev_supports_op(device, t)) return false;
    return true;
}

/// Nothing where the device does not take it.
std::optional<bool> try_form(ggml_backend_dev_t device, ProductForm form, const Factors& factors) {
    constexpr std::size_t kMostTensors = 32;
    const std::unique_ptr<ggml_context, ProbeContextFree> context(ggml_init(
        {.mem_size = kMostTensors * ggml_tensor_overhead() + ggml_graph_overhead_custom(kMostTensors, false),
         .mem_buffer = nullptr,
         .no_alloc = true}));
    if (!context) return std::nullopt;
    Emit emit(context.get(), form);
    ggml_tensor* a = emit.leaf({DType::f32, {kRows, kInner}});
    ggml_tensor* b = emit.leaf({DType::f32, {kInner, kColumns}});
    ggml_tensor* product = emit.mat_mul(a, b);
    if (!takes_all(device, context.get())) return std::nullopt;
    const std::unique_ptr<ggml_backend, ProbeBackendFree> backend(ggml_backend_dev_init(device, nullptr));
    if (!backend) return std::nullopt;
    const BackendBuffer memory(ggml_backend_alloc_ctx_tensors(context.get(), backend.get()));
    if (!memory) return std::nullopt;
    ggml_backend_tensor_set(a, factors.a.data(), 0, ggml_nbytes(a));
    ggml_backend_tensor_set(b, factors.b.data(), 0, ggml_nbytes(b));
    ggml_cgraph* graph = ggml_new_graph_custom(context.get(), kMostTensors, false);
    ggml_build_forward_expand(graph, product);
    if (ggml_backend_graph_compute(backend.get(), graph) != GGML_STATUS_SUCCESS) return std::nullopt;
    std::vector<float> found(kRows * kColumns);
    ggml_backend_tensor_get(product, found.data(), 0, ggml_nbytes(product));
    return factors.are_multiplied_exactly(found);
}

DeviceArithmetic try_products(const Device& device) {
    const Factors factors;
    // A device that fails here fails again where it is used, and that is told there.
    const auto is_exact_in = [&](ProductForm form) {
        std::optional<bool> exact;
        (void)device_call(device.name, [&]() -> Status {
            exact = try_form(device.handle, form, factors);
            return success();
        });
        return exact;
    };
    // What cannot be tried is refused by the device itself, later.
    if (is_exact_in(ProductForm::mat_mul).value_or(true)) return {};
    DeviceArithmetic found{.products = ProductForm::convolution};
    if (is_exact_in(ProductForm::convolution).value_or(false)) return found;
    found.has_exact_convolutions = false;
    found.products = ProductForm::outer_products;
    found.has_exact_products = is_exact_in(ProductForm::outer_products).value_or(false);
    return found;
}

struct Known {
    std::mutex mutex;
    std::map<ggml_backend_dev_t, DeviceArithmetic> devices;

    /// With the mutex held.
    DeviceArithmetic& of(const Device& device) {
        const auto [it, is_new] = devices.try_emplace(device.handle);
        if (is_new) {
            it->second = try_products(device);
            it->second.distrusted = read_findings(device.handle);
        }
        return it->second;
    }
};

Known& known() {
    static Known devices;
    return devices;
}

bool is_taken_to_be_exact(const Device& device) { return device.is_cpu || device.host; }

}  // namespace

DeviceArithmetic arithmetic_of(const Device& device) {
    if (is_taken_to_be_exact(device)) return {};
    const std::lock_guard lock(known().mutex);
    return known().of(device);
}

DeviceArithmetic own_arithmetic(DeviceArithmetic exact) {
    return {.distrusted = std::move(exact.distrusted)};
}

Status distrust(const Device& device, std::vector<std::string> ops) {
    if (is_taken_to_be_exact(device)) return success();
    const std::lock_guard lock(known().mutex);
    HR_TRY(write_findings(device.handle, ops));
    known().of(device).distrusted = std::move(ops);
    return success();
}

}  // namespace headrace
