#pragma once
#include <atomic>
#include <cstdint>
#include <span>
#include <string>

#include "base/aligned_buffer.h"
#include "base/result.h"
#include "llm/blocks/block_file.h"
#include "llm/blocks/block_index.h"
#include "llm/blocks/block_key.h"

namespace headrace::llm {

/// Blocks of prompts as files of a folder, which any number of processes read and write at once. What lies
/// there is what is stored: nobody has an index that could be out of date.
///
/// Reading takes no lock. A block appears by renaming, once it is whole, so there is never half of one; it is
/// not synchronised to the disk, as its checksum tells a file that a crash of the machine has cut short.
/// Writers count the bytes under a lock before they write them, so that the limit holds at any time.
class BlockFolder {
public:
    /// most_bytes: of its blocks; 0: nothing is written. A folder that is not there is made when something
    /// is.
    BlockFolder(std::string path, std::uint64_t most_bytes);

    // From any thread.

    const std::string& path() const { return path_; }
    bool is_read_only() const { return most_bytes_ == 0; }
    /// Whether there is one, and whole as far as its size tells.
    bool has(const BlockKey& key) const;
    struct Block {
        AlignedBuffer file;
        StoredBlock stored;  ///< in it
    };
    /// tokens: of its text up to its end. Errors: Code::not_found; io; invalid_argument when it is damaged,
    /// and removed therefore.
    Result<Block> read(const BlockKey& key, const BlockOrigin& origin,
                       std::span<const std::int32_t> tokens) const;
    /// Marks the blocks of a text, its first one first, as used. Those that are not there are left out.
    void touch(std::span<const BlockKey> text) const;
    void remove(const BlockKey& key) const;
    /// That the files take, as far as the last write knew.
    std::uint64_t bytes() const { return bytes_; }

    // From one thread at a time.

    /// Makes the folder. Errors: it cannot be made, or nothing can be written there.
    Status prepare();
    /// The last of the text's blocks, unless it is there. Makes room by removing those that were used least
    /// recently, and marks the text's as used.
    /// Errors: Code::unsupported where it is larger than the limit; io; busy.
    Status write(std::span<const BlockKey> text, const BlockOrigin& origin,
                 std::span<const std::int32_t> tokens, const StoredBlock& block);

private:
    struct Unfinished;
    std::string path_of(const BlockKey& key) const;
    Status make_folder() const;
    Result<Unfinished> begin(const BlockKey& key, std::uint64_t bytes);
    Status finish(Unfinished& file, const std::string& path) const;
    Result<std::uint64_t> make_room(std::uint64_t bytes) const;
    BlockIndex look() const;
    void give_back(std::uint64_t bytes);

    const std::string path_;
    const std::uint64_t most_bytes_;
    std::atomic<std::uint64_t> bytes_ = 0;
};

}  // namespace headrace::llm
