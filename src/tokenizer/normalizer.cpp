#include "tokenizer/normalizer.h"

#include "tokenizer/unicode.h"

namespace headrace::text {
namespace {

bool is_chinese(char32_t c) {
    const auto within = [c](char32_t first, char32_t last) { return c >= first && c <= last; };
    return within(0x4E00, 0x9FFF) || within(0x3400, 0x4DBF) || within(0x20000, 0x2A6DF) ||
           within(0x2A700, 0x2B73F) || within(0x2B740, 0x2B81F) || within(0x2B920, 0x2CEAF) ||
           within(0xF900, 0xFAFF) || within(0x2F800, 0x2FA1F);
}

template <class Use>
std::string each_character(std::string_view text, const Use& use) {
    std::string out;
    out.reserve(text.size() + 8);
    for (std::size_t at = 0; at < text.size();) use(out, next_character(text, at));
    return out;
}

std::string lowercase(std::string_view text) { return each_character(text, append_lowercase); }

std::string without(std::string_view text, std::uint32_t any) {
    return each_character(text, [any](std::string& out, char32_t c) {
        if (!is(c, any)) append(out, c);
    });
}

struct BertOptions {
    bool cleans = true, chinese = true, strips = true, lowers = true;

    std::string operator()(std::string_view text) const {
        std::string out = each_character(text, [this](std::string& to, char32_t c) {
            const std::uint32_t known = properties_of(c);
            if (cleans && (known & kBertRemoved)) return;
            const bool is_alone = chinese && c >= 0x3400 && is_chinese(c);
            if (is_alone) to += ' ';
            append(to, cleans && (known & kSpace) ? U' ' : c);
            if (is_alone) to += ' ';
        });
        if (strips) out = without(normal_form(out, NormalForm::nfd), kNonspacingMark);
        return lowers ? lowercase(out) : out;
    }
};

Result<Normalizer::Step> read_bert(const JsonPlace& place) {
    BertOptions options;
    HR_ASSIGN(options.cleans, place.flag("clean_text", true));
    HR_ASSIGN(options.chinese, place.flag("handle_chinese_chars", true));
    HR_ASSIGN(options.lowers, place.flag("lowercase", true));
    HR_ASSIGN(options.strips, place.flag("strip_accents", options.lowers));
    return Normalizer::Step(options);
}

std::string stripped(std::string_view text, bool left, bool right) {
    while (left && !text.empty()) {
        std::size_t at = 0;
        if (!is(next_character(text, at), kSpace)) break;
        text.remove_prefix(at);
    }
    while (right && !text.empty()) {
        std::size_t at = previous_character(text, text.size());
        const std::size_t begin = at;
        if (!is(next_character(text, at), kSpace)) break;
        text.remove_suffix(text.size() - begin);
    }
    return std::string(text);
}

Result<Normalizer::Step> read_strip(const JsonPlace& place) {
    HR_ASSIGN(const bool left, place.flag("strip_left", true));
    HR_ASSIGN(const bool right, place.flag("strip_right", true));
    return Normalizer::Step([=](std::string_view text) { return stripped(text, left, right); });
}

std::string replaced(std::string_view text, std::string_view what, std::string_view with) {
    std::string out;
    for (;;) {
        const std::size_t at = text.find(what);
        out += text.substr(0, at);
        if (at == std::string_view::npos) return out;
        out += with;
        text.remove_prefix(at + what.size());
    }
}

/// Replaces two and more spaces in a row, as sentencepiece's files say.
std::string spaces_replaced(std::string_view text, std::string_view with) {
    std::string out;
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t end = std::min(text.find_first_not_of(' ', at), text.size());
        if (end - at >= 2)
            out += with;
        else
            out += text.substr(at, std::max<std::size_t>(end - at, 1));
        at = std::max(end, at + 1);
    }
    return out;
}

Result<Normalizer::Step> read_replace(const JsonPlace& place) {
    HR_ASSIGN(const JsonPlace pattern, place.object("pattern"));
    HR_ASSIGN(std::string with, place.text("content"));
    if (pattern.find("String")) {
        HR_ASSIGN(std::string what, pattern.text("String"));
        if (what.empty()) return pattern.wrong("String", "a text that is not empty");
        return Normalizer::Step([=](std::string_view text) { return replaced(text, what, with); });
    }
    HR_ASSIGN(const std::string expression, pattern.text("Regex"));
    if (expression != " {2,}")
        return unsupported("{}.Regex is '{:.80}'; of regular expressions ' {{2,}}' is known here",
                           pattern.path(), expression);
    return Normalizer::Step([=](std::string_view text) { return spaces_replaced(text, with); });
}

Normalizer::Step form_step(NormalForm form) {
    return [form](std::string_view text) { return normal_form(text, form); };
}

Result<Normalizer::Step> read_step(const std::string& type, const JsonPlace& place) {
    if (type == "BertNormalizer") return read_bert(place);
    if (type == "Precompiled") return character_map(place);
    if (type == "NFC") return form_step(NormalForm::nfc);
    if (type == "NFD") return form_step(NormalForm::nfd);
    if (type == "NFKC") return form_step(NormalForm::nfkc);
    if (type == "NFKD") return form_step(NormalForm::nfkd);
    if (type == "Lowercase") return Normalizer::Step(lowercase);
    if (type == "StripAccents")
        return Normalizer::Step([](std::string_view text) { return without(text, kCombiningMark); });
    if (type == "Strip") return read_strip(place);
    if (type == "Replace") return read_replace(place);
    return unsupported(
        "{}: the normaliser '{:.60}' is not known here. Known are BertNormalizer, Precompiled, NFC, NFD, "
        "NFKC, "
        "NFKD, Lowercase, StripAccents, Strip, Replace and Sequence of these; a GGUF file of the model may "
        "do "
        "instead",
        place.path(), type);
}

}  // namespace

Result<Normalizer> Normalizer::read(const JsonPlace& place) {
    Normalizer made;
    HR_TRY(made.add(place, 0));
    return made;
}

Status Normalizer::add(const JsonPlace& place, int depth) {
    HR_ASSIGN(const std::string type, place.type());
    if (type == "Sequence") {
        if (depth == kMostNesting) return invalid("{} is nested too deeply", place.path());
        HR_ASSIGN(const JsonPlace all, place.list("normalizers"));
        for (std::size_t i = 0; i < all.value().size(); ++i) HR_TRY(add(all.entry(i), depth + 1));
        return success();
    }
    HR_ASSIGN(Step step, read_step(type, place));
    steps_.push_back(std::move(step));
    return success();
}

std::string Normalizer::operator()(std::string_view text) const {
    std::string now(text);
    for (const Step& step : steps_) now = step(now);
    return now;
}

}  // namespace headrace::text
