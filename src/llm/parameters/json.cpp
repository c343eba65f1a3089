#include "llm/parameters/json.h"

#include <algorithm>
#include <iterator>
#include <unordered_set>

#include "base/utf8.h"

namespace headrace::llm {
namespace {

std::string position(std::string_view text, std::size_t offset) {
    const std::string_view before = text.substr(0, std::min(offset, text.size()));
    const auto line = 1 + std::count(before.begin(), before.end(), '\n');
    const std::size_t start = before.rfind('\n') + 1;  // npos + 1 is 0
    return fmt::format("line {}, column {}", line, before.size() - start + 1);
}

/// Tells where the parser is, which its callbacks do not.
struct Cursor {
    using iterator_category = std::input_iterator_tag;
    using value_type = char;
    using difference_type = std::ptrdiff_t;
    using pointer = const char*;
    using reference = const char&;

    const char* at = nullptr;
    const char** furthest = nullptr;

    const char& operator*() const { return *at; }
    Cursor& operator++() {
        *furthest = ++at;
        return *this;
    }
    Cursor operator++(int) {
        const Cursor before = *this;
        ++*this;
        return before;
    }
    bool operator==(const Cursor& other) const { return at == other.at; }
};

std::string cut(std::string text, std::size_t length) {
    if (text.size() <= length) return text;
    text.resize(length);
    if (const auto broken = find_invalid_utf8(text)) text.resize(*broken);
    return text + "...";
}

/// Builds the value while refusing what a tree would hide or what would exhaust memory.
class TreeBuilder : public nlohmann::json_sax<Json> {
public:
    TreeBuilder(std::string_view text, const char** cursor) : text_(text), cursor_(cursor) {}

    Json root;
    std::string error;

    bool null() override { return add(nullptr); }
    bool boolean(bool value) override { return add(value); }
    bool number_integer(number_integer_t value) override { return add(value); }
    bool number_unsigned(number_unsigned_t value) override { return add(value); }
    bool number_float(number_float_t value, const string_t&) override { return add(value); }
    bool string(string_t& value) override { return add(std::move(value)); }
    bool binary(binary_t&) override { return fail("binary data is no JSON"); }
    bool start_object(std::size_t) override { return open(Json::object()); }
    bool start_array(std::size_t) override { return open(Json::array()); }
    bool end_object() override { return close(); }
    bool end_array() override { return close(); }

    bool key(string_t& name) override {
        if (!keys_.back().insert(name).second)
            return fail(fmt::format("'{}' is given twice in one object", cut(name, 60)));
        key_ = std::move(name);
        return true;
    }

    bool parse_error(std::size_t offset, const std::string&, const Json::exception& exception) override {
        std::string_view what = exception.what();
        // "[json.exception.parse_error.101] parse error at line 1, column 2: syntax error while ..."
        if (const auto end = what.find("] "); end != what.npos) what.remove_prefix(end + 2);
        if (const auto syntax = what.find("syntax error"); syntax != what.npos) what.remove_prefix(syntax);
        error =
            fmt::format("{}: {}", position(text_, offset > 0 ? offset - 1 : 0), cut(std::string(what), 200));
        return false;
    }

private:
    bool fail(const std::string& message) {
        const auto offset = static_cast<std::size_t>(*cursor_ - text_.data());
        error = fmt::format("{}: {}", position(text_, offset > 0 ? offset - 1 : 0), message);
        return false;
    }

    bool add(Json value) {
        if (open_.empty()) {
            root = std::move(value);
        } else if (open_.back()->is_array()) {
            open_.back()->push_back(std::move(value));
        } else {
            // The base's own lookup is linear; keys_ has made sure that the key is new.
            auto& members = open_.back()->get_ref<Json::object_t&>();
            static_cast<Json::object_t::Container&>(members).emplace_back(std::move(key_), std::move(value));
        }
        return true;
    }

    bool open(Json value) {
        if (open_.size() == kMaxJsonDepth)
            return fail(fmt::format("arrays and objects are nested deeper than {}", kMaxJsonDepth));
        add(std::move(value));
        Json* added = &root;
        if (!open_.empty())
            added = open_.back()->is_array() ? &open_.back()->back()
                                             : &open_.back()->get_ref<Json::object_t&>().back().second;
        open_.push_back(added);
        keys_.emplace_back();
        return true;
    }

    bool close() {
        open_.pop_back();
        keys_.pop_back();
        return true;
    }

    std::string_view text_;
    const char** cursor_;
    std::vector<Json*> open_;
    std::vector<std::unordered_set<std::string>> keys_;
    std::string key_;
};

}  // namespace

Result<Json> parse_json(std::string_view text, std::string_view what) {
    if (text.size() > kMaxJsonBytes)
        return invalid("{}: {} bytes are given; at most {} are read", what, text.size(), kMaxJsonBytes);
    if (const auto broken = find_invalid_utf8(text))
        return invalid("{}: {}: byte 0x{:02x} is no UTF-8", what, position(text, *broken),
                       static_cast<unsigned char>(text[*broken]));
    const char* cursor = text.data();
    TreeBuilder builder(text, &cursor);
    const Cursor first{text.data(), &cursor}, last{text.data() + text.size(), &cursor};
    if (!Json::sax_parse(first, last, &builder)) return invalid("{}: {}", what, builder.error);
    return std::move(builder.root);
}

Result<Json> parse_object(std::string_view text) {
    constexpr std::string_view kWhat = "the parameters are not valid JSON";
    while (!text.empty() && text.back() == '\0') text.remove_suffix(1);
    const std::size_t start = text.find_first_not_of(" \t\r\n");
    if (start == text.npos) return Json(Json::object());
    HR_ASSIGN(Json value, parse_json(text, kWhat));
    if (!value.is_object())
        return invalid(
            "the parameters are of the type {} ({}); they must be a JSON object such as {{\"temp\": 0.7}}",
            value.type_name(), position(text, start));
    return value;
}

}  // namespace headrace::llm
