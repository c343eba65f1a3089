#include "base/file_pages.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <iterator>
#include <map>
#include <string>
#include <string_view>

#include "base/take_until.h"

#ifdef __linux__
#include <sys/mman.h>
#include <unistd.h>
#endif

namespace headrace {
namespace {

/// Files that this library has mapped: the ends by the beginnings.
struct OwnMappings {
    std::mutex mutex;
    std::map<std::uintptr_t, std::uintptr_t> ends;
};

/// Never destroyed: files are unmapped at the end of the process, too.
OwnMappings& own_mappings() {
    static auto* const mappings = new OwnMappings();
    return *mappings;
}

std::uintptr_t begin_of(std::span<const std::byte> bytes) {
    return reinterpret_cast<std::uintptr_t>(bytes.data());
}

bool is_own(std::span<const std::byte> bytes) {
    OwnMappings& own = own_mappings();
    const std::lock_guard lock(own.mutex);
    const auto after = own.ends.upper_bound(begin_of(bytes));
    return after != own.ends.begin() && begin_of(bytes) + bytes.size() <= std::prev(after)->second;
}

}  // namespace

void FilePages::add(std::span<const std::byte> mapping) {
    OwnMappings& own = own_mappings();
    const std::lock_guard lock(own.mutex);
    own.ends[begin_of(mapping)] = begin_of(mapping) + mapping.size();
}

void FilePages::remove(std::span<const std::byte> mapping) {
    OwnMappings& own = own_mappings();
    const std::lock_guard lock(own.mutex);
    own.ends.erase(begin_of(mapping));
}

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

FilePages::Ranges FilePages::told_by_system() {
    Ranges ranges;
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
        if (!ranges.empty() && ranges.back().second == begin)
            ranges.back().second = end;
        else
            ranges.emplace_back(begin, end);
    }
    return ranges;
}

void FilePages::give_back(std::span<const std::byte> bytes) const {
    if (!contains(bytes)) return;
    const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
    const std::uintptr_t first = begin_of(bytes);
    const std::uintptr_t begin = (first + page - 1) / page * page, end = (first + bytes.size()) / page * page;
    if (begin >= end) return;
    munlock(reinterpret_cast<void*>(begin), end - begin);  // a host locks what it expects to be read often
    madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
}

#else

FilePages::Ranges FilePages::told_by_system() { return {}; }
void FilePages::give_back(std::span<const std::byte>) const {}

#endif

bool FilePages::contains(std::span<const std::byte> bytes) const {
    if (is_own(bytes)) return true;
    std::call_once(is_told_, [this] { told_ = told_by_system(); });
    const std::uintptr_t begin = begin_of(bytes), end = begin + bytes.size();
    auto range = std::upper_bound(told_.begin(), told_.end(), begin,
                                  [](std::uintptr_t at, const auto& r) { return at < r.first; });
    return range != told_.begin() && end <= (--range)->second;
}

}  // namespace headrace
