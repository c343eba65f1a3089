#include "fuzz/message_mutator.h"

#include <optional>
#include <vector>

namespace headrace::fuzz {
namespace {

constexpr int kDeepest = 12;

struct WireField {
    std::uint64_t key = 0;
    std::uint64_t number = 0;  ///< of a varint
    std::string bytes;         ///< of everything else, without a length

    std::uint64_t form() const { return key & 7; }
};

std::optional<std::uint64_t> take_number(std::string_view& rest) {
    std::uint64_t value = 0;
    for (int shift = 0; shift < 64 && !rest.empty(); shift += 7) {
        const auto byte = static_cast<unsigned char>(rest.front());
        rest.remove_prefix(1);
        value |= static_cast<std::uint64_t>(byte & 0x7F) << shift;
        if (byte < 0x80) return value;
    }
    return std::nullopt;
}

void put_number(std::string& into, std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) into += static_cast<char>(value | 0x80);
    into += static_cast<char>(value);
}

std::optional<std::vector<WireField>> fields_of(std::string_view rest) {
    std::vector<WireField> fields;
    while (!rest.empty()) {
        const auto key = take_number(rest);
        if (!key || *key >> 3 == 0 || *key >> 3 > 100) return std::nullopt;
        WireField field{.key = *key, .bytes = {}};
        std::optional<std::uint64_t> size;
        switch (field.form()) {
            case 0: {
                const auto number = take_number(rest);
                if (!number) return std::nullopt;
                field.number = *number;
                fields.push_back(std::move(field));
                continue;
            }
            case 1: size = 8; break;
            case 2: size = take_number(rest); break;
            case 5: size = 4; break;
            default: return std::nullopt;
        }
        if (!size || *size > rest.size()) return std::nullopt;
        field.bytes = rest.substr(0, *size);
        rest.remove_prefix(*size);
        fields.push_back(std::move(field));
    }
    return fields;
}

std::string message_of(const std::vector<WireField>& fields) {
    std::string message;
    for (const WireField& field : fields) {
        put_number(message, field.key);
        if (field.form() == 0) put_number(message, field.number);
        if (field.form() == 2) put_number(message, field.bytes.size());
        message += field.bytes;
    }
    return message;
}

/// A field of the other message that has the same key, most of the time.
const WireField* like(const WireField& field, const std::vector<WireField>& others, Mutator& mutator) {
    if (others.empty()) return nullptr;
    std::vector<const WireField*> same;
    for (const WireField& other : others)
        if (other.key == field.key) same.push_back(&other);
    if (same.empty() || mutator.below(8) == 0) return &others[mutator.below(others.size())];
    return same[mutator.below(same.size())];
}

void change_number(WireField& field, Mutator& mutator) {
    constexpr std::uint64_t kNumbers[] = {
        0, 1, 2, 3, 4, 5, 6, 7, 8, 13, 16, 32, 255, 0xFFFF, 1u << 24u, 0x7FFFFFFF, 1ull << 40, INT64_MAX};
    field.number = kNumbers[mutator.below(std::size(kNumbers))];
    if (mutator.below(3) == 0) field.number = ~field.number + mutator.below(2);  // the negative ones
}

std::string changed(const std::string& message, const std::string& other, Mutator& mutator, int depth);

/// Changes one field, or what lies within it.
void change_field(WireField& field, const WireField* other, Mutator& mutator, int depth) {
    if (other && mutator.below(6) == 0) {
        field = *other;
        return;
    }
    if (field.form() == 0) return change_number(field, mutator);
    static const std::string kNothing;
    field.bytes = changed(field.bytes, other ? other->bytes : kNothing, mutator, depth + 1);
}

std::string changed(const std::string& message, const std::string& other, Mutator& mutator, int depth) {
    auto fields = fields_of(message);
    if (!fields || fields->empty() || depth > kDeepest) return mutator.mutate(message, other, {});
    const auto others = fields_of(other).value_or(std::vector<WireField>());
    const std::size_t at = mutator.below(fields->size());
    const auto place = fields->begin() + static_cast<std::ptrdiff_t>(at);
    const WireField* found = like(*place, others, mutator);
    switch (mutator.below(20)) {
        case 0: fields->erase(place); break;
        case 1: fields->insert(place, *place); break;
        case 2: std::swap(*place, (*fields)[mutator.below(fields->size())]); break;
        case 3:
            if (found) fields->insert(place, *found);
            break;
        case 4: place->key = (1 + mutator.below(20)) << 3 | place->form(); break;
        default: change_field(*place, found, mutator, depth);
    }
    return message_of(*fields);
}

}  // namespace

std::string mutate_message(const std::string& message, const std::string& other, Mutator& mutator) {
    return changed(message, other, mutator, 0);
}

}  // namespace headrace::fuzz
