#include "doors/onnx/reading/limits.h"

#include "doors/onnx/reading/refused.h"

namespace headrace::onnx {
namespace {

constexpr std::size_t kMostNodes = std::size_t{1} << 17;  // that functions and repetitions add
constexpr int kMostDepth = 64;                            // of functions and branches within one another
constexpr std::size_t kMostOps = std::size_t{1} << 16;    // of the graph, and for each of the model's nodes
constexpr std::size_t kOpsPerNode = 128;
constexpr std::size_t kMostBytes = std::size_t{1} << 30;  // of constants, and for each of the model's bytes
constexpr std::size_t kGrowth = 16;                       // 4-bit weights as f64
constexpr std::size_t kMostItems = std::size_t{1} << 22;  // of all sequences together

}  // namespace

Budget::Budget(std::size_t bytes) : most_bytes_(kMostBytes + kGrowth * bytes) {}

void Budget::nodes(std::size_t count, int depth, bool own) {
    (own ? own_nodes_ : nodes_) += count;
    if (nodes_ > kMostNodes)
        throw Refused(
            fmt::format("the model's functions and loops become more than {} nodes, the most that "
                        "are read",
                        kMostNodes),
            "Export the model with fewer calls of functions that call others, or loops within loops");
    if (depth > kMostDepth)
        throw Refused(
            fmt::format("functions and branches lie more than {} deep in one another, which is too deep",
                        kMostDepth),
            "Export the model with its functions inlined");
}

void Budget::op() {
    const std::size_t most = kMostOps + kOpsPerNode * own_nodes_;
    if (++ops_ > most)
        throw Refused(
            fmt::format("it would become more than {} operations, too many for a model of this size", most),
            "Export the model with smaller extents here, or compute this part outside the model");
}

void Budget::items(std::size_t count) {
    items_ += count;
    if (items_ > kMostItems)
        throw Refused(
            fmt::format("sequences that are made while the model is read have more than {} tensors together",
                        kMostItems),
            "Export the model with shorter sequences, or with tensors in their place");
}

void Budget::data(std::size_t bytes) { most_bytes_ += kGrowth * bytes; }

void Budget::constant(std::size_t bytes) {
    bytes_ += bytes;
    if (bytes_ > most_bytes_)
        throw Refused(
            fmt::format("constants that are made while the model is read have more than {} bytes, the "
                        "most for a model of this size",
                        most_bytes_),
            "Store what is needed as initializers, or compute this part outside the model");
}

}  // namespace headrace::onnx
