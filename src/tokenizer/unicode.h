#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

/// Characters as Hugging Face's tokenizers see them (unicode_data.inc, which tools/unicode_tables.py writes).
namespace headrace::text {

/// What a character is. Names are those of tools/unicode_tables.py, in its order.
enum Property : std::uint32_t {
    kBertRemoved = 1u << 0,      ///< control characters and the like, which BertNormalizer drops
    kSpace = 1u << 1,            ///< Rust's white space
    kNonspacingMark = 1u << 2,   ///< what BertNormalizer strips as an accent
    kCombiningMark = 1u << 3,    ///< what StripAccents drops
    kBertPunctuation = 1u << 4,  ///< what BertPreTokenizer isolates
    kPunctuation = 1u << 5,      ///< what Punctuation isolates
    kNumeric = 1u << 6,          ///< what Digits splits at
    kLetter = 1u << 7,           ///< \p{L} of the file's regular expressions
    kNumber = 1u << 8,           ///< \p{N}
    kPatternSpace = 1u << 9,     ///< \s
    kWord = 1u << 10,            ///< \w of Rust's own regular expressions
    kJoins = 1u << 11,           ///< continues a grapheme
    kSpacingMark = 1u << 12,     ///< of those, one that leaves pictographs apart
    kPrepends = 1u << 13,        ///< begins a grapheme that the next character is in
    kBreaks = 1u << 14,          ///< is a grapheme of its own, whatever follows
    kPictographic = 1u << 15,    ///< joins with another by U+200D
    kIndicConsonant = 1u << 16,  ///< joins with another by a linker
    kIndicLinker = 1u << 17,
    kHasLowercase = 1u << 18,
    kHasCanonical = 1u << 19,   ///< a canonical decomposition, Hangul's aside
    kHasCompatible = 1u << 20,  ///< a compatible decomposition that is another than that
};

/// Its properties; the canonical combining class are the 8 highest bits.
std::uint32_t properties_of(char32_t c);
inline bool is(char32_t c, std::uint32_t any) { return (properties_of(c) & any) != 0; }

enum class NormalForm : std::uint8_t { nfc, nfd, nfkc, nfkd };

std::string normal_form(std::string_view text, NormalForm form);
/// Character by character, as the library does: without the rule for a final sigma.
void append_lowercase(std::string& out, char32_t c);

/// What text, which is valid UTF-8, has at `at`, which moves behind it.
inline char32_t next_character(std::string_view text, std::size_t& at) {
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
    const char32_t lead = byte(at);
    if (lead < 0x80) return ++at, lead;
    const std::size_t size = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
    char32_t c = lead & (0x7Fu >> size);
    for (std::size_t i = 1; i < size; ++i) c = c << 6 | (byte(at + i) & 0x3Fu);
    at += size;
    return c;
}
/// Where the last character before `end` begins.
std::size_t previous_character(std::string_view text, std::size_t end);
void append(std::string& out, char32_t c);

/// Where the extended grapheme cluster that begins at `at` ends.
std::size_t grapheme_end(std::string_view text, std::size_t at);

}  // namespace headrace::text
