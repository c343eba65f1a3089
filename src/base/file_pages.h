#pragma once
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

namespace headrace {

/// The parts of this process's memory that are read-only mappings of files: those that MappedFile has, and
/// those of others as they were when this was first asked for one. Where the system does not tell them, the
/// former alone. Threads may ask at the same time.
class FilePages {
public:
    bool contains(std::span<const std::byte> bytes) const;
    /// Gives back the whole pages among `bytes`, which count as the process's memory no more; who reads them
    /// again gets them from the file. Does nothing to bytes outside of such mappings.
    void give_back(std::span<const std::byte> bytes) const;

    /// MappedFile's, from when it maps one until it unmaps it.
    static void add(std::span<const std::byte> mapping);
    static void remove(std::span<const std::byte> mapping);

private:
    using Ranges = std::vector<std::pair<std::uintptr_t, std::uintptr_t>>;  // sorted and joined: [begin, end)

    static Ranges told_by_system();

    mutable std::once_flag is_told_;  // asking the system takes a third of a millisecond and more
    mutable Ranges told_;
};

}  // namespace headrace
