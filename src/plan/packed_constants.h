#pragma once
#include <atomic>
#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "base/file_pages.h"
#include "base/result.h"
#include "ir/graph.h"
#include "ir/shared_forms.h"
#include "plan/packed_cache.h"

namespace headrace {

/// Constants in the form that packed kernels read. One per executable: each (constant, kernel, attributes) is
/// packed once, whatever number of shape keys, sessions and threads use it.
class PackedConstants {
public:
    /// From then on takes what it can from the file that earlier starts of this graph kept in the folder.
    void use_cache(const Graph& graph, const std::string& folder, int threads);

    /// A node, and the kernel that reads one of its operands packed.
    struct Use {
        const Node* node;
        const KernelDef* kernel;
    };
    /// Packs what get() will be asked for, on several threads. What fails is get()'s to say.
    void prepare(const Graph& graph, std::span<const Use> uses, int threads);
    /// The packed form of operand kernel.packed_operand of the node. Where the plain form is a file's pages,
    /// they are given back: few nodes read both.
    Result<std::shared_ptr<const std::byte>> get(const Graph& graph, const Node& node,
                                                 const KernelDef& kernel);
    /// The plain bytes of a constant at a place where kernels can read them.
    Result<std::shared_ptr<const std::byte>> aligned(const Constant& constant);
    /// Lets the next start have what get() packed.
    void keep();

    std::size_t bytes() const;
    std::size_t mapped_bytes() const;   ///< of those, pages of the cache's file
    std::size_t aligned_bytes() const;  ///< of those of files, copies that aligned() made
    std::size_t grown_bytes() const;    ///< of bytes(), those of kernels that grow weights

private:
    struct Form {
        std::shared_ptr<const std::byte> data;
        std::size_t bytes = 0;
        bool is_mapped = false;
        bool has_grown = false;
    };
    using Key = std::pair<const Constant*, std::string>;
    /// What a form is found by: here, and in the cache.
    struct Names {
        const Key* key;
        ContentHash kept;
    };
    template <class Condition>
    std::size_t bytes_where(const Condition& holds) const {
        const std::lock_guard lock(mutex_);
        std::size_t total = 0;
        for (const auto& [key, form] : packed_) total += holds(form) ? form.bytes : 0;
        return total;
    }
    static Key key_of(const Graph& graph, const Use& use);
    ContentHash name_of(const Key& key);
    Status fill(Form& form, const Names& names, const Graph& graph, const Use& use);
    Result<SharedForms::Form> packed(const Value& value, const KernelDef& kernel, const void* attrs,
                                     std::size_t bytes) const;

    mutable std::mutex mutex_;
    std::map<Key, Form> packed_;
    std::map<const Constant*, std::shared_ptr<const std::byte>> aligned_;
    FilePages pages_;
    std::optional<PackedCache> cache_;
    std::atomic<bool> is_kept_ = true;
};

}  // namespace headrace
