#pragma once
#include <algorithm>
#include <array>
#include <cctype>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace headrace::fuzz {

/// Damages inputs for the loaders' fuzzers. All choices follow from the seed and the iteration, so that one
/// iteration can be repeated alone.
class Mutator {
public:
    Mutator(std::uint64_t seed, std::uint64_t iteration) : random_(seed * 0x9E3779B97F4A7C15u + iteration) {}

    std::size_t below(std::size_t count) { return count == 0 ? 0 : random_() % count; }

    /// One to eight changes to `input`. Splices come from `other`, words from `words`.
    std::string mutate(std::string input, std::string_view other,
                       const std::vector<std::string_view>& words) {
        for (std::size_t i = below(below(2) ? 2 : 8) + 1; i > 0; --i) change(input, other, words);
        if (input.size() > kMostBytes) input.resize(kMostBytes);
        return input;
    }

private:
    static constexpr std::size_t kMostBytes = 1 << 16;
    static constexpr std::array<std::uint64_t, 14> kIntegers{
        0,      1,          2,          7,          0x7F,        0x80,      0xFF,
        0x7FFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0x100000000, INT64_MAX, UINT64_MAX};
    static constexpr std::array<std::string_view, 16> kNumbers{"0",
                                                               "-1",
                                                               "1",
                                                               "8",
                                                               "4294967295",
                                                               "4294967296",
                                                               "2147483648",
                                                               "9223372036854775807",
                                                               "-9223372036854775808",
                                                               "18446744073709551615",
                                                               "18446744073709551616",
                                                               "1e308",
                                                               "1e309",
                                                               "-0",
                                                               "0.5",
                                                               "99999999999999999999999999"};

    void change(std::string& s, std::string_view other, const std::vector<std::string_view>& words) {
        const std::size_t at = below(s.size() + 1);
        const std::size_t rest = s.size() - at;
        switch (below(11)) {
            case 0:
                if (rest) s[at] = static_cast<char>(s[at] ^ (1 << below(8)));
                break;
            case 1:
                if (rest) s[at] = static_cast<char>(random_());
                break;
            case 2: s.resize(at); break;
            case 3: s.erase(at, span(rest)); break;
            case 4: s.insert(below(s.size() + 1), s.substr(at, span(rest))); break;
            case 5: {
                const std::size_t from = below(other.size() + 1);
                s.insert(at, other.substr(from, span(other.size() - from)));
                break;
            }
            case 6: write_integer(s, at); break;
            case 7: swap_tokens(s, below(2) ? other : std::string_view(s)); break;
            case 8: replace_number(s); break;
            case 9:
                if (!words.empty()) s.insert(at, words[below(words.size())]);
                break;
            default: repeat(s, at); break;
        }
    }

    /// Mostly short spans: long ones leave little of the input.
    std::size_t span(std::size_t most) { return below(std::min<std::size_t>(most, below(4) ? 16 : 512) + 1); }

    void write_integer(std::string& s, std::size_t at) {
        const std::uint64_t value = kIntegers[below(kIntegers.size())] - below(2);
        const std::size_t size = std::size_t{1} << below(4);
        if (at + size <= s.size()) std::memcpy(s.data() + at, &value, size);
    }

    static bool in_word(char c) {
        return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.';
    }

    /// The word or single character around a random place.
    std::pair<std::size_t, std::size_t> token(std::string_view s) {
        std::size_t start = below(s.size()), end = start;
        while (start > 0 && in_word(s[start]) && in_word(s[start - 1])) --start;
        while (end < s.size() && in_word(s[end])) ++end;
        return {start, std::max<std::size_t>(end - start, 1)};
    }

    void swap_tokens(std::string& s, std::string_view from) {
        if (s.empty() || from.empty()) return;
        const auto [source, source_size] = token(from);
        const std::string word(from.substr(source, source_size));
        const auto [at, size] = token(s);
        s.replace(at, size, word);
    }

    void replace_number(std::string& s) {
        const std::size_t start = s.find_first_of("0123456789", below(s.size() + 1));
        if (start == std::string::npos) return;
        std::size_t end = start;
        while (end < s.size() && std::isdigit(static_cast<unsigned char>(s[end]))) ++end;
        s.replace(start, end - start, kNumbers[below(kNumbers.size())]);
    }

    void repeat(std::string& s, std::size_t at) {
        const std::string piece = s.substr(at, span(s.size() - at));
        for (std::size_t i = below(below(8) ? 4 : 2000); i > 0 && s.size() < kMostBytes; --i)
            s.insert(at, piece);
    }

    std::mt19937_64 random_;
};

}  // namespace headrace::fuzz
