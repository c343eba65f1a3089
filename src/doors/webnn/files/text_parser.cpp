#include "doors/webnn/files/text_parser.h"

#include "base/utf8.h"
#include "doors/webnn/files/text_lexer.h"
#include "doors/webnn/state.h"

namespace headrace::webnn {
namespace {

class TextParser {
public:
    explicit TextParser(std::string_view text) : text_(text), lexer_(text) {}

    Result<GraphSource> parse() {
        HR_TRY(advance());
        HR_TRY(header());
        while (!token_.is('}')) HR_TRY(block());
        HR_TRY(advance());
        if (token_.kind != Token::Kind::end) return expected("nothing after the graph's closing '}'");
        return std::move(source_);
    }

private:
    Status advance() {
        HR_ASSIGN(token_, lexer_.next());
        return success();
    }
    Error fail_at(std::size_t at, const Error& error) const { return error_at(text_, at, error); }
    Error expected(std::string_view what) const {
        return fail_at(token_.at, invalid("expected {}, found {}", what, token_.str()));
    }
    Status punctuation(char c) {
        if (!token_.is(c)) return expected(fmt::format("'{}'", c));
        return advance();
    }
    /// Takes the token if it is `c`.
    Result<bool> accept(char c) {
        if (!token_.is(c)) return false;
        HR_TRY(advance());
        return true;
    }
    Result<std::string> identifier(std::string_view what) {
        if (token_.kind != Token::Kind::identifier) return expected(what);
        std::string name(token_.text);
        HR_TRY(advance());
        return name;
    }
    Result<std::string> string(std::string_view what) {
        if (token_.kind != Token::Kind::string) return expected(what);
        std::string value;
        for (std::size_t i = 0; i < token_.text.size(); ++i) {
            const char next = i + 1 < token_.text.size() ? token_.text[i + 1] : '\0';
            if (token_.text[i] == '\\' && (next == '"' || next == '\\')) ++i;
            value += token_.text[i];
        }
        HR_TRY(advance());
        return value;
    }
    Result<FileValue> number(std::string_view what) {
        if (token_.kind != Token::Kind::number) return expected(what);
        auto value = parse_number(token_.text);
        if (!value.ok()) return fail_at(token_.at, value.error());
        HR_TRY(advance());
        return value;
    }
    /// Items and commas up to `close`; a comma before `close` is allowed.
    template <class Item>
    Status list(char close, Item&& item) {
        while (!token_.is(close)) {
            HR_TRY(item());
            HR_ASSIGN(const bool more, accept(','));
            if (!more && !token_.is(close)) return expected(fmt::format("',' or '{}'", close));
        }
        return advance();
    }

    Status header();
    Status block();
    Status input();
    Status constant();
    Status annotation(SourceConstant& constant);
    Status output();
    Status statement();
    Status call(SourceNode& node);
    Status argument(SourceNode& node);
    Result<MLOperandDescriptor> type();
    Result<MLDimension> dimension();
    Result<FileValue> value(int depth);
    Result<FileValue> array(int depth);
    Result<FileValue> object(int depth);

    std::string_view text_;
    TextLexer lexer_;
    Token token_;
    GraphSource source_;
};

Status TextParser::header() {
    if (!token_.is("webnn_graph")) return expected("'webnn_graph', with which a .webnn file starts");
    HR_TRY(advance());
    HR_ASSIGN(source_.name, string("the graph's name in quotes"));
    const Token version = token_;
    if (version.kind != Token::Kind::identifier || version.text[0] != 'v')
        return expected("a version, v1 or v2");
    HR_TRY(advance());
    std::string_view digits = version.text.substr(1);
    if (digits.empty()) {  // the grammar allows a space after the v
        digits = token_.text;
        HR_TRY(advance());
    }
    if (digits != "1" && digits != "2")
        return fail_at(version.at,
                       invalid("version {} of the format; this build reads v1 and v2", excerpt(digits)));
    HR_ASSIGN(const bool annotated, accept('@'));
    // The annotation tells tools to leave the numbers as they are, which is what happens anyway.
    if (annotated && !token_.is("quantized")) return expected("'quantized'");
    if (annotated) HR_TRY(advance());
    return punctuation('{');
}

Status TextParser::block() {
    const Token name = token_;
    Status (TextParser::*item)() = name.is("inputs")    ? &TextParser::input
                                   : name.is("consts")  ? &TextParser::constant
                                   : name.is("nodes")   ? &TextParser::statement
                                   : name.is("outputs") ? &TextParser::output
                                                        : nullptr;
    if (!item) return expected("inputs, consts, nodes, outputs or '}'");
    HR_TRY(advance());
    HR_TRY(punctuation('{'));
    while (!token_.is('}')) HR_TRY((this->*item)());
    return advance();
}

Result<MLDimension> TextParser::dimension() {
    if (token_.is("dyn")) {
        const std::size_t at = token_.at;
        HR_TRY(advance());
        HR_TRY(punctuation('('));
        HR_ASSIGN(std::string name, string("the dimension's name in quotes"));
        HR_TRY(punctuation(','));
        HR_ASSIGN(FileValue most, number("the dimension's largest extent"));
        HR_TRY(punctuation(')'));
        auto d = to_dimension({FileValue::Object{{"name", {std::move(name)}}, {"maxSize", std::move(most)}}});
        if (!d.ok()) return fail_at(at, d.error());
        return d;
    }
    const std::size_t at = token_.at;
    HR_ASSIGN(const FileValue extent, number("an extent or dyn(\"name\", largest)"));
    auto d = to_dimension(extent);
    if (!d.ok()) return fail_at(at, d.error());
    return d;
}

Result<MLOperandDescriptor> TextParser::type() {
    if (token_.kind != Token::Kind::identifier) return expected("a type such as f32[2, 3]");
    const auto found = find_data_type(token_.text);
    if (!found.ok()) return fail_at(token_.at, found.error());
    HR_TRY(advance());
    HR_TRY(punctuation('['));
    MLOperandDescriptor descriptor{.dataType = found.value(), .shape = {}};
    HR_TRY(list(']', [&]() -> Status {
        HR_ASSIGN(MLDimension d, dimension());
        descriptor.shape.push_back(std::move(d));
        return success();
    }));
    return descriptor;
}

Status TextParser::input() {
    SourceInput input{.at = token_.at};
    HR_ASSIGN(input.name, identifier("the name of an input"));
    HR_TRY(punctuation(':'));
    HR_ASSIGN(input.type, type());
    source_.inputs.push_back(std::move(input));
    return punctuation(';');
}

Status TextParser::constant() {
    SourceConstant constant{.at = token_.at};
    HR_ASSIGN(constant.name, identifier("the name of a constant"));
    constant.key = constant.name;
    HR_TRY(punctuation(':'));
    HR_ASSIGN(constant.type, type());
    bool annotated = false;
    while (token_.is('@')) {
        if (annotated) return expected("';': a constant has one @weights, @scalar or @bytes");
        annotated = true;
        HR_TRY(advance());
        HR_TRY(annotation(constant));
    }
    source_.constants.push_back(std::move(constant));
    return punctuation(';');
}

Status TextParser::annotation(SourceConstant& constant) {
    const Token name = token_;
    if (!name.is("weights") && !name.is("scalar") && !name.is("bytes"))
        return expected("weights, scalar or bytes after '@'");
    HR_TRY(advance());
    HR_TRY(punctuation('('));
    if (name.is("weights")) {
        HR_ASSIGN(constant.key, string("a key of the weights' manifest in quotes"));
    } else if (name.is("scalar")) {
        constant.kind = SourceConstant::Kind::scalar;
        HR_ASSIGN(constant.value, number("a number"));
    } else {
        constant.kind = SourceConstant::Kind::bytes;
        const std::size_t at = token_.at;
        HR_TRY(punctuation('['));
        HR_ASSIGN(const FileValue list, array(0));
        auto bytes = to_bytes(list);
        if (!bytes.ok()) return fail_at(at, bytes.error());
        constant.bytes = std::move(bytes).value();
    }
    return punctuation(')');
}

Status TextParser::output() {
    SourceOutput output{.at = token_.at};
    HR_ASSIGN(output.name, identifier("the name of an output"));
    output.value = output.name;
    source_.outputs.push_back(std::move(output));
    // Both separators are optional, as in the format's own grammar.
    return token_.is(',') || token_.is(';') ? advance() : success();
}

Status TextParser::statement() {
    SourceNode node{.at = token_.at};
    HR_ASSIGN(node.takes_all, accept('['));
    if (node.takes_all) {
        HR_TRY(list(']', [&]() -> Status {
            HR_ASSIGN(std::string name, identifier("the name of a result"));
            node.results.push_back(std::move(name));
            return success();
        }));
        if (node.results.empty())
            return fail_at(node.at, invalid("name at least one result between '[' and ']'"));
    } else {
        HR_ASSIGN(std::string name, identifier("the name of a result"));
        node.results.push_back(std::move(name));
    }
    HR_TRY(punctuation('='));
    HR_ASSIGN(std::string name, identifier("an operator and its arguments, or the name of a value"));
    if (token_.is('(')) {
        node.op = std::move(name);
        HR_TRY(call(node));
    } else {
        node.arguments.push_back({std::move(name)});
    }
    source_.nodes.push_back(std::move(node));
    return punctuation(';');
}

Status TextParser::call(SourceNode& node) {
    HR_TRY(advance());
    return list(')', [&] { return argument(node); });
}

Status TextParser::argument(SourceNode& node) {
    const Token first = token_;
    HR_ASSIGN(FileValue given, value(0));
    HR_ASSIGN(const bool named, accept('='));
    if (named) {
        if (first.kind != Token::Kind::identifier)
            return fail_at(first.at, invalid("{} is not the name of an option", first.str()));
        HR_ASSIGN(given, value(0));
        node.options.push_back({std::string(first.text), std::move(given), first.at});
        return success();
    }
    if (!node.options.empty())
        return fail_at(first.at, invalid("{} comes after the option '{}'; options come last", first.str(),
                                         excerpt(node.options.back().name)));
    node.arguments.push_back(std::move(given));
    return success();
}

Result<FileValue> TextParser::value(int depth) {
    const Token token = token_;
    if (depth > kMostNesting)
        return fail_at(token.at, invalid("values are nested more than {} deep", kMostNesting));
    if (token.is('[')) {
        HR_TRY(advance());
        return array(depth);
    }
    if (token.is('{')) {
        HR_TRY(advance());
        return object(depth);
    }
    if (token.kind == Token::Kind::number) return number("a number");
    if (token.kind == Token::Kind::string) {
        HR_ASSIGN(std::string text, string("a string"));
        return FileValue{std::move(text)};
    }
    HR_ASSIGN(std::string word, identifier("a value"));
    if (word == "null") return FileValue{};
    if (word == "true" || word == "false") return FileValue{word == "true"};
    return FileValue{std::move(word)};
}

Result<FileValue> TextParser::array(int depth) {
    FileValue elements{FileValue::Integers{}};
    HR_TRY(list(']', [&]() -> Status {
        HR_ASSIGN(FileValue element, value(depth + 1));
        append_element(elements, std::move(element));
        return success();
    }));
    return elements;
}

Result<FileValue> TextParser::object(int depth) {
    FileValue::Object members;
    HR_TRY(list('}', [&]() -> Status {
        std::string key;
        if (token_.kind == Token::Kind::string) {
            HR_ASSIGN(key, string("a key"));
        } else {
            HR_ASSIGN(key, identifier("a key"));
        }
        HR_TRY(punctuation(':'));
        HR_ASSIGN(FileValue member, value(depth + 1));
        members.emplace_back(std::move(key), std::move(member));
        return success();
    }));
    return FileValue{std::move(members)};
}

}  // namespace

Result<GraphSource> parse_text(std::string_view text) {
    if (const auto at = find_invalid_utf8(text))
        return error_at(text, *at,
                        invalid("the byte {:#04x} is not UTF-8", static_cast<unsigned char>(text[*at])));
    HR_ASSIGN(GraphSource source, TextParser(text).parse());
    source.place = [text](const Spot& spot) { return line_and_column(text, spot.at); };
    return source;
}

}  // namespace headrace::webnn
