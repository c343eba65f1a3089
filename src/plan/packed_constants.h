#pragma once
#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "base/file_pages.h"
#include "base/result.h"
#include "ir/graph.h"
#include "plan/packed_cache.h"

namespace headrace {

/// Constants in the form that packed kernels read. One per executable: each (constant, kernel, attributes) is
/// packed once, whatever number of shape keys, sessions and threads use it.
class PackedConstants {
public:
    /// From then on takes what it can from the file that earlier starts of this graph kept in the folder.
    void use_cache(const Graph& graph, const std::string& folder);

    /// The packed form of operand kernel.packed_operand of the node. Where the plain form is a file's pages,
    /// they are given back: few nodes read both.
    Result<std::shared_ptr<const std::byte>> get(const Graph& graph, const Node& node,
                                                 const KernelDef& kernel);
    /// Lets the next start have what get() packed.
    void keep();

    std::size_t bytes() const;
    std::size_t mapped_bytes() const;  ///< of those, pages of the cache's file

private:
    struct Form {
        std::shared_ptr<const std::byte> data;
        std::size_t bytes = 0;
        bool is_mapped = false;
    };
    using Key = std::pair<const Constant*, std::string>;
    Status fill(Form& form, const Key& key, const Graph& graph, const Node& node, const KernelDef& kernel);

    mutable std::mutex mutex_;
    std::map<Key, Form> packed_;
    std::optional<FilePages> pages_;
    std::optional<PackedCache> cache_;
    bool is_kept_ = true;
};

}  // namespace headrace
