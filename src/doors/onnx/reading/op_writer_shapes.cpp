#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>

#include "doors/onnx/reading/op_writer.h"
#include "ir/expression_words.h"

namespace headrace::onnx {
namespace {

/// The end of a name that begins there, within quotes or not; `at` where none does.
std::size_t name_end(const std::string& text, std::size_t at) {
    const auto is_letter = [](unsigned char c) { return c == '_' || std::isalpha(c) != 0 || c >= 0x80; };
    const auto goes_on = [&](unsigned char c) {
        return is_letter(c) || std::isdigit(c) != 0 || c == '.' || c == ':';
    };
    if (text[at] == '\'') {
        std::size_t end = at + 1;
        while (end < text.size() && (text[end] != '\'' || (end + 1 < text.size() && text[end + 1] == '\'')))
            end += text[end] == '\'' ? 2 : 1;
        return std::min(end + 1, text.size());
    }
    if (!is_letter(static_cast<unsigned char>(text[at]))) return at;
    std::size_t end = at;
    while (end < text.size() && (goes_on(static_cast<unsigned char>(text[end])) ||
                                 (text[end] == '-' && end + 1 < text.size() &&
                                  is_letter(static_cast<unsigned char>(text[end + 1])))))
        ++end;
    return end;
}

/// However long the names of dimensions are, each counts as four characters; a function's name as it is.
std::size_t counted_length(const std::string& text) {
    std::size_t length = 0;
    for (std::size_t i = 0; i < text.size();) {
        const std::size_t end = name_end(text, i);
        const bool is_function = end < text.size() && text[end] == '(';
        length += end > i && !is_function ? 4 : std::max<std::size_t>(end - i, 1);
        i = std::max(end, i + 1);
    }
    return length;
}

/// As a shell reads one word.
std::string shell_word(const std::string& text) {
    const bool is_plain = std::ranges::all_of(text, [](unsigned char c) {
        return std::isalnum(c) ||
               std::string_view("@%+=:,./-_").find(static_cast<char>(c)) != std::string_view::npos;
    });
    if (is_plain && !text.empty()) return text;
    std::string word = "'";
    for (const char c : text) word += c == '\'' ? std::string("'\"'\"'") : std::string(1, c);
    return word + "'";
}

/// The names of an extent's symbols, as the model has them.
std::vector<std::string> names_in(const Dim& d) {
    std::vector<std::string> names = d.expression().names();
    for (std::string& name : names) name = name_spelled(name);
    return names;
}

}  // namespace

Operand OpWriter::input(const std::string& name, ElementType type, const Shape& shape) {
    if (static_cast<std::int64_t>(shape.size()) > kMostDimensions)
        throw Refused(
            fmt::format("it has {} dimensions; {} are the most. Export the model with some of them "
                        "merged",
                        shape.size(), kMostDimensions));
    const DType stored = type == ElementType::bf16 ? DType::f32 : stored_as(type);
    for (const Dim& d : shape)
        for (const std::string& symbol : d.expression().names()) {
            const std::string own = name_spelled(symbol);
            const bool is_made = shared_.symbols.contains(symbol);  // for what a loop carries
            if (!is_made && std::ranges::find(dimensions, own) == dimensions.end()) dimensions.push_back(own);
        }
    const ValueId id = declare(name, stored, shape);
    return cast(made(id, element_type(stored)), type);
}

ValueId OpWriter::declare(const std::string& name, DType stored, const Shape& shape) {
    for (const Dim& d : shape)
        if (d.is_symbolic() && d.expression().names() == std::vector{d.text()})
            shared_.symbols.try_emplace(d.text(), d);
    return value_or_refuse(builder_.input(name, {stored, shape}));
}

Shape OpWriter::shape(const Operand& x) const {
    if (x->known) return {x->known->shape.begin(), x->known->shape.end()};
    return shared_.ranges.narrowed(x->home->builder_.type(x->id).shape);
}

int OpWriter::rank(const Operand& x) const {
    return x->known ? static_cast<int>(x->known->shape.size()) : x->home->builder_.type(x->id).rank();
}

int OpWriter::axis(const Operand& x, std::int64_t axis) const {
    const std::int64_t count = rank(x), most = std::max<std::int64_t>(count, 1);
    invalid_if(axis < -most || axis >= most, "axis {} is outside the {} dimensions of the input", axis,
               count);
    return static_cast<int>(axis < 0 ? axis + most : axis);
}

Dim OpWriter::fresh(const std::string& word) {
    std::size_t number = shared_.symbols.size();
    while (shared_.symbols.contains(fmt::format("{}{}", word, number))) ++number;
    const std::string name = fmt::format("{}{}", word, number);
    shared_.made.insert(name);
    return shared_.symbols.emplace(name, Dim::symbolic(name, 0)).first->second;
}

bool OpWriter::is_made(const Dim& d) const {
    return d.is_symbolic() && std::ranges::all_of(d.expression().names(), [&](const std::string& name) {
               return shared_.made.contains(name);
           });
}

Dim OpWriter::counted() {
    Dim extent = fresh("count");
    counts.insert(extent.text());
    return extent;
}

Refused OpWriter::unknown(const Dim& d, std::string_view what) const {
    const std::vector<std::string> own = names_in(d);
    std::vector<std::string> names;
    for (const std::string& name : dimensions)
        if (std::ranges::find(own, name) != own.end()) names.push_back(name);
    if (names.empty()) names = dimensions;
    const std::string reason_end = "known only at run time, and this operator cannot keep it";
    if (names.empty()) return Refused(fmt::format("{} is '{}', {}", what, d.str(), reason_end));
    std::vector<std::string> fixes, options;
    for (const std::string& name : names) {
        fixes.push_back(fmt::format("'{}': 1", name));
        options.push_back("--dimension " + shell_word(name + "=1"));
    }
    const bool is_named = d.expression().names() == std::vector{d.str()} &&
                          std::ranges::find(dimensions, d.name()) != dimensions.end();
    return Refused(
        fmt::format("{} is {}'{}', {}", what, is_named ? "dimension " : "", is_named ? d.name() : d.str(),
                    reason_end),
        fmt::format("Fix it when the model is read: dimensions={{{}}} ({}), with the number you need",
                    fmt::join(fixes, ", "), fmt::join(options, " ")));
}

std::int64_t OpWriter::fixed(const Dim& d, std::string_view what) const {
    if (d.is_symbolic()) throw unknown(d, what);
    return d.size();
}

std::vector<std::int64_t> OpWriter::fixed_shape(const Operand& x, std::string_view what) const {
    std::vector<std::int64_t> sizes;
    for (const Dim& d : shape(x)) sizes.push_back(fixed(d, what));
    return sizes;
}

bool OpWriter::has_shape(const Operand& x, const Shape& wanted) const {
    return std::ranges::equal(shape(x), wanted, &is_same);
}

bool OpWriter::is_short(const std::vector<Dim>& extents) {
    std::size_t longest = 0;
    for (const Dim& d : extents) longest = std::max(longest, counted_length(d.str()));
    Patience& patience = shared_.patience;
    patience.was_needed |= longest > Patience::kShort;
    return longest <= patience.longest;
}

Dim OpWriter::at_least_0(const Dim& d) {
    if (d.is_symbolic() && (d.min_size() >= 0 || !is_short({d}))) return d;
    return largest({0, d});
}

void OpWriter::check_extent(std::int64_t count) {
    if (count > kLargestExtent)
        throw Refused(fmt::format("{} places along an extent would be laid out; {} are the most", count,
                                  kLargestExtent),
                      "Export the model with a smaller extent here");
}

}  // namespace headrace::onnx
