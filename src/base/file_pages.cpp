#include "base/file_pages.h"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstring>

#ifdef __linux__
#include <sys/mman.h>
#include <unistd.h>
#endif

namespace headrace {

#ifdef __linux__

FilePages::FilePages() {
    std::FILE* maps = std::fopen("/proc/self/maps", "re");
    if (!maps) return;
    char line[512];
    bool at_start = true;  // a long path continues a line
    while (std::fgets(line, sizeof(line), maps)) {
        std::uintptr_t begin = 0, end = 0;
        unsigned long inode = 0;
        char rights[5] = {};
        // 7f…000-7f…000 r--s 00000000 fe:00 1234 /path
        const bool is_range = at_start && std::sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %4s %*s %*s %lu",
                                                      &begin, &end, rights, &inode) == 4;
        const std::size_t length = std::strlen(line);
        at_start = length > 0 && line[length - 1] == '\n';
        if (!is_range || inode == 0 || rights[0] != 'r' || rights[1] != '-') continue;
        if (!ranges_.empty() && ranges_.back().second == begin)
            ranges_.back().second = end;
        else
            ranges_.emplace_back(begin, end);
    }
    std::fclose(maps);
}

void FilePages::give_back(std::span<const std::byte> bytes) const {
    if (!contains(bytes)) return;
    const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
    const auto first = reinterpret_cast<std::uintptr_t>(bytes.data());
    const std::uintptr_t begin = (first + page - 1) / page * page, end = (first + bytes.size()) / page * page;
    if (begin >= end) return;
    munlock(reinterpret_cast<void*>(begin), end - begin);  // a host locks what it expects to be read often
    madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
}

#else

FilePages::FilePages() = default;
void FilePages::give_back(std::span<const std::byte>) const {}

#endif

bool FilePages::contains(std::span<const std::byte> bytes) const {
    const auto begin = reinterpret_cast<std::uintptr_t>(bytes.data()), end = begin + bytes.size();
    auto range = std::upper_bound(ranges_.begin(), ranges_.end(), begin,
                                  [](std::uintptr_t at, const auto& r) { return at < r.first; });
    return range != ranges_.begin() && end <= (--range)->second;
}

}  // namespace headrace
