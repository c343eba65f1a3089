#include "base/file_pages.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <string>
#include <string_view>

#include "base/take_until.h"

#ifdef __linux__
#include <sys/mman.h>
#include <unistd.h>
#endif

namespace headrace {

#ifdef __linux__

namespace {

std::uintptr_t number_of(std::string_view text, int base) {
    std::uintptr_t number = 0;
    std::from_chars(text.data(), text.data() + text.size(), number, base);
    return number;
}

/// The system writes it when it is read, which is done several times while a model is loaded.
std::string mappings() {
    std::string text;
    std::FILE* maps = std::fopen("/proc/self/maps", "re");
    if (!maps) return text;
    constexpr std::size_t kPart = std::size_t{64} << 10;
    std::setvbuf(maps, nullptr, _IONBF, 0);  // each read goes straight into the text
    for (std::size_t read = 1, size = 0; read > 0; size += read) {
        text.resize(size + kPart);
        read = std::fread(text.data() + size, 1, kPart, maps);
        text.resize(size + read);
    }
    std::fclose(maps);
    return text;
}

}  // namespace

FilePages::FilePages() {
    const std::string text = mappings();
    for (std::string_view rest = text; !rest.empty();) {
        std::string_view line = take_until(rest, '\n');
        // 7f…000-7f…000 r--s 00000000 fe:00 1234 /path
        const std::uintptr_t begin = number_of(take_until(line, '-'), 16),
                             end = number_of(take_until(line, ' '), 16);
        const std::string_view rights = take_until(line, ' ');
        take_until(line, ' ');  // the offset
        take_until(line, ' ');  // the device
        const bool is_file = number_of(take_until(line, ' '), 10) != 0;
        if (!is_file || !rights.starts_with("r-")) continue;
        if (!ranges_.empty() && ranges_.back().second == begin)
            ranges_.back().second = end;
        else
            ranges_.emplace_back(begin, end);
    }
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
