#pragma once
#include "backends/mlx/arrays/mlx_api.h"

struct ggml_tensor;

namespace headrace::mlx {

/// What an expression reads from ggml's memory.
enum class LeafKind {
    values,  ///< the tensor's elements, of shape_of()
    flat,    ///< its root's whole memory: elements, or bytes of a quantised type; one axis
    codes,   ///< of a repacked tensor: uint32 words
    scales,
    biases,
    f32,  ///< converted once and cached
};

/// A place in an expression where an array over ggml's memory is put in before each run.
struct Leaf {
    const ggml_tensor* tensor;
    LeafKind kind;

    bool operator==(const Leaf&) const = default;
};

/// The array for a leaf: an alias where the memory is a Buffer's, a copy of memory that is not.
array load(const Leaf& leaf);

/// How codes, scales and biases of a repacked tensor (or a view of one) lie in its root's memory.
struct PackedView {
    Shape shape;
    Strides strides;
    std::size_t byte_offset;  ///< from the root's address
    mx::Dtype dtype;
};
PackedView packed_view(const ggml_tensor* t, LeafKind part);

}  // namespace headrace::mlx
