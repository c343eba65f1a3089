#pragma once
#include <cstddef>
#include <cstdint>

namespace headrace::onnx {

/// What a model may become while it is read: a kilobyte can ask for any amount of time and memory. Errors:
/// Refused with the limit, where it is reached.
class Budget {
public:
    /// bytes: the model's, without external data.
    explicit Budget(std::size_t bytes);

    /// Nodes that are to be read, so deep in functions and branches; own: the model has them itself, no
    /// function, and they are read for the first time.
    void nodes(std::size_t count, int depth, bool own);
    /// Tensors of a sequence that is made.
    void items(std::size_t count);
    void op();
    /// Bytes of a tensor of the model.
    void data(std::size_t bytes);
    /// Bytes of constants that are made.
    void constant(std::size_t bytes);

private:
    std::size_t own_nodes_ = 0, nodes_ = 0, ops_ = 0, bytes_ = 0, items_ = 0, most_bytes_;
};

}  // namespace headrace::onnx
