#include "tokenizer/unicode.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <unordered_map>
#include <utility>
#include <vector>

namespace headrace::text {
namespace {

#include "tokenizer/unicode_data.inc"

constexpr char32_t kCharacters = 0x110000;
constexpr int kClassShift = 24;

// Hangul syllables, which are composed by rule (Unicode, section 3.12).
constexpr char32_t kSyllables = 0xAC00, kLeads = 0x1100, kVowels = 0x1161, kTails = 0x11A7;
constexpr char32_t kLeadCount = 19, kVowelCount = 21, kTailCount = 28;
constexpr char32_t kSyllableCount = kLeadCount * kVowelCount * kTailCount;

/// Calls use(numbers) with those of each entry of a table of unicode_data.inc.
template <class Use>
void each_entry(std::string_view table, const Use& use) {
    std::vector<char32_t> numbers;
    while (!table.empty()) {
        std::uint32_t number = 0;
        const auto [end, error] = std::from_chars(table.data(), table.data() + table.size(), number, 16);
        numbers.push_back(number);
        const char mark = *end;
        table.remove_prefix(static_cast<std::size_t>(end - table.data()) + 1);
        if (mark != ';') continue;
        use(numbers);
        numbers.clear();
    }
}

using Mapping = std::unordered_map<char32_t, std::u32string>;

class Tables {
public:
    Tables() {
        std::vector<std::uint32_t> all(kCharacters);
        fill_runs(all, kPropertyRuns, 0);
        fill_runs(all, kClassRuns, kClassShift);
        read_mapping(all, kLowercase, kHasLowercase, lowercase);
        read_mapping(all, kCanonical, kHasCanonical, canonical);
        read_mapping(all, kCompatible, kHasCompatible, compatible);
        each_entry(kCompositions,
                   [&](const auto& entry) { compositions.emplace(pair_key(entry[1], entry[2]), entry[0]); });
        keep_blocks(all);
    }

    std::uint32_t properties(char32_t c) const { return blocks_[places_[c >> 8]][c & 0xFF]; }
    static std::uint64_t pair_key(char32_t a, char32_t b) { return std::uint64_t{a} << 32 | b; }

    Mapping lowercase, canonical, compatible;
    std::unordered_map<std::uint64_t, char32_t> compositions;

private:
    using Block = std::array<std::uint32_t, 256>;

    static void fill_runs(std::vector<std::uint32_t>& all, std::string_view runs, int shift) {
        char32_t at = 0;
        std::uint32_t bits = 0;
        const auto fill_until = [&](char32_t end) {
            for (; at < end; ++at) all[at] |= bits << shift;
        };
        each_entry(runs, [&](const auto& entry) {
            fill_until(entry[0]);
            bits = entry[1];
        });
        fill_until(kCharacters);
    }
    static void read_mapping(std::vector<std::uint32_t>& all, std::string_view table, std::uint32_t mark,
                             Mapping& mapping) {
        each_entry(table, [&](const auto& entry) {
            all[entry[0]] |= mark;
            mapping.emplace(entry[0], std::u32string(entry.begin() + 1, entry.end()));
        });
    }
    /// Most blocks of 256 characters are like another one.
    void keep_blocks(const std::vector<std::uint32_t>& all) {
        std::map<Block, std::uint16_t> known;
        for (std::size_t first = 0; first < all.size(); first += 256) {
            Block block;
            std::copy_n(all.begin() + static_cast<std::ptrdiff_t>(first), 256, block.begin());
            const auto [found, is_new] = known.emplace(block, static_cast<std::uint16_t>(blocks_.size()));
            if (is_new) blocks_.push_back(block);
            places_[first >> 8] = found->second;
        }
    }

    std::array<std::uint16_t, (kCharacters >> 8)> places_{};
    std::vector<Block> blocks_;
};

const Tables& tables() {
    static const Tables all;
    return all;
}

/// The class by which marks are put in order.
std::uint32_t class_of(char32_t c) { return properties_of(c) >> kClassShift; }

void decompose(char32_t c, bool compatible, std::u32string& out) {
    if (c - kSyllables < kSyllableCount) {
        const char32_t index = c - kSyllables, tail = index % kTailCount;
        out += kLeads + index / (kVowelCount * kTailCount);
        out += kVowels + index / kTailCount % kVowelCount;
        if (tail) out += kTails + tail;
        return;
    }
    const std::uint32_t known = properties_of(c);
    if (compatible && (known & kHasCompatible))
        out += tables().compatible.at(c);
    else if (known & kHasCanonical)
        out += tables().canonical.at(c);
    else
        out += c;
}

/// 0 where they do not compose.
char32_t composed(char32_t a, char32_t b) {
    if (a - kLeads < kLeadCount && b - kVowels < kVowelCount)
        return kSyllables + ((a - kLeads) * kVowelCount + (b - kVowels)) * kTailCount;
    if (a - kSyllables < kSyllableCount && (a - kSyllables) % kTailCount == 0 && b > kTails &&
        b < kTails + kTailCount)
        return a + (b - kTails);
    const auto& all = tables().compositions;
    const auto found = all.find(Tables::pair_key(a, b));
    return found == all.end() ? 0 : found->second;
}

/// In place; what is left lies at the front.
void compose(std::u32string& text) {
    std::size_t starter = text.size(), size = 0;
    std::uint32_t last_class = 0;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const char32_t c = text[i];
        const std::uint32_t own_class = class_of(c);
        const bool is_blocked = size > starter + 1 && last_class >= own_class;
        const char32_t whole = starter < size && !is_blocked ? composed(text[starter], c) : 0;
        if (whole) {
            text[starter] = whole;
            continue;
        }
        if (own_class == 0) starter = size;
        last_class = own_class;
        text[size++] = c;
    }
    text.resize(size);
}

bool is_ascii(std::string_view text) {
    return std::ranges::all_of(text, [](char c) { return static_cast<signed char>(c) >= 0; });
}

/// Hangul's kinds in graphemes: 1 lead, 2 vowel, 3 tail, 4 syllable without a tail, 5 with one; 0 none.
int hangul_kind(char32_t c) {
    const auto within = [c](char32_t first, char32_t last) { return c >= first && c <= last; };
    if (within(0x1100, 0x115F) || within(0xA960, 0xA97C)) return 1;
    if (within(0x1160, 0x11A7) || within(0xD7B0, 0xD7C6)) return 2;
    if (within(0x11A8, 0x11FF) || within(0xD7CB, 0xD7FB)) return 3;
    if (c - kSyllables < kSyllableCount) return (c - kSyllables) % kTailCount == 0 ? 4 : 5;
    return 0;
}

bool hangul_joins(char32_t a, char32_t b) {
    const int first = hangul_kind(a), second = hangul_kind(b);
    switch (first) {
        case 1: return second == 1 || second == 2 || second >= 4;
        case 2:
        case 4: return second == 2 || second == 3;
        case 3:
        case 5: return second == 3;
        default: return false;
    }
}

/// What of a grapheme's beginning decides on more than its last character does.
struct Cluster {
    bool has_pictograph = false, pictograph_waits = false;  // a pictograph, marks, and then U+200D
    bool has_consonant = false, has_linker = false;         // an Indic one, and a linker since
    int regional = 0;                                       // indicators in a row

    void add(char32_t c, std::uint32_t known) {
        constexpr char32_t kJoiner = 0x200D, kNonJoiner = 0x200C;
        const bool is_mark = (known & kJoins) && !(known & kSpacingMark) && c != kJoiner;
        const bool is_within = (is_mark || c == kJoiner) && c != kNonJoiner;  // of a conjunct
        pictograph_waits = has_pictograph && c == kJoiner;
        has_pictograph = (known & kPictographic) || (has_pictograph && is_mark);
        has_linker = (has_linker && is_within) || (has_consonant && (known & kIndicLinker));
        has_consonant = (known & kIndicConsonant) || (has_consonant && is_within);
        if (known & kIndicConsonant) has_linker = false;
        regional = c >= 0x1F1E6 && c <= 0x1F1FF ? regional + 1 : 0;
    }
};

}  // namespace

std::uint32_t properties_of(char32_t c) { return tables().properties(c); }

std::string normal_form(std::string_view text, NormalForm form) {
    if (is_ascii(text)) return std::string(text);
    const bool compatible = form == NormalForm::nfkc || form == NormalForm::nfkd;
    std::u32string all;
    for (std::size_t at = 0; at < text.size();) decompose(next_character(text, at), compatible, all);
    for (std::size_t begin = 0; begin < all.size();) {
        std::size_t end = begin;
        while (end < all.size() && class_of(all[end]) != 0) ++end;
        std::stable_sort(all.begin() + static_cast<std::ptrdiff_t>(begin),
                         all.begin() + static_cast<std::ptrdiff_t>(end),
                         [](char32_t a, char32_t b) { return class_of(a) < class_of(b); });
        begin = end + 1;
    }
    if (form == NormalForm::nfc || form == NormalForm::nfkc) compose(all);
    std::string out;
    out.reserve(text.size() + text.size() / 2);
    for (const char32_t c : all) append(out, c);
    return out;
}

void append_lowercase(std::string& out, char32_t c) {
    if (!is(c, kHasLowercase)) return append(out, c);
    for (const char32_t lower : tables().lowercase.at(c)) append(out, lower);
}

std::size_t previous_character(std::string_view text, std::size_t end) {
    do --end;
    while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80);
    return end;
}

void append(std::string& out, char32_t c) {
    const auto add = [&](char32_t byte) { out += static_cast<char>(byte); };
    if (c < 0x80) return add(c);
    if (c < 0x800) {
        add(0xC0 | c >> 6);
    } else {
        if (c < 0x10000) {
            add(0xE0 | c >> 12);
        } else {
            add(0xF0 | c >> 18);
            add(0x80 | (c >> 12 & 0x3F));
        }
        add(0x80 | (c >> 6 & 0x3F));
    }
    add(0x80 | (c & 0x3F));
}

std::size_t grapheme_end(std::string_view text, std::size_t at) {
    char32_t before = next_character(text, at);
    std::uint32_t known = properties_of(before);
    Cluster cluster;
    cluster.add(before, known);
    while (at < text.size()) {
        std::size_t behind = at;
        const char32_t c = next_character(text, behind);
        const std::uint32_t kinds = properties_of(c);
        bool joins = before == '\r' && c == '\n';
        if (!joins && !(known & kBreaks))
            joins = (kinds & kJoins) || ((known & kPrepends) && !(kinds & kBreaks)) ||
                    hangul_joins(before, c) || (cluster.pictograph_waits && (kinds & kPictographic)) ||
                    (cluster.has_linker && (kinds & kIndicConsonant)) ||
                    (cluster.regional % 2 == 1 && c >= 0x1F1E6 && c <= 0x1F1FF);
        if (!joins) break;
        cluster.add(c, kinds);
        before = c;
        known = kinds;
        at = behind;
    }
    return at;
}

}  // namespace headrace::text
