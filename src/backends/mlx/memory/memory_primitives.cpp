#include "backends/mlx/memory/memory_primitives.h"

#include <mlx/backend/cpu/encoder.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <stdexcept>
#include <string>

#include "backends/mlx/arrays/tensors.h"
#include "backends/mlx/gpu/gpu.h"
#include "backends/mlx/memory/packed_tensor.h"

namespace headrace::mlx {
namespace {

/// Copies of a tensor and its root: the graph that they are from need not outlive a recorded expression.
struct Placed {
    ggml_tensor tensor, root;

    /// The copy again as a view of the root's copy.
    ggml_tensor* linked() {
        if (tensor.view_src) tensor.view_src = &root;
        return &tensor;
    }
};

/// As ggml's CPU backend rounds: halves to even, which its reference function does not.
void quantize_q8_0(const float* values, std::uint8_t* blocks, std::int64_t count) {
    for (std::int64_t begin = 0; begin < count; begin += 32, values += 32, blocks += 34) {
        float largest = 0;
        for (int i = 0; i < 32; ++i) largest = std::max(largest, std::fabs(values[i]));
        const ggml_fp16_t scale = ggml_fp32_to_fp16(largest / 127);
        const float inverse = largest != 0 ? 127 / largest : 0;
        std::memcpy(blocks, &scale, sizeof scale);
        for (int i = 0; i < 32; ++i)
            blocks[2 + i] =
                static_cast<std::uint8_t>(static_cast<std::int8_t>(std::rint(values[i] * inverse)));
    }
}

/// Puts rows of values into a tensor's memory, converting to its type.
class RowWriter {
public:
    /// `as_blocks`: the rows hold blocks of the tensor's type already.
    RowWriter(const ggml_tensor* destination, const ggml_tensor* root, bool as_blocks)
        : columns_(destination->ne[0]),
          stride_(destination->nb[0]),
          size_(ggml_type_size(destination->type)),
          type_(destination->type),
          root_(root),
          packed_(is_packed(root)),
          as_blocks_(as_blocks) {
        if (!is_quantized(type_)) return;
        scratch_.resize(ggml_row_size(type_, columns_));
        ggml_quantize_init(type_);  // some types' reference functions abort without their tables
    }

    /// Bytes of one row as it is given.
    std::size_t value_bytes() const {
        if (scratch_.empty()) return static_cast<std::size_t>(columns_) * size_;
        return as_blocks_ ? scratch_.size() : static_cast<std::size_t>(columns_) * sizeof(float);
    }

    void write(char* row, const char* values) {
        if (!scratch_.empty())
            write_blocks(row, as_blocks_ ? values : quantized(reinterpret_cast<const float*>(values)));
        else if (stride_ == size_)
            std::memcpy(row, values, static_cast<std::size_t>(columns_) * size_);
        else
            for (std::int64_t i = 0; i < columns_; ++i)
                std::memcpy(row + i * stride_, values + i * size_, size_);
    }

private:
    const char* quantized(const float* values) {
        if (type_ == GGML_TYPE_Q8_0)
            quantize_q8_0(values, scratch_.data(), columns_);
        else
            ggml_get_type_traits(type_)->from_float_ref(values, scratch_.data(), columns_);
        return reinterpret_cast<const char*>(scratch_.data());
    }

    void write_blocks(char* row, const char* blocks) {
        if (packed_)
            PackedTensor(root_).write(blocks, row - static_cast<const char*>(root_->data), scratch_.size());
        else
            std::memcpy(row, blocks, scratch_.size());
    }

    std::int64_t columns_;
    std::size_t stride_, size_;
    ggml_type type_;
    const ggml_tensor* root_;
    bool packed_, as_blocks_;
    std::vector<std::uint8_t> scratch_;
};

template <class Body>
void each_row(const Shape& shape, Body&& body) {
    for (int i3 = 0; i3 < shape[0]; ++i3)
        for (int i2 = 0; i2 < shape[1]; ++i2)
            for (int i1 = 0; i1 < shape[2]; ++i1) body(i1, i2, i3);
}

void write_all(Placed placed, const char* values, bool as_blocks) {
    ggml_tensor* t = placed.linked();
    RowWriter writer(t, root_of(t), as_blocks);
    each_row(shape_of(t), [&](std::int64_t i1, std::int64_t i2, std::int64_t i3) {
        writer.write(static_cast<char*>(t->data) + i1 * t->nb[1] + i2 * t->nb[2] + i3 * t->nb[3], values);
        values += writer.value_bytes();
    });
}

/// `numbers` may have fewer rows along the outer axes than the values; they repeat then.
void write_rows(Placed placed, const char* values, const Shape& shape, const std::int64_t* numbers,
                const Shape& numbers_shape) {
    ggml_tensor* t = placed.linked();
    RowWriter writer(t, root_of(t), false);
    each_row(shape, [&](std::int64_t i1, std::int64_t i2, std::int64_t i3) {
        const std::int64_t at =
            ((i3 % numbers_shape[1]) * numbers_shape[2] + i2 % numbers_shape[2]) * numbers_shape[3] + i1;
        if (numbers[at] < 0 || numbers[at] >= t->ne[1])
            throw std::out_of_range("SET_ROWS: row " + std::to_string(numbers[at]) + " of a tensor with " +
                                    std::to_string(t->ne[1]) + " rows");
        writer.write(static_cast<char*>(t->data) + numbers[at] * t->nb[1] + i2 * t->nb[2] + i3 * t->nb[3],
                     values);
        values += writer.value_bytes();
    });
}

void share_memory(const array& before, array& after) {
    after.copy_shared_buffer(before, before.strides(), before.flags(), before.data_size());
}

[[noreturn]] void not_on_gpu(const char* name) {
    throw std::runtime_error(std::string(name) + " was put on a GPU stream; it belongs to the CPU's");
}

}  // namespace

InPlaceWrite::InPlaceWrite(mx::Stream stream, const ggml_tensor* destination, bool by_rows,
                           std::optional<PlannedWrite> planned)
    : Primitive(stream),
      destination_(*destination),
      root_(*root_of(destination)),
      by_rows_(by_rows),
      planned_(std::move(planned)) {}

void InPlaceWrite::eval_cpu(const std::vector<array>& inputs, std::vector<array>& outputs) {
    share_memory(inputs[0], outputs[0]);
    auto& encoder = mx::cpu::get_command_encoder(stream());
    const Placed placed{destination_, root_};
    const char* values = inputs[1].data<char>();
    if (!by_rows_) {
        const bool as_blocks = inputs[1].dtype() == mx::uint8;
        encoder.dispatch([placed, values, as_blocks] { write_all(placed, values, as_blocks); });
        return;
    }
    encoder.dispatch(
        [placed, values, shape = inputs[1].shape(), numbers = inputs[2].data<std::int64_t>(),
         numbers_shape = inputs[2].shape()] { write_rows(placed, values, shape, numbers, numbers_shape); });
}

void InPlaceWrite::eval_gpu(const std::vector<array>& inputs, std::vector<array>& outputs) {
    if (!planned_) not_on_gpu(name());
    share_memory(inputs[0], outputs[0]);
    gpu::launch_write(stream(), *planned_, outputs[0], {inputs.begin() + 1, inputs.end()});
}

void write_tensor(const ggml_tensor* t, const char* values) { write_all({*t, *root_of(t)}, values, false); }

ReadBlocks::ReadBlocks(mx::Stream stream, const ggml_tensor* t)
    : Primitive(stream), source_(*t), root_(*root_of(t)) {}

void ReadBlocks::eval_cpu(const std::vector<array>&, std::vector<array>& outputs) {
    outputs[0].set_data(mx::allocator::malloc(outputs[0].nbytes()));
    auto& encoder = mx::cpu::get_command_encoder(stream());
    encoder.dispatch([placed = Placed{source_, root_}, out = outputs[0].data<char>()]() mutable {
        const ggml_tensor* t = placed.linked();
        const ggml_tensor* root = root_of(t);
        const std::size_t size = ggml_row_size(t->type, t->ne[0]);
        char* row = out;
        each_row(shape_of(t), [&](std::int64_t i1, std::int64_t i2, std::int64_t i3) {
            const char* from =
                static_cast<const char*>(t->data) + i1 * t->nb[1] + i2 * t->nb[2] + i3 * t->nb[3];
            if (is_packed(root))
                PackedTensor(root).read(row, from - static_cast<const char*>(root->data), size);
            else
                std::memcpy(row, from, size);
            row += size;
        });
    });
}

void ReadBlocks::eval_gpu(const std::vector<array>&, std::vector<array>&) { not_on_gpu(name()); }

Dequantize::Dequantize(mx::Stream stream, const ggml_tensor* t)
    : Primitive(stream), source_(*t), root_(*root_of(t)) {}

void Dequantize::eval_cpu(const std::vector<array>&, std::vector<array>& outputs) {
    outputs[0].set_data(mx::allocator::malloc(outputs[0].nbytes()));
    auto& encoder = mx::cpu::get_command_encoder(stream());
    encoder.dispatch([placed = Placed{source_, root_}, out = outputs[0].data<float>()]() mutable {
        const ggml_tensor* t = placed.linked();
        const RowReader reader(t);
        float* row = out;
        each_row(shape_of(t), [&](std::int64_t i1, std::int64_t i2, std::int64_t i3) {
            reader.read(static_cast<const char*>(t->data) + i1 * t->nb[1] + i2 * t->nb[2] + i3 * t->nb[3],
                        row);
            row += t->ne[0];
        });
    });
}

void Dequantize::eval_gpu(const std::vector<array>&, std::vector<array>&) { not_on_gpu(name()); }

}  // namespace headrace::mlx
