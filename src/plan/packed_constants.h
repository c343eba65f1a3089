#pragma once
#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/aligned_buffer.h"
#include "base/file_pages.h"
#include "base/result.h"
#include "ir/graph.h"

namespace headrace {

/// Constants in the form that packed kernels read. One per executable: each (constant, kernel, attributes) is
/// packed once, whatever number of shape keys, sessions and threads use it.
class PackedConstants {
public:
    /// The packed form of operand kernel.packed_operand of the node. Where the plain form is a file's pages,
    /// they are given back: few nodes read both.
    Result<std::shared_ptr<const AlignedBuffer>> get(const Graph& graph, const Node& node,
                                                     const KernelDef& kernel);
    std::size_t bytes() const;

private:
    using Key = std::pair<const Constant*, std::string>;
    mutable std::mutex mutex_;
    std::map<Key, std::shared_ptr<const AlignedBuffer>> packed_;
    std::optional<FilePages> pages_;
};

}  // namespace headrace
