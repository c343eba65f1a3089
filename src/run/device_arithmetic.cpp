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
#include "lower/lower.h"
#include "run/device_call.h"
#include "run/device_constants.h"
#include "run/device_findings.h"

namespace headrace {
namespace {

constexpr std::int64_t kColumns = 32;
/// What kernels of products are chosen by beside the rows: whether the sums are of whole vectors.
constexpr std::array<std::int64_t, 2> kInner{32, 31};
/// The most error, in proportion to the sum of the absolute terms. Sums of f32 stay below, and terms of 11
/// bits come to ten times that.
constexpr double kMostError = 4e-6;

/// Random matrices; what f16 does not hold is among their elements.
struct Factors {
    std::int64_t rows, inner;
    std::vector<float> a, b;

    Factors(std::int64_t m, std::int64_t k)
        : rows(m), inner(k), a(static_cast<std::size_t>(m * k)), b(static_cast<std::size_t>(k * kColumns)) {
        std::mt19937 random(1);
        std::uniform_real_distribution<float> real(-1, 1);
        for (std::size_t i = 0; i < a.size(); ++i) a[i] = real(random) * (i % 3 == 0 ? 1e5f : 1.0f);
        for (float& v : b) v = real(random);
    }

    bool are_multiplied_exactly(const std::vector<float>& product) const {
        for (std::int64_t i = 0; i < rows; ++i)
            for (std::int64_t j = 0; j < kColumns; ++j) {
                double sum = 0, size = 0;
                for (std::int64_t k = 0; k < inner; ++k) {
                    const double term = static_cast<double>(a[i * inner + k]) * b[k * kColumns + j];
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

/// A form for products of all kinds.
ProductForms only(ProductForm form) {
    ProductForms forms;
    for (std::size_t kind = 0; kind < ProductForms::kMostRows.size(); ++kind) forms.of_kind(kind) = form;
    return forms;
}

/// Whether the form is exact, or nothing where the device does not take it.
std::optional<bool> try_form(ggml_backend_dev_t device, ProductForm form, const Factors& factors) {
    constexpr std::size_t kMostTensors = 32;
    const GgmlContext context(ggml_init(
        {.mem_size = kMostTensors * ggml_tensor_overhead() + ggml_graph_overhead_custom(kMostTensors, false),
         .mem_buffer = nullptr,
         .no_alloc = true}));
    if (!context) return std::nullopt;
    Emit emit(context.get(), only(form));
    ggml_tensor* a = emit.leaf({DType::f32, {factors.rows, factors.inner}});
    ggml_tensor* b = emit.leaf({DType::f32, {factors.inner, kColumns}});
    ggml_tensor* product = emit.mat_mul(a, b);
    if (!takes_all(device, context.get())) return std::nullopt;
    const Backend backend(ggml_backend_dev_init(device, nullptr));
    if (!backend) return std::nullopt;
    const BackendBuffer memory(ggml_backend_alloc_ctx_tensors(context.get(), backend.get()));
    if (!memory) return std::nullopt;
    ggml_backend_tensor_set(a, factors.a.data(), 0, ggml_nbytes(a));
    ggml_backend_tensor_set(b, factors.b.data(), 0, ggml_nbytes(b));
    ggml_cgraph* graph = ggml_new_graph_custom(context.get(), kMostTensors, false);
    ggml_build_forward_expand(graph, product);
    if (ggml_backend_graph_compute(backend.get(), graph) != GGML_STATUS_SUCCESS) return std::nullopt;
    std::vector<float> found(static_cast<std::size_t>(factors.rows * kColumns));
    ggml_backend_tensor_get(product, found.data(), 0, ggml_nbytes(product));
    return factors.are_multiplied_exactly(found);
}

/// What cannot be tried is `untried`: a device that fails here fails again where it is used, and that is told
/// there, as it refuses there what it refuses here.
bool is_exact_in(const Device& device, ProductForm form, std::int64_t rows, bool untried) {
    for (const std::int64_t inner : kInner) {
        std::optional<bool> exact;
        (void)device_call(device.name, [&]() -> Status {
            exact = try_form(device.handle, form, Factors(rows, inner));
            return success();
        });
        if (!exact.value_or(untried)) return false;
    }
    return true;
}

DeviceArithmetic try_products(const Device& device) {
    DeviceArithmetic found;
    bool rounds = false;
    for (std::size_t kind = 0; kind < ProductForms::kMostRows.size(); ++kind) {
        if (is_exact_in(device, ProductForm::mat_mul, ProductForms::kMostRows[kind], true)) continue;
        if (!rounds) {
            const std::int64_t rows = ProductForms::kMostRows.back();
            rounds = true;
            found.has_exact_convolutions = is_exact_in(device, ProductForm::convolution, rows, false);
            found.has_exact_outer_products = is_exact_in(device, ProductForm::outer_products, rows, false);
        }
        found.products.of_kind(kind) =
            found.has_exact_convolutions ? ProductForm::convolution : ProductForm::outer_products;
    }
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
