#include <algorithm>
#include <cctype>
#include <string>

#include "llm/checks/model_metadata.h"

namespace headrace::llm {
namespace {

constexpr std::size_t kMostTemplateBytes = 1u << 20;
constexpr int kMostTemplateLevels = 100;  // of blocks in blocks, and of brackets in one tag
constexpr int kMostWords = 1000;          // in one tag: a chain of operators is a tree as deep as it is long
constexpr int kMostBranches = 500;        // elif of one template

bool in_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

bool is_one_of(std::string_view word, std::initializer_list<std::string_view> words) {
    return std::find(words.begin(), words.end(), word) != words.end();
}

/// The nesting of a template, from its text alone.
class Nesting {
public:
    Status take(std::string_view source) {
        for (std::size_t at = 0; at + 1 < source.size();) {
            if (source[at] != '{') {
                ++at;
            } else if (source[at + 1] == '#') {
                const std::size_t end = source.find("#}", at + 2);
                at = end == std::string_view::npos ? source.size() : end + 2;
            } else if (source[at + 1] == '{' || source[at + 1] == '%') {
                HR_ASSIGN(at, take_tag(source, at + 2, source[at + 1] == '%'));
            } else {
                ++at;
            }
        }
        return success();
    }

private:
    /// From behind a tag's opening; returns the place behind it.
    Result<std::size_t> take_tag(std::string_view source, std::size_t at, bool statement) {
        std::string_view keyword;
        bool assigns = false;
        int words = 0, level = 0;
        while (at < source.size()) {
            const char c = source[at];
            if (level == 0 && (c == '}' || c == '%') && at + 1 < source.size() && source[at + 1] == '}') {
                if (statement) HR_TRY(take_statement(keyword, assigns));
                return at + 2;
            }
            std::size_t end = at + 1;
            if (c == '"' || c == '\'') {
                end = behind_text(source, at);
            } else if (in_word(c)) {
                while (end < source.size() && in_word(source[end])) ++end;
                if (keyword.empty()) keyword = source.substr(at, end - at);
            } else {
                assigns |= c == '=';
                level +=
                    (c == '(' || c == '[' || c == '{') - (level > 0 && (c == ')' || c == ']' || c == '}'));
                if (level > kMostTemplateLevels) return invalid("brackets are nested {} deep", level);
            }
            words += !std::isspace(static_cast<unsigned char>(c));
            if (words > kMostWords) return invalid("a tag has more than {} words and signs", kMostWords);
            at = end;
        }
        return at;
    }

    static std::size_t behind_text(std::string_view source, std::size_t at) {
        const char quote = source[at++];
        while (at < source.size() && source[at] != quote) at += source[at] == '\\' ? 2 : 1;
        return std::min(at + 1, source.size());
    }

    Status take_statement(std::string_view keyword, bool assigns) {
        const bool begins =
            is_one_of(keyword, {"if", "for", "macro", "call", "filter"}) || (keyword == "set" && !assigns);
        blocks_ = std::max(0, blocks_ + begins - keyword.starts_with("end"));
        branches_ += keyword == "elif";
        if (blocks_ > kMostTemplateLevels) return invalid("blocks are nested {} deep", blocks_);
        if (branches_ > kMostBranches) return invalid("it has more than {} branches", kMostBranches);
        return success();
    }

    int blocks_ = 0, branches_ = 0;
};

}  // namespace

Status check_template(std::string_view source) {
    if (source.size() > kMostTemplateBytes)
        return invalid("a template of {} bytes, and {} are allowed", source.size(), kMostTemplateBytes);
    return Nesting().take(source);
}

}  // namespace headrace::llm
