#include "backends/mlx/host/gemv.h"

#include <mlx/backend/cpu/encoder.h>
#include <mlx/primitives.h>

#include <algorithm>
#include <memory>
#include <stdexcept>
#include <string>

#include "backends/mlx/arrays/layout.h"
#include "backends/mlx/host/threads.h"
#include "kernels/gemm/gemv_f32.h"

namespace headrace::mlx {
namespace {

using kernels::GemvArgs;

/// Weights from which on calling another thread takes less time than it saves.
constexpr std::size_t kWorthSharing = 1 << 18;

/// The kernels' tiles have so many rows of the matrix.
constexpr std::size_t kRowsOfTile = 4;

/// The matrices' memory, of which parts outlive the loop.
class Matrices {
public:
    Matrices(const QuantFormat* format, const array* parts)
        : format_(format), dtype_(parts[0].dtype()), shape_(parts[0].shape()), values_(parts[0]) {
        if (!format_) return;
        scales_ = Memory(parts[1]);
        if (format_->has_biases()) biases_ = Memory(parts[2]);
    }

    int outer() const { return shape_[0]; }
    int inner() const { return shape_[1]; }
    int rows() const { return shape_[2]; }

    void multiply(const GemvArgs& g, int outer, int inner) const {
        if (g.n * g.k < kWorthSharing) return multiply_rows(g, outer, inner, 0);
        in_parts(g.n, kRowsOfTile, [&](std::size_t begin, std::size_t end) {
            GemvArgs part = g;
            part.y += begin;
            part.n = end - begin;
            multiply_rows(part, outer, inner, static_cast<std::ptrdiff_t>(begin));
        });
    }

private:
    struct Memory {
        const char* data = nullptr;
        Strides strides;
        std::size_t size = 0;  ///< of an element

        Memory() = default;
        explicit Memory(const array& x) : data(x.data<char>()), strides(x.strides()), size(x.itemsize()) {}
        const char* matrix(int outer, int inner, std::ptrdiff_t row) const {
            const std::int64_t at = outer * strides[0] + inner * strides[1] + row * strides[2];
            return data + at * static_cast<std::int64_t>(size);
        }
    };

    /// The matrix's rows from `first` on.
    void multiply_rows(const GemvArgs& g, int outer, int inner, std::ptrdiff_t first) const {
        const char* values = values_.matrix(outer, inner, first);
        const std::ptrdiff_t stride = values_.strides[2];
        if (format_)
            multiply_codes(g, outer, inner, first);
        else if (dtype_ == mx::float32)
            kernels::gemv_f32(g, reinterpret_cast<const float*>(values), stride);
        else
            kernels::gemv_half(g, reinterpret_cast<const std::uint16_t*>(values), stride,
                               dtype_ == mx::bfloat16);
    }

    void multiply_codes(const GemvArgs& g, int outer, int inner, std::ptrdiff_t first) const {
        const auto floats = [&](const Memory& part) {
            return reinterpret_cast<const float*>(part.data ? part.matrix(outer, inner, first) : nullptr);
        };
        kernels::gemv_affine(
            g, {.codes = reinterpret_cast<const std::uint8_t*>(values_.matrix(outer, inner, first)),
                .scales = floats(scales_),
                .biases = floats(biases_),
                .offset = static_cast<float>(format_->offset),
                .bits = format_->bits,
                .code_stride = values_.strides[2] * static_cast<std::int64_t>(sizeof(std::uint32_t)),
                .scale_stride = scales_.strides[2]});
    }

    const QuantFormat* format_;
    mx::Dtype dtype_;
    Shape shape_;
    Memory values_, scales_, biases_;
};

struct Rows {
    const float* data;
    Shape shape;
    std::size_t columns() const { return static_cast<std::size_t>(shape.back()); }
};

void multiply_all(const Rows& x, const Matrices& matrices, float* y) {
    const int shared = x.shape[1] / matrices.inner(), repeats = x.shape[0] / matrices.outer();
    const auto rows = static_cast<std::size_t>(shared) * x.shape[2], columns = x.columns(),
               results = static_cast<std::size_t>(matrices.rows());
    const float* from = x.data;
    for (int outer = 0; outer < x.shape[0]; ++outer)
        for (int inner = 0; inner < matrices.inner(); ++inner) {
            matrices.multiply({from, y, rows, results, columns, matrices.rows()}, outer / repeats, inner);
            from += rows * columns;
            y += rows * results;
        }
}

/// Rows that chose the same matrix are multiplied together, so that it is read once for some of them.
void multiply_chosen(const Rows& x, const std::int32_t* numbers, int used, const Matrices& matrices,
                     float* y) {
    const std::size_t pairs = static_cast<std::size_t>(x.shape[0]) * used, columns = x.columns(),
                      results = static_cast<std::size_t>(matrices.rows());
    std::vector<std::vector<std::size_t>> chosen_by(matrices.inner());
    for (std::size_t pair = 0; pair < pairs; ++pair) {
        if (numbers[pair] < 0 || numbers[pair] >= matrices.inner())
            throw std::out_of_range("MUL_MAT_ID: matrix " + std::to_string(numbers[pair]) + " of " +
                                    std::to_string(matrices.inner()));
        chosen_by[numbers[pair]].push_back(pair);
    }
    std::vector<float> in, out;
    for (int inner = 0; inner < matrices.inner(); ++inner) {
        const std::vector<std::size_t>& sharing = chosen_by[inner];
        if (sharing.empty()) continue;
        in.resize(sharing.size() * columns);
        out.resize(sharing.size() * results);
        for (std::size_t i = 0; i < sharing.size(); ++i) {
            const std::size_t row = x.shape[1] == 1 ? sharing[i] / used : sharing[i];
            std::copy_n(x.data + row * columns, columns, in.data() + i * columns);
        }
        matrices.multiply({in.data(), out.data(), sharing.size(), results, columns, matrices.rows()}, 0,
                          inner);
        for (std::size_t i = 0; i < sharing.size(); ++i)
            std::copy_n(out.data() + i * results, results, y + sharing[i] * results);
    }
}

/// Inputs: x, then numbers where matrices are chosen, then the matrices' parts.
class Gemv : public mx::Primitive {
public:
    Gemv(mx::Stream stream, const QuantFormat* format, bool by_numbers)
        : Primitive(stream), format_(format), by_numbers_(by_numbers) {}

    void eval_cpu(const std::vector<array>& inputs, std::vector<array>& outputs) override {
        outputs[0].set_data(mx::allocator::malloc(outputs[0].nbytes()));
        const Rows x{inputs[0].data<float>(), inputs[0].shape()};
        const Matrices matrices(format_, &inputs[by_numbers_ ? 2 : 1]);
        float* const y = outputs[0].data<float>();
        auto& encoder = mx::cpu::get_command_encoder(stream());
        if (by_numbers_)
            encoder.dispatch([x, matrices, y, numbers = inputs[1].data<std::int32_t>(),
                              used = inputs[1].shape(1)] { multiply_chosen(x, numbers, used, matrices, y); });
        else
            encoder.dispatch([x, matrices, y] { multiply_all(x, matrices, y); });
    }
    void eval_gpu(const std::vector<array>&, std::vector<array>&) override {
        throw std::runtime_error("a product of few rows was put on a GPU stream; it belongs to the CPU's");
    }
    const char* name() const override { return "Gemv"; }

private:
    const QuantFormat* format_;
    bool by_numbers_;
};

array product(mx::Stream stream, std::vector<array> inputs, const StoredMatrices& matrices, Shape shape) {
    const bool by_numbers = inputs.size() > 1;
    inputs.insert(inputs.end(), matrices.parts.begin(), matrices.parts.end());
    return array(std::move(shape), mx::float32, std::make_shared<Gemv>(stream, matrices.format, by_numbers),
                 std::move(inputs));
}

}  // namespace

array gemv(mx::Stream stream, const array& x, const StoredMatrices& matrices, Shape shape) {
    return product(stream, {in_row_order(x)}, matrices, std::move(shape));
}

array chosen_product(mx::Stream stream, const array& x, const array& numbers,
                     const StoredMatrices& matrices) {
    return product(stream, {in_row_order(x), in_row_order(numbers)}, matrices,
                   {x.shape(0), numbers.shape(1), matrices.parts[0].shape(2)});
}

}  // namespace headrace::mlx
