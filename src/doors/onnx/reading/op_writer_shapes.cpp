#include <fmt/ranges.h>
#include <algorithm>

#include "doors/onnx/reading/op_writer.h"

namespace headrace::onnx {
namespace {

/// However long the names of dimensions are, each counts as four characters; a function's name as it is.
std::size_t counted_length(const std::string& text) {
    const auto is_word = [](unsigned char c) { return c == '_' || std::isalnum(c) != 0 || c >= 0x80; };
    std::size_t length = 0;
    for (std::size_t i = 0; i < text.size();) {
        std::size_t end = i;
        while (end < text.size() && is_word(static_cast<unsigned char>(text[end]))) ++end;
        const bool is_name = end > i && std::isdigit(static_cast<unsigned char>(text[i])) == 0 &&
                             (end == text.size() || text[end] != '(');
        length += is_name ? 4 : std::max<std::size_t>(end - i, 1);
        i = std::max(end, i + 1);
    }
    return length;
}

/// A formula's names and numbers.
std::set<std::string> words_of(const std::string& text) {
    std::set<std::string> words;
    std::string word;
    for (const char c : text + " ") {
        if (std::string_view("-+*/^() ").find(c) == std::string_view::npos) {
            word += c;
        } else if (!word.empty()) {
            words.insert(std::exchange(word, {}));
        }
    }
    return words;
}

}  // namespace

Operand OpWriter::input(const std::string& name, ElementType type, const Shape& shape) {
    if (static_cast<std::int64_t>(shape.size()) > kMostDimensions)
        throw Refused(
            fmt::format("it has {} dimensions; {} are the most. Export the model with some of them "
                        "merged",
                        shape.size(), kMostDimensions));
    const DType stored = type == ElementType::bf16 ? DType::f32 : stored_as(type);
    const ValueId id = declare(name, stored, shape);
    for (const Dim& d : shape)
        for (const std::string& symbol : d.expression().names())
            if (std::ranges::find(dimensions, symbol) == dimensions.end()) dimensions.push_back(symbol);
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
    return shared_.symbols.emplace(name, Dim::symbolic(name, 0)).first->second;
}

Dim OpWriter::counted() {
    Dim extent = fresh("count");
    counts.insert(extent.text());
    return extent;
}

Refused OpWriter::unknown(const Dim& d, std::string_view what) const {
    const std::set<std::string> words = words_of(d.str());
    std::vector<std::string> names;
    for (const std::string& name : dimensions)
        if (words.contains(name) || name == d.str()) names.push_back(name);
    if (names.empty()) names = dimensions;
    std::vector<std::string> fixes, options;
    for (const std::string& name : names) {
        fixes.push_back(fmt::format("'{}': 1", name));
        options.push_back(fmt::format("--dimension {}=1", name));
    }
    const bool is_named = std::ranges::find(dimensions, d.str()) != dimensions.end();
    return Refused(
        fmt::format("{} is {}'{}', known only at run time, and this operator cannot keep it", what,
                    is_named ? "dimension " : "", d.str()),
        fmt::format("Fix it when the model is read: dimensions={{{}}} ({}), with the number you need",
                    fixes.empty() ? "..." : fmt::format("{}", fmt::join(fixes, ", ")),
                    fmt::join(options, " ")));
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
