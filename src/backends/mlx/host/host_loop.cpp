#include "backends/mlx/host/host_loop.h"

#include <mlx/backend/cpu/encoder.h>
#include <mlx/primitives.h>

#include <memory>
#include <stdexcept>

#include "backends/mlx/arrays/layout.h"

namespace headrace::mlx {
namespace {

class HostLoop : public mx::Primitive {
public:
    HostLoop(mx::Stream stream, HostFunction function, double parameter)
        : Primitive(stream), function_(function), parameter_(parameter) {}

    void eval_cpu(const std::vector<array>& inputs, std::vector<array>& outputs) override {
        outputs[0].set_data(mx::allocator::malloc(outputs[0].nbytes()));
        std::vector<HostValues> values;
        for (const array& input : inputs) values.push_back({input.data<float>(), input.shape()});
        auto& encoder = mx::cpu::get_command_encoder(stream());
        encoder.dispatch([function = function_, parameter = parameter_, values = std::move(values),
                          out = outputs[0].data<float>()] { function(values, parameter, out); });
    }
    void eval_gpu(const std::vector<array>&, std::vector<array>&) override {
        throw std::runtime_error("a loop was put on a GPU stream; it belongs to the CPU's");
    }
    const char* name() const override { return "HostLoop"; }

private:
    HostFunction function_;
    double parameter_;
};

}  // namespace

array host_loop(mx::Stream stream, HostFunction function, double parameter, Shape shape,
                const std::vector<array>& inputs) {
    std::vector<array> in_rows;
    for (const array& input : inputs)
        in_rows.push_back(in_row_order(input.dtype() == mx::int32 ? input : mx::astype(input, mx::float32)));
    return array(std::move(shape), mx::float32, std::make_shared<HostLoop>(stream, function, parameter),
                 std::move(in_rows));
}

}  // namespace headrace::mlx
