#pragma once
#include <atomic>
#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "base/file_pages.h"
#include "ir/graph.h"
#include "plan/packed_file.h"

namespace headrace {

/// The version of the forms that kernels pack weights in. It is raised whenever one changes, since files of
/// earlier starts hold the former; tests/ops/packed_forms_test.cpp notices.
inline constexpr int kPackingVersion = 3;

/// One graph's file of packed weights, in a folder that the user chose. A file that cannot be used is
/// reported and written anew; what keeps it from being written is reported, and nothing else: packing always
/// works.
class PackedCache {
public:
    /// Reads the constants that kernels could pack once, for the file's key. Several graphs and processes may
    /// use one folder at the same time. threads: for reading them. pages: lives longer than this.
    PackedCache(const Graph& graph, const std::string& folder, int threads, const FilePages& pages);

    /// What a use of a constant of that graph is called in the file. use: kernel, type and attributes.
    ContentHash name_of(const Constant* constant, std::string_view use);
    /// The form in the file, which stays mapped for as long as someone has it. Null: it is to be packed.
    /// Several threads may ask at the same time.
    std::shared_ptr<const std::byte> find(const ContentHash& use, std::size_t bytes);
    /// Writes the file with these forms, unless they are too small to be worth one.
    void keep(const std::map<ContentHash, std::span<const std::byte>>& forms);

private:
    /// The key of a graph: its uses of constants that kernels could pack.
    ContentHash hash_uses(const Graph& graph, int threads);
    ContentHash read_content(const Constant& constant) const;
    ContentHash content_of(const Constant* constant);
    void report(const Error& error);

    std::map<const Constant*, ContentHash> contents_;
    const FilePages& pages_;
    PackedFileKey key_;
    std::string path_;
    std::shared_ptr<const PackedFile> file_;
    std::atomic<bool> is_reported_ = false;
    bool can_write_ = true;
};

}  // namespace headrace
