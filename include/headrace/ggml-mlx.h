/* Single operations of ggml on Apple's MLX, without a graph: libggml-mlx.so. docs/mlx.md has an example.
 *
 * Tensors may lie anywhere that the program can read: in memory of the MLX device, where nothing is copied,
 * or in any other. Every function computes before it returns. On failure it says why on ggml's log, leaves
 * dst as it is, and returns GGML_STATUS_FAILED (operands that do not go together or that MLX has no type for,
 * an error of MLX's) or GGML_STATUS_ALLOC_FAILED. All functions may be called from any thread. */
#ifndef HEADRACE_GGML_MLX_H
#define HEADRACE_GGML_MLX_H

#include <stdbool.h>

#include "ggml.h"

#if defined(_WIN32)
#define GGML_MLX_API
#else
#define GGML_MLX_API __attribute__((visibility("default")))
#endif

#ifdef __cplusplus
extern "C" {
#endif

/** Whether MLX works here: computes a sum on its device. */
GGML_MLX_API bool ggml_mlx_available(void);

/** Prepares the device, which the first operation would do otherwise. */
GGML_MLX_API void ggml_mlx_init(void);
/** Gives back the memory that MLX keeps for later use. Everything may be used again afterwards. */
GGML_MLX_API void ggml_mlx_free(void);

/** 0: MLX's CPU; 1: its GPU. False when there is no such device; the choice stays as it was then. */
GGML_MLX_API bool ggml_mlx_set_device(int device);
/** Threads of matrix products on the CPU. */
GGML_MLX_API void ggml_mlx_set_n_threads(int n_threads);

/** Whether ggml_mlx_mul_mat takes these tensors. */
GGML_MLX_API bool ggml_mlx_can_mul_mat(const struct ggml_tensor* src0, const struct ggml_tensor* src1,
                                       struct ggml_tensor* dst);

/** dst = src1 x src0^T, as ggml_mul_mat; src0 may be quantised. */
GGML_MLX_API enum ggml_status ggml_mlx_mul_mat(const struct ggml_tensor* src0, const struct ggml_tensor* src1,
                                               struct ggml_tensor* dst);

/* Element by element; src1 is repeated to src0's shape, which dst has. */
GGML_MLX_API enum ggml_status ggml_mlx_add(const struct ggml_tensor* src0, const struct ggml_tensor* src1,
                                           struct ggml_tensor* dst);
GGML_MLX_API enum ggml_status ggml_mlx_sub(const struct ggml_tensor* src0, const struct ggml_tensor* src1,
                                           struct ggml_tensor* dst);
GGML_MLX_API enum ggml_status ggml_mlx_mul(const struct ggml_tensor* src0, const struct ggml_tensor* src1,
                                           struct ggml_tensor* dst);
GGML_MLX_API enum ggml_status ggml_mlx_div(const struct ggml_tensor* src0, const struct ggml_tensor* src1,
                                           struct ggml_tensor* dst);

GGML_MLX_API enum ggml_status ggml_mlx_relu(const struct ggml_tensor* src, struct ggml_tensor* dst);
/** The tanh approximation, as ggml_gelu. */
GGML_MLX_API enum ggml_status ggml_mlx_gelu(const struct ggml_tensor* src, struct ggml_tensor* dst);
GGML_MLX_API enum ggml_status ggml_mlx_silu(const struct ggml_tensor* src, struct ggml_tensor* dst);

/* Over each row (ne[0] elements). */
GGML_MLX_API enum ggml_status ggml_mlx_soft_max(const struct ggml_tensor* src, struct ggml_tensor* dst);
GGML_MLX_API enum ggml_status ggml_mlx_norm(const struct ggml_tensor* src, struct ggml_tensor* dst,
                                            float eps);
GGML_MLX_API enum ggml_status ggml_mlx_rms_norm(const struct ggml_tensor* src, struct ggml_tensor* dst,
                                                float eps);

/** q: head size x tokens x heads x batches; k, v: head size x positions x KV heads x batches; mask, which may
 * be NULL: positions x tokens. dst: head size of v x heads x tokens x batches, as of ggml_flash_attn_ext. */
GGML_MLX_API enum ggml_status ggml_mlx_flash_attn(const struct ggml_tensor* q, const struct ggml_tensor* k,
                                                  const struct ggml_tensor* v, const struct ggml_tensor* mask,
                                                  struct ggml_tensor* dst, float scale);

/** kernel: size x inputs x outputs; signal: length x inputs x batches; dst: new length x outputs x batches.
 */
GGML_MLX_API enum ggml_status ggml_mlx_conv_1d(const struct ggml_tensor* kernel,
                                               const struct ggml_tensor* signal, struct ggml_tensor* dst,
                                               int stride, int padding, int dilation);
/** kernel: width x height x inputs x outputs; image: width x height x inputs x batches. The first of each
 * pair of numbers is along the width. */
GGML_MLX_API enum ggml_status ggml_mlx_conv_2d(const struct ggml_tensor* kernel,
                                               const struct ggml_tensor* image, struct ggml_tensor* dst,
                                               int stride0, int stride1, int padding0, int padding1,
                                               int dilation0, int dilation1);

#ifdef __cplusplus
}
#endif

#endif
