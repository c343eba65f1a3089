/* cuBLAS multiplies f32 as TF32, of 11 bits, because ggml-cuda asks for that when it opens it; ours is to be exact.
 * Included before each of its files: whoever names the mode after cuBLAS's own header has declared it gets the
 * default one. */
#include <cublas_v2.h>
#define CUBLAS_TF32_TENSOR_OP_MATH CUBLAS_DEFAULT_MATH
