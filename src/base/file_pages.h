#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace headrace {

/// The parts of this process's memory that are read-only mappings of files, as they were when this was made.
/// Empty where the system does not tell.
class FilePages {
public:
    FilePages();

    bool contains(std::span<const std::byte> bytes) const;
    /// Gives back the whole pages among `bytes`, which count as the process's memory no more; who reads them
    /// again gets them from the file. Does nothing to bytes outside of such mappings.
    void give_back(std::span<const std::byte> bytes) const;

private:
    std::vector<std::pair<std::uintptr_t, std::uintptr_t>> ranges_;  ///< sorted and joined: [begin, end)
};

}  // namespace headrace
