#include "backends/mlx/arrays/checked_numbers.h"

#include <mlx/backend/cpu/encoder.h>
#include <mlx/primitives.h>

#include <memory>
#include <stdexcept>
#include <string>

#include "backends/mlx/arrays/layout.h"

namespace headrace::mlx {
namespace {

class CheckedNumbers : public mx::Primitive {
public:
    CheckedNumbers(mx::Stream stream, std::int64_t count, ggml_op op)
        : Primitive(stream), count_(count), op_(op) {}

    void eval_cpu(const std::vector<array>& inputs, std::vector<array>& outputs) override {
        outputs[0].set_data(mx::allocator::malloc(outputs[0].nbytes()));
        auto& encoder = mx::cpu::get_command_encoder(stream());
        encoder.dispatch([numbers = inputs[0].data<std::int32_t>(), size = inputs[0].size(), count = count_,
                          op = op_, out = outputs[0].data<std::int32_t>()] {
            const std::int32_t* wrong = nullptr;
            for (std::size_t i = 0; i < size; ++i) {
                const bool exists = numbers[i] >= 0 && numbers[i] < count;
                out[i] = exists ? numbers[i] : 0;  // what follows runs although this fails
                if (!exists && !wrong) wrong = numbers + i;
            }
            if (wrong)
                throw std::out_of_range(std::string(ggml_op_name(op)) + ": row " + std::to_string(*wrong) +
                                        " of " + std::to_string(count));
        });
    }
    void eval_gpu(const std::vector<array>&, std::vector<array>&) override {
        throw std::runtime_error("the check of row numbers was put on a GPU stream; it belongs to the CPU's");
    }
    const char* name() const override { return "CheckedNumbers"; }

private:
    std::int64_t count_;
    ggml_op op_;
};

}  // namespace

array checked_numbers(mx::Stream stream, const array& numbers, std::int64_t count, ggml_op op) {
    if (mx::default_device() != mx::Device::cpu) return numbers;
    return array(numbers.shape(), mx::int32, std::make_shared<CheckedNumbers>(stream, count, op),
                 {in_row_order(numbers)});
}

}  // namespace headrace::mlx
