#include "backends/mlx/host/windows.h"
#include "backends/mlx/ops/families.h"

namespace headrace::mlx {
namespace {

int extent(const ggml_tensor* t, int dimension) { return static_cast<int>(t->ne[dimension]); }

bool takes_floats(const ggml_tensor* t) {
    return is_float(t->src[0]->type) && is_float(t->src[1]->type) && is_float(t->type);
}

// MLX convolves images whose channels come last; ggml's come before height and width.
array channels_last(const array& x) {
    return x.ndim() == 5 ? mx::transpose(x, {0, 2, 3, 4, 1}) : mx::transpose(x, {0, 2, 3, 1});
}
array channels_first(const array& x) {
    return x.ndim() == 5 ? mx::transpose(x, {0, 4, 1, 2, 3}) : mx::transpose(x, {0, 3, 1, 2});
}

/// A kernel of 16-bit floats makes ggml round the image to them, too.
array image_like(Builder& b, const ggml_tensor* image, const ggml_tensor* kernel) {
    const array x = b.f32(image);
    return kernel->type == GGML_TYPE_F32
               ? x
               : mx::astype(mx::astype(x, require_dtype(kernel->type)), mx::float32);
}

void translate_conv_2d(Builder& b, const ggml_tensor* t) {
    const ggml_tensor *kernel = t->src[0], *image = t->src[1];
    b.define(t, channels_first(mx::conv_general(
                    channels_last(image_like(b, image, kernel)), channels_last(b.f32(kernel)),
                    {int_param(t, 1), int_param(t, 0)}, {int_param(t, 3), int_param(t, 2)},
                    {int_param(t, 3), int_param(t, 2)}, {int_param(t, 5), int_param(t, 4)}, {1, 1}, 1)));
}

/// One filter for each channel: MLX's grouped convolution on the CPU is slower than a sum over the windows.
void translate_conv_2d_depthwise(Builder& b, const ggml_tensor* t) {
    const ggml_tensor *kernel = t->src[0], *image = t->src[1];
    const Window rows{extent(kernel, 1), int_param(t, 1), int_param(t, 3), int_param(t, 5), extent(t, 1)};
    const Window columns{extent(kernel, 0), int_param(t, 0), int_param(t, 2), int_param(t, 4), extent(t, 0)};
    const array windows = sliding_windows(b.f32(image), 2, {rows, columns}, 0);
    const array filter = mx::reshape(b.f32(kernel), {1, extent(image, 2), 1, 1, rows.size, columns.size});
    b.define(t, mx::sum(windows * filter, std::vector<int>{4, 5}, false));
}

struct Volume {
    int channels, batches;
    std::vector<Window> windows;  ///< depth, height, width
};
Volume volume_of(const ggml_tensor* t, int channels_at) {
    const ggml_tensor *kernel = t->src[0], *image = t->src[1];
    Volume volume;
    volume.channels = int_param(t, channels_at);
    volume.batches = extent(image, 3) / volume.channels;
    for (const int d : {2, 1, 0})
        volume.windows.push_back(
            {extent(kernel, d), int_param(t, d), int_param(t, 3 + d), int_param(t, 6 + d), extent(t, d)});
    return volume;
}
/// Batches and channels share ggml's last dimension.
array image_of(const array& x, const Volume& volume) {
    return mx::reshape(x, {volume.batches, volume.channels, x.shape(1), x.shape(2), x.shape(3)});
}

void translate_conv_3d(Builder& b, const ggml_tensor* t) {
    const ggml_tensor *kernel = t->src[0], *image = t->src[1];
    const Volume volume = volume_of(t, 9);
    const array x = image_of(image_like(b, image, kernel), volume);
    const int outputs = extent(kernel, 3) / volume.channels;
    const array filters = mx::reshape(
        b.f32(kernel), {outputs, volume.channels, extent(kernel, 2), extent(kernel, 1), extent(kernel, 0)});
    std::vector<int> strides, padding, dilation;
    for (const Window& w : volume.windows) {
        strides.push_back(w.stride);
        padding.push_back(w.padding);
        dilation.push_back(w.dilation);
    }
    b.define(t, channels_first(mx::conv_general(channels_last(x), channels_last(filters), strides, padding,
                                                padding, dilation, {1, 1, 1}, 1)));
}

void translate_conv_transpose_1d(Builder& b, const ggml_tensor* t) {
    const ggml_tensor *kernel = t->src[0], *signal = t->src[1];
    // Kernel: inputs, outputs, taps; MLX wants outputs, taps, inputs and a signal of length x channels.
    const array filters = mx::transpose(
        mx::reshape(b.f32(kernel), {extent(kernel, 2), extent(kernel, 1), extent(kernel, 0)}), {1, 2, 0});
    const array x = mx::swapaxes(
        mx::reshape(b.f32(signal), {extent(signal, 2), extent(signal, 1), extent(signal, 0)}), 1, 2);
    b.define(t, mx::swapaxes(mx::conv_transpose1d(x, filters, int_param(t, 0)), 1, 2));
}
bool supports_conv_transpose_1d(const ggml_tensor* t) { return takes_floats(t) && t->src[1]->ne[2] == 1; }

void translate_conv_transpose_2d(Builder& b, const ggml_tensor* t) {
    const ggml_tensor *kernel = t->src[0], *image = t->src[1];
    const array filters = mx::transpose(b.f32(kernel), {1, 2, 3, 0});
    const int stride = int_param(t, 0);
    b.define(t, channels_first(mx::conv_transpose2d(channels_last(image_like(b, image, kernel)), filters,
                                                    {stride, stride})));
}

bool supports_im2col(const ggml_tensor* t) { return is_float(t->src[1]->type) && is_float(t->type); }
void translate_im2col(Builder& b, const ggml_tensor* t) {
    const ggml_tensor *kernel = t->src[0], *image = t->src[1];
    const bool flat = int_param(t, 6) != 1;
    // A signal is an image of one row.
    const array x = flat
                        ? mx::reshape(b.f32(image), {extent(image, 2), extent(image, 1), 1, extent(image, 0)})
                        : b.f32(image);
    const Window columns{extent(kernel, 0), int_param(t, 0), int_param(t, 2), int_param(t, 4), extent(t, 1)};
    const Window rows =
        flat ? Window{1, 1, 0, 1, 1}
             : Window{extent(kernel, 1), int_param(t, 1), int_param(t, 3), int_param(t, 5), extent(t, 2)};
    b.define(t, mx::transpose(sliding_windows(x, 2, {rows, columns}, 0), {0, 2, 3, 1, 4, 5}));
}
void translate_im2col_3d(Builder& b, const ggml_tensor* t) {
    const ggml_tensor *kernel = t->src[0], *image = t->src[1];
    Volume volume;
    volume.channels = int_param(t, 9);
    volume.batches = extent(image, 3) / volume.channels;
    const int positions[3] = {extent(t, 1), extent(t, 2), extent(t, 3) / volume.batches};
    for (const int d : {2, 1, 0})
        volume.windows.push_back(
            {extent(kernel, d), int_param(t, d), int_param(t, 3 + d), int_param(t, 6 + d), positions[d]});
    const array windows = sliding_windows(image_of(b.f32(image), volume), 2, volume.windows, 0);
    b.define(t, mx::transpose(windows, {0, 2, 3, 4, 1, 5, 6, 7}));
}

/// Adds the columns of a transposed convolution up: output (i * stride + tap) gets column i's tap.
bool supports_col2im_1d(const ggml_tensor* t) {
    return is_float(t->src[0]->type) && is_float(t->type) && t->src[0]->ne[2] * t->src[0]->ne[3] == 1;
}
void translate_col2im_1d(Builder& b, const ggml_tensor* t) {
    const ggml_tensor* columns = t->src[0];
    const int stride = int_param(t, 0), channels = int_param(t, 1), crop = int_param(t, 2);
    const int steps = extent(columns, 1), taps = extent(columns, 0) / channels;
    const int shifts = (taps + stride - 1) / stride;
    // Taps in groups of one stride each; group j of step i falls into the stride i + j of the output.
    array x = mx::reshape(b.f32(columns), {steps, channels, taps});
    x = mx::pad(x, std::vector<int>{2}, Shape{0}, Shape{shifts * stride - taps}, array(0.0f));
    x = mx::reshape(x, {steps, channels, shifts, stride});
    array total = mx::zeros({steps + shifts - 1, channels, stride}, mx::float32);
    for (int j = 0; j < shifts; ++j) {
        const array group = mx::squeeze(mx::slice(x, {0, 0, j, 0}, {steps, channels, j + 1, stride}), 2);
        total = total + mx::pad(group, std::vector<int>{0}, Shape{j}, Shape{shifts - 1 - j}, array(0.0f));
    }
    const array signal = mx::reshape(mx::transpose(total, {1, 0, 2}), {channels, -1});
    b.define(t, mx::slice(signal, {0, crop}, {channels, crop + extent(t, 0)}));
}

constexpr OpRow kRows[] = {
    {GGML_OP_CONV_2D, takes_floats, translate_conv_2d},
    {GGML_OP_CONV_2D_DW, takes_floats, translate_conv_2d_depthwise},
    {GGML_OP_CONV_3D, takes_floats, translate_conv_3d},
    {GGML_OP_CONV_TRANSPOSE_1D, supports_conv_transpose_1d, translate_conv_transpose_1d},
    {GGML_OP_CONV_TRANSPOSE_2D, takes_floats, translate_conv_transpose_2d},
    {GGML_OP_IM2COL, supports_im2col, translate_im2col},
    {GGML_OP_IM2COL_3D, supports_im2col, translate_im2col_3d},
    {GGML_OP_COL2IM_1D, supports_col2im_1d, translate_col2im_1d},
};

}  // namespace

std::span<const OpRow> convolution_ops() { return kRows; }

}  // namespace headrace::mlx
