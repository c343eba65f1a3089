#pragma once
#include <cstdint>
#include <iosfwd>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/result.h"
#include "ir/graph.h"

namespace headrace::webnn {

/// The weights beside a `.webnn` or JSON graph. The manifest, JSON of the format "wg-weights-manifest"
/// version 1, gives dataType, shape, byteOffset and byteLength by key. Offsets count from the start of the
/// weights file, which begins with "WGWT" and a u32 version, 1; a file without that is taken as bare numbers.
/// All is little-endian. A tensor may have "xxh3", the hash of its bytes in the file, which is checked when
/// it is read. 4-bit types take a byte an element in files of that family; packed pairs are read as well.
class WeightsFile {
public:
    /// Errors: io; invalid_argument with the manifest's path of what is wrong.
    static Result<std::unique_ptr<WeightsFile>> open(const std::string& manifest_path,
                                                     const std::string& weights_path);
    /// The same on what is in memory; `owner` keeps `weights` alive.
    static Result<std::unique_ptr<WeightsFile>> parse(std::string_view manifest,
                                                      std::span<const std::byte> weights,
                                                      std::shared_ptr<const void> owner, bool mapped);

    /// The constant of a key, which must have this type: the file's pages where they are aligned for kernels,
    /// else a copy. Keys of the same bytes share a Constant.
    Result<std::shared_ptr<const Constant>> find(const std::string& key, const TensorType& type);

private:
    struct Entry {
        DType dtype;
        Shape shape;
        std::uint64_t offset, length;
        std::string checksum;                      ///< 32 hexadecimal digits, or empty: nobody says
        std::shared_ptr<const Constant> constant;  ///< once it was asked for
    };

    Status read_manifest(std::string_view text);
    Status check(const std::string& key, const Entry& entry, const TensorType& type) const;
    /// What lies at the entry's place, and whether it is what was written there.
    Status check_content(const std::string& key, const Entry& entry);
    Result<std::shared_ptr<const Constant>> load(const Entry& entry, const TensorType& type);

    std::span<const std::byte> bytes_;
    std::shared_ptr<const void> owner_;
    bool mapped_ = false;
    std::uint64_t first_ = 0;  ///< offset of the first tensor: behind the header if there is one
    std::uint64_t copied_ = 0, hashed_ = 0;
    /// By offset and length.
    std::map<std::pair<std::uint64_t, std::uint64_t>, std::string> checksums_;
    std::unordered_map<std::string, Entry> entries_;
    /// By offset and length in the file; the complement of the length where 4-bit elements are packed.
    std::map<std::pair<std::uint64_t, std::uint64_t>, std::shared_ptr<const Constant>> shared_;
};

/// Packs 4-bit elements, one a byte. Errors: another number of bytes than `type` has elements.
Result<std::shared_ptr<const Constant>> pack_elements(std::span<const std::byte> bytes,
                                                      const TensorType& type);

/// A tensor to write, and its key.
struct NamedWeight {
    std::string key;
    TensorType type;
    std::shared_ptr<const Constant> constant;
};

/// Writes the weights file, and returns what its manifest holds. Tensors lie at multiples of 64, so that they
/// can be mapped; shared constants are written once. Errors: io.
Result<std::string> write_weights(std::span<const NamedWeight> weights, std::ostream& stream);

}  // namespace headrace::webnn
