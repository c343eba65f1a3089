#include "backends/mlx/memory/write_job.h"

#include "backends/mlx/arrays/tensors.h"
#include "backends/mlx/memory/packed_tensor.h"
#include "backends/mlx/memory/quant_format.h"

namespace headrace::mlx {
namespace {

/// The formats whose groups are ggml's blocks, each with a scale of its own.
const QuantFormat* format_of_groups(const ggml_tensor* t) {
    const QuantFormat* format = quant_format(t->type);
    return format && format->is_affine() && format->header == 0 && is_packed(t) ? format : nullptr;
}

void add_parts(WriteJob& job, const QuantFormat& format, const ggml_tensor* root) {
    const PackedLayout layout = packed_layout(format, ggml_nelements(root));
    const auto in_floats = [](std::size_t bytes) { return static_cast<std::int64_t>(bytes / sizeof(float)); };
    job.scales = in_floats(layout.scales);
    job.biases = format.has_biases() ? in_floats(layout.biases) : -1;
    job.bits = format.bits;
    job.offset = format.offset;
}

}  // namespace

std::optional<PlannedWrite> plan_write(const ggml_tensor* t, const array& values, const array* numbers) {
    const bool in_blocks = ggml_is_quantized(t->type);
    const QuantFormat* const format = format_of_groups(t);
    if (in_blocks && (!format || values.dtype() != mx::float32)) return std::nullopt;
    const ggml_tensor* const root = root_of(t);
    const auto unit = static_cast<std::int64_t>(ggml_type_size(t->type));
    PlannedWrite write{.job = {}, .units = 1, .element_bytes = in_blocks ? 0 : static_cast<int>(unit)};
    WriteJob& job = write.job;
    for (int d = 0; d < 4; ++d) {
        job.extent[d] = values.shape(axis_of(d)) / (d == 0 ? ggml_blck_size(t->type) : 1);
        job.step[d] = static_cast<std::int64_t>(t->nb[d]) / unit;
        write.units *= job.extent[d];
    }
    job.first = (static_cast<const char*>(t->data) - static_cast<const char*>(root->data)) / unit;
    job.rows = t->ne[1];
    if (numbers)
        for (int d = 0; d < 3; ++d) job.numbers[d] = numbers->shape(axis_of(d));
    if (format) add_parts(job, *format, root);
    return write;
}

}  // namespace headrace::mlx
