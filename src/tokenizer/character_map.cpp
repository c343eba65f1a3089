#include <cstring>
#include <memory>
#include <vector>

#include "base/utf8.h"
#include "tokenizer/normalizer.h"
#include "tokenizer/unicode.h"

namespace headrace::text {
namespace {

/// A double array of bytes (darts-clone's units of 32 bits) and the texts that its values point to.
class CharacterMap {
public:
    CharacterMap(std::vector<std::uint32_t> units, std::string texts)
        : units_(std::move(units)), texts_(std::move(texts)) {}

    std::string operator()(std::string_view text) const {
        std::string out;
        out.reserve(text.size() + text.size() / 4);
        for (std::size_t at = 0; at < text.size();) {
            const std::size_t end = grapheme_end(text, at);
            // The library looks up short graphemes whole, by the shortest entry that they begin with.
            constexpr std::size_t kShort = 6;
            const char* whole = end - at < kShort ? find(text.substr(at, end - at)) : nullptr;
            if (whole) out += whole;
            while (!whole && at < end) {
                const std::size_t begin = at;
                next_character(text, at);
                const std::string_view character = text.substr(begin, at - begin);
                const char* entry = find(character);
                out += entry ? std::string_view(entry) : character;
            }
            at = end;
        }
        return out;
    }

private:
    const char* find(std::string_view key) const {
        std::size_t node = 0;
        const auto offset = [](std::uint32_t unit) {
            return std::size_t{unit >> 10} << ((unit & (1u << 9)) >> 6);
        };
        if (units_.empty()) return nullptr;
        node ^= offset(units_[0]);
        for (const char byte : key) {
            const auto label = static_cast<unsigned char>(byte);
            if (label == 0) return nullptr;
            node ^= label;
            if (node >= units_.size()) return nullptr;
            const std::uint32_t unit = units_[node];
            if ((unit & (1u << 31 | 0xFF)) != label) return nullptr;
            node ^= offset(unit);
            if (!(unit >> 8 & 1)) continue;
            if (node >= units_.size()) return nullptr;
            const std::size_t place = units_[node] & ~(1u << 31);
            const bool begins = place < texts_.size() && (texts_[place] & 0xC0) != 0x80;
            return begins ? texts_.c_str() + place : nullptr;
        }
        return nullptr;
    }

    const std::vector<std::uint32_t> units_;
    const std::string texts_;
};

/// The decoded bytes, or nothing where the text is no base64.
std::optional<std::string> from_base64(std::string_view text) {
    const auto digit = [](char c) {
        if (c >= 'A' && c <= 'Z') return c - 'A';
        if (c >= 'a' && c <= 'z') return c - 'a' + 26;
        if (c >= '0' && c <= '9') return c - '0' + 52;
        return c == '+' ? 62 : c == '/' ? 63 : -1;
    };
    std::string out;
    while (text.ends_with('=')) text.remove_suffix(1);
    std::uint32_t bits = 0;
    int count = 0;
    for (const char c : text) {
        const int value = digit(c);
        if (value < 0) return std::nullopt;
        bits = bits << 6 | static_cast<std::uint32_t>(value);
        count += 6;
        if (count < 8) continue;
        count -= 8;
        out += static_cast<char>(bits >> count & 0xFF);
    }
    return out;
}

}  // namespace

Result<Normalizer::Step> character_map(const JsonPlace& place) {
    HR_ASSIGN(const std::string coded, place.text("precompiled_charsmap"));
    const std::optional<std::string> bytes = from_base64(coded);
    const auto damaged = [&](std::string_view what) {
        return invalid("{}.precompiled_charsmap {}: the file is damaged", place.path(), what);
    };
    if (!bytes) return damaged("is no base64");
    std::uint32_t size = 0;
    if (bytes->size() < sizeof(size)) return damaged("is too short");
    std::memcpy(&size, bytes->data(), sizeof(size));
    if (size % 4 != 0 || size > bytes->size() - sizeof(size)) return damaged("ends within its tree");
    std::vector<std::uint32_t> units(size / 4);
    std::memcpy(units.data(), bytes->data() + sizeof(size), size);
    std::string texts = bytes->substr(sizeof(size) + size);
    if (find_invalid_utf8(texts)) return damaged("has texts that are no UTF-8");
    if (!texts.empty() && texts.back() != '\0') texts += '\0';
    const auto map = std::make_shared<const CharacterMap>(std::move(units), std::move(texts));
    return Normalizer::Step([map](std::string_view text) { return (*map)(text); });
}

}  // namespace headrace::text
