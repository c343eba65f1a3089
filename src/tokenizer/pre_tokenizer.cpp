#include "tokenizer/pre_tokenizer.h"

#include <array>

#include "tokenizer/normalizer.h"
#include "tokenizer/unicode.h"

namespace headrace::text {
namespace {

/// Pieces of characters that are not `removed`; those that are `alone` are pieces of their own.
class KindSplitter : public Splitter {
public:
    KindSplitter(std::uint32_t removed, std::uint32_t alone, bool groups = false)
        : removed_(removed), alone_(alone), groups_(groups) {}

    void split(std::string_view text, const UsePiece& use) const override {
        std::size_t begin = 0;
        bool was_alone = false;
        const auto end_piece = [&](std::size_t end, std::size_t next) {
            if (end > begin) use(text.substr(begin, end - begin));
            begin = next;
        };
        for (std::size_t at = 0; at < text.size();) {
            const std::size_t before = at;
            const std::uint32_t known = properties_of(next_character(text, at));
            const bool is_alone = known & alone_;
            if (known & removed_)
                end_piece(before, at);
            else if (is_alone != was_alone || (is_alone && !groups_))
                end_piece(before, before);
            was_alone = is_alone;
        }
        end_piece(text.size(), text.size());
    }

private:
    const std::uint32_t removed_, alone_;
    const bool groups_;  // those that are alone, together
};

/// \w+|[^\w\s]+
class WordSplitter : public Splitter {
public:
    void split(std::string_view text, const UsePiece& use) const override {
        const auto kind = [](char32_t c) { return is(c, kWord) ? 1 : is(c, kSpace) ? 0 : 2; };
        std::size_t begin = 0;
        int before = 0;
        for (std::size_t at = 0; at <= text.size();) {
            std::size_t behind = at;
            const int now = at < text.size() ? kind(next_character(text, behind)) : 0;
            if (now != before || at == text.size()) {
                if (before != 0) use(text.substr(begin, at - begin));
                begin = at;
            }
            if (at == text.size()) return;
            before = now;
            at = behind;
        }
    }
};

/// sentencepiece's words: spaces become a mark, which begins a word.
class Metaspace : public Splitter {
public:
    Metaspace(std::string mark, bool prepends, bool splits)
        : mark_(std::move(mark)), prepends_(prepends), splits_(splits) {}

    void split(std::string_view text, const UsePiece& use) const override {
        std::string marked;
        marked.reserve(text.size() + text.size() / 2 + mark_.size());
        if (prepends_ && !text.starts_with(mark_) && !text.starts_with(' ')) marked = mark_;
        for (const char c : text)
            if (c == ' ')
                marked += mark_;
            else
                marked += c;
        const std::string_view all = marked;
        for (std::size_t begin = 0; begin < all.size();) {
            const std::size_t next = splits_ ? all.find(mark_, begin + 1) : std::string_view::npos;
            use(all.substr(begin, next - begin));
            begin = std::min(next, all.size());
        }
    }

private:
    const std::string mark_;
    const bool prepends_, splits_;
};

/// GPT-2's: each byte is a character of its own.
class ByteLevel : public Splitter {
public:
    ByteLevel(bool prepends, bool splits) : prepends_(prepends), splits_(splits) {
        // Bytes that show are themselves, and the others follow from U+0100 on.
        char32_t next = 0x100;
        for (std::size_t byte = 0; byte < 256; ++byte) {
            const bool shows = (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte != 0xAD);
            append(characters_[byte], shows ? static_cast<char32_t>(byte) : next++);
        }
    }

    void split(std::string_view text, const UsePiece& use) const override {
        std::string spaced;
        if (prepends_ && !text.starts_with(' ')) text = spaced = fmt::format(" {}", text);
        std::string shown;
        const UsePiece show = [&](std::string_view piece) {
            shown.clear();
            for (const char byte : piece) shown += characters_[static_cast<unsigned char>(byte)];
            use(shown);
        };
        if (splits_)
            split_words({}, text, show);
        else if (!text.empty())
            show(text);
    }

private:
    const bool prepends_, splits_;
    std::array<std::string, 256> characters_;
};

class PatternSplitter : public Splitter {
public:
    explicit PatternSplitter(WordPattern pattern) : pattern_(pattern) {}
    void split(std::string_view text, const UsePiece& use) const override {
        split_words(pattern_, text, use);
    }

private:
    const WordPattern pattern_;
};

using MadeSplitter = Result<std::shared_ptr<const Splitter>>;

template <class T, class... Arguments>
MadeSplitter make_splitter(Arguments&&... arguments) {
    return std::shared_ptr<const Splitter>(std::make_shared<const T>(std::forward<Arguments>(arguments)...));
}

MadeSplitter read_metaspace(const JsonPlace& place) {
    HR_ASSIGN(const std::string mark, place.text("replacement", "\u2581"));
    HR_ASSIGN(const bool adds, place.flag("add_prefix_space", true));
    HR_ASSIGN(const std::string scheme, place.text("prepend_scheme", adds ? "always" : "never"));
    HR_ASSIGN(const bool splits, place.flag("split", true));
    if (mark.empty()) return place.wrong("replacement", "one character");
    if (scheme != "always" && scheme != "never")
        return unsupported("{}.prepend_scheme is '{:.40}'; 'always' and 'never' are known here", place.path(),
                           scheme);
    return make_splitter<Metaspace>(mark, scheme == "always", splits);
}

MadeSplitter read_byte_level(const JsonPlace& place) {
    HR_ASSIGN(const bool prepends, place.flag("add_prefix_space", true));
    HR_ASSIGN(const bool splits, place.flag("use_regex", true));
    return make_splitter<ByteLevel>(prepends, splits);
}

MadeSplitter read_digits(const JsonPlace& place) {
    HR_ASSIGN(const bool single, place.flag("individual_digits", false));
    return make_splitter<KindSplitter>(0u, kNumeric, !single);
}

MadeSplitter read_pattern(const JsonPlace& place) {
    HR_ASSIGN(const JsonPlace pattern, place.object("pattern"));
    HR_ASSIGN(const std::string expression, pattern.text("Regex", ""));
    HR_ASSIGN(const std::string behavior, place.text("behavior", "Isolated"));
    HR_ASSIGN(const bool inverts, place.flag("invert", false));
    const std::optional<WordPattern> known = known_pattern(expression);
    if (!known || behavior != "Isolated" || inverts)
        return unsupported(
            "{}: splitting by '{:.120}' ({}{}) is not known here. Known are the isolated patterns of GPT-2, "
            "Llama 3 and Qwen2; a GGUF file of the model may do instead",
            place.path(), expression, behavior, inverts ? ", inverted" : "");
    return make_splitter<PatternSplitter>(*known);
}

MadeSplitter read_punctuation(const JsonPlace& place) {
    HR_ASSIGN(const std::string behavior, place.text("behavior", "Isolated"));
    if (behavior != "Isolated" && behavior != "Contiguous")
        return unsupported("{}.behavior is '{:.40}'; Isolated and Contiguous are known here", place.path(),
                           behavior);
    return make_splitter<KindSplitter>(0u, kPunctuation, behavior == "Contiguous");
}

MadeSplitter read_splitter(const std::string& type, const JsonPlace& place) {
    if (type == "BertPreTokenizer") return make_splitter<KindSplitter>(kSpace, kBertPunctuation);
    if (type == "WhitespaceSplit") return make_splitter<KindSplitter>(kSpace, 0u);
    if (type == "Whitespace") return make_splitter<WordSplitter>();
    if (type == "Metaspace") return read_metaspace(place);
    if (type == "ByteLevel") return read_byte_level(place);
    if (type == "Digits") return read_digits(place);
    if (type == "Punctuation") return read_punctuation(place);
    if (type == "Split") return read_pattern(place);
    return unsupported(
        "{}: the pre-tokenizer '{:.60}' is not known here. Known are BertPreTokenizer, Whitespace, "
        "WhitespaceSplit, Metaspace, ByteLevel, Digits, Punctuation, Split by three patterns, and Sequence "
        "of "
        "these; a GGUF file of the model may do instead",
        place.path(), type);
}

}  // namespace

Result<PreTokenizer> PreTokenizer::read(const JsonPlace& place) {
    PreTokenizer made;
    HR_TRY(made.add(place, 0));
    return made;
}

Status PreTokenizer::add(const JsonPlace& place, int depth) {
    HR_ASSIGN(const std::string type, place.type());
    if (type == "Sequence") {
        if (depth == kMostNesting) return invalid("{} is nested too deeply", place.path());
        HR_ASSIGN(const JsonPlace all, place.list("pretokenizers"));
        for (std::size_t i = 0; i < all.value().size(); ++i) HR_TRY(add(all.entry(i), depth + 1));
        return success();
    }
    HR_ASSIGN(auto splitter, read_splitter(type, place));
    steps_.push_back(std::move(splitter));
    return success();
}

void PreTokenizer::split_from(std::size_t step, std::string_view text, const UsePiece& use) const {
    if (step == steps_.size()) return text.empty() ? void() : use(text);
    const UsePiece next = [this, step, &use](std::string_view piece) { split_from(step + 1, piece, use); };
    steps_[step]->split(text, step + 1 == steps_.size() ? use : next);
}

}  // namespace headrace::text
