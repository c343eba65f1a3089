#include "headrace/tokenizer.h"

#include <algorithm>

#include "base/utf8.h"
#include "tokenizer/added_tokens.h"
#include "tokenizer/normalizer.h"
#include "tokenizer/pre_tokenizer.h"
#include "tokenizer/template.h"
#include "tokenizer/token_model.h"

namespace headrace {

using namespace text;

namespace {

constexpr std::size_t kMostFileBytes = std::size_t{64} << 20;

using Ids = std::vector<std::int32_t>;

/// What is left of two texts' tokens when the longer one is cut first.
void cut_longest(std::size_t& first, std::size_t& second, std::size_t most) {
    std::size_t& shorter = first <= second ? first : second;
    std::size_t& longer = first <= second ? second : first;
    if (shorter > most)
        longer = shorter;
    else
        longer = std::max(shorter, most - shorter);
    if (shorter + longer > most) {
        shorter = most / 2;
        longer = shorter + most % 2;
    }
}

}  // namespace

struct Tokenizer::Impl {
    enum class Truncation : std::uint8_t { longest_first, only_first, only_second };

    Normalizer normalizer;
    PreTokenizer pre_tokenizer;
    std::shared_ptr<const TokenModel> model;
    AddedTokens added;
    Template special;
    Truncation truncation = Truncation::longest_first;
    bool cuts_left = false;
    std::size_t most_tokens = 0;  // 0: any number
    std::int32_t padding = 0;

    static Result<std::shared_ptr<const Impl>> read(std::string_view json);
    Result<TokenizedText> encode(std::string_view first, const std::string_view* second,
                                 const EncodeOptions& options) const;

private:
    Status read_truncation(const JsonPlace& file);
    Status read_padding(const JsonPlace& file);
    Ids tokens_of(std::string_view text) const;
    Status cut(Ids& first, Ids* second, std::size_t most) const;
    void cut_to(Ids& ids, std::size_t size) const;
};

Result<std::shared_ptr<const Tokenizer::Impl>> Tokenizer::Impl::read(std::string_view json) {
    HR_ASSIGN(const Json parsed, parse_json(json));
    const JsonPlace file(parsed, "");
    if (!file.is_object()) return file.wrong("an object");
    auto made = std::make_shared<Impl>();
    HR_ASSIGN(const JsonPlace model, file.object("model"));
    HR_ASSIGN(made->model, read_model(model));
    if (const auto place = file.find("normalizer")) {
        HR_ASSIGN(made->normalizer, Normalizer::read(*place));
    }
    if (const auto place = file.find("pre_tokenizer")) {
        HR_ASSIGN(made->pre_tokenizer, PreTokenizer::read(*place));
    }
    if (const auto place = file.find("post_processor")) {
        HR_ASSIGN(made->special, Template::read(*place));
    }
    HR_ASSIGN(made->added, AddedTokens::read(file, *made->model, made->normalizer));
    HR_TRY(made->read_truncation(file));
    HR_TRY(made->read_padding(file));
    return std::shared_ptr<const Impl>(std::move(made));
}

Status Tokenizer::Impl::read_truncation(const JsonPlace& file) {
    const auto place = file.find("truncation");
    if (!place) return success();
    HR_ASSIGN(const std::int32_t most, place->number("max_length"));
    HR_ASSIGN(const std::string strategy, place->text("strategy", "LongestFirst"));
    HR_ASSIGN(const std::string direction, place->text("direction", "Right"));
    most_tokens = static_cast<std::size_t>(most);
    cuts_left = direction == "Left";
    if (strategy == "OnlyFirst")
        truncation = Truncation::only_first;
    else if (strategy == "OnlySecond")
        truncation = Truncation::only_second;
    else if (strategy != "LongestFirst")
        return place->wrong("strategy", "LongestFirst, OnlyFirst or OnlySecond");
    return success();
}

Status Tokenizer::Impl::read_padding(const JsonPlace& file) {
    if (const auto place = file.find("padding")) {
        HR_ASSIGN(padding, place->number("pad_id", 0));
        return success();
    }
    for (const std::string_view name : {"[PAD]", "<pad>", "<|endoftext|>", "<|padding|>"})
        if (const auto id = added.id_of(name)) {
            padding = *id;
            break;
        }
    return success();
}

Ids Tokenizer::Impl::tokens_of(std::string_view text) const {
    Ids ids;
    const UsePiece tokenize = [&](std::string_view piece) { model->tokenize(piece, ids); };
    added.split(
        text, normalizer, [&](std::int32_t id) { ids.push_back(id); },
        [&](std::string_view part) { pre_tokenizer.split(part, tokenize); });
    return ids;
}

void Tokenizer::Impl::cut_to(Ids& ids, std::size_t size) const {
    if (ids.size() <= size) return;
    if (cuts_left)
        ids.erase(ids.begin(), ids.end() - static_cast<std::ptrdiff_t>(size));
    else
        ids.resize(size);
}

Status Tokenizer::Impl::cut(Ids& first, Ids* second, std::size_t most) const {
    const std::size_t total = first.size() + (second ? second->size() : 0);
    if (total <= most) return success();
    if (truncation == Truncation::longest_first || most == 0) {
        std::size_t one = first.size(), two = second ? second->size() : 0;
        if (second)
            cut_longest(one, two, most);
        else
            one = most;
        cut_to(first, one);
        if (second) cut_to(*second, two);
        return success();
    }
    Ids* const target = truncation == Truncation::only_first ? &first : second;
    const std::size_t surplus = total - most;
    if (!target || target->size() <= surplus)
        return invalid("the text that may be cut has {} tokens, and {} are too many",
                       target ? target->size() : 0, surplus);
    cut_to(*target, target->size() - surplus);
    return success();
}

Result<TokenizedText> Tokenizer::Impl::encode(std::string_view first, const std::string_view* second,
                                              const EncodeOptions& options) const {
    for (const std::string_view* text : {static_cast<const std::string_view*>(&first), second})
        if (const auto place = text ? find_invalid_utf8(*text) : std::nullopt)
            return invalid("the text is no UTF-8: byte {} is wrong", *place);
    Ids one = tokens_of(first), two = second ? tokens_of(*second) : Ids{};
    const std::size_t most =
        options.most_tokens > 0 ? static_cast<std::size_t>(options.most_tokens) : most_tokens;
    const std::size_t added_count = options.special ? special.special_count(second != nullptr) : 0;
    if (most > 0) {
        if (most < added_count)
            return invalid("at most {} tokens are wanted, and the special ones alone are {}", most,
                           added_count);
        HR_TRY(cut(one, second ? &two : nullptr, most - added_count));
    }
    TokenizedText made;
    for (const Template::Part& part : special.parts(second != nullptr)) {
        if (part.text == 0 && !options.special) continue;
        const Ids& ids = part.text == 0 ? part.ids : part.text == 1 ? one : two;
        made.ids.insert(made.ids.end(), ids.begin(), ids.end());
        made.types.resize(made.ids.size(), part.type);
    }
    return made;
}

Tokenizer Tokenizer::load(const std::string& path) {
    const std::string json = value_or_throw(read_text_file(path, kMostFileBytes));
    auto made = Impl::read(json);
    if (!made.ok()) made = made.error().within(path);
    return Tokenizer(value_or_throw(std::move(made)));
}

Tokenizer Tokenizer::parse(std::string_view json) { return Tokenizer(value_or_throw(Impl::read(json))); }

TokenizedText Tokenizer::encode(std::string_view text, const EncodeOptions& options) const {
    return value_or_throw(impl_->encode(text, nullptr, options));
}

TokenizedText Tokenizer::encode_pair(std::string_view first, std::string_view second,
                                     const EncodeOptions& options) const {
    return value_or_throw(impl_->encode(first, &second, options));
}

std::optional<std::int32_t> Tokenizer::token_id(std::string_view content) const {
    if (const auto id = impl_->added.id_of(content)) return id;
    return impl_->model->id_of(content);
}

std::int32_t Tokenizer::padding_id() const { return impl_->padding; }

std::int64_t Tokenizer::size() const {
    return std::int64_t{std::max(impl_->model->largest_id(), impl_->added.largest_id())} + 1;
}

std::int64_t Tokenizer::most_tokens() const { return static_cast<std::int64_t>(impl_->most_tokens); }

}  // namespace headrace
