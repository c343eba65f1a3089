#include "engine/precision.h"

#include <mutex>
#include <utility>

#include "base/log.h"
#include "kernels/gemm/bf16_gemm_f32.h"
#include "run/device_arithmetic.h"

namespace headrace {
namespace {

void say_that_nothing_changes(const Device& device, const CompileOptions& options) {
    static std::once_flag told;
    std::call_once(told, [&] {
        const char* why = !device.is_cpu           ? "multiplies f32 as exactly as it can anyway"
                          : options.packed_kernels ? "has no products of bf16"
                                                   : "multiplies bf16 in packed kernels only, which are off";
        HR_LOG(warn, {}, "precision fast changes nothing: {} {}", device.is_cpu ? "this CPU" : device.name,
               why);
    });
}

}  // namespace

DeviceArithmetic arithmetic_for(const Device& device, Precision precision) {
    DeviceArithmetic exact = arithmetic_of(device);
    return precision == Precision::fast ? own_arithmetic(std::move(exact)) : exact;
}

bool is_faster(const Device& device, const CompileOptions& options) {
    if (options.precision == Precision::exact) return false;
    const bool is = device.is_cpu
                        ? options.packed_kernels && kernels::has_bf16_gemm()
                        : arithmetic_for(device, Precision::fast) != arithmetic_for(device, Precision::exact);
    if (!is) say_that_nothing_changes(device, options);
    return is;
}

}  // namespace headrace
