#include "headrace/text_encoder.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "base/utf8.h"
#include "encoder/encoder_threads.h"
#include "encoder/model_folder.h"
#include "headrace/onnx.h"
#include "tokenizer/unicode.h"

namespace headrace {
namespace {

constexpr std::int64_t kUsualTokens = 512;
constexpr std::int64_t kMostTried = 1024;  // positions, where trying whether there are more is quick

/// To length 1; a vector of zeros stays as it is.
void normalize(std::vector<float>& vector) {
    double sum = 0;
    for (const float value : vector) sum += double{value} * value;
    const auto length = static_cast<float>(std::sqrt(sum));
    if (length > 0)
        for (float& value : vector) value /= length;
}

/// Each thread keeps graphs of its own: together about as much as the options allow.
CompileOptions shared_cache(CompileOptions options, int threads) {
    constexpr std::size_t kLeast = std::size_t{32} << 20;
    options.cache_bytes = std::max(options.cache_bytes / static_cast<std::size_t>(threads), kLeast);
    return options;
}

std::string in_lower_case(std::string_view given) {
    const std::string valid = valid_utf8(given);
    std::string lower;
    for (std::size_t at = 0; at < valid.size();)
        text::append_lowercase(lower, text::next_character(valid, at));
    return lower;
}

int threads_of(const CompileOptions& options) {
    return options.threads > 0 ? options.threads : num_threads();
}

std::vector<std::int64_t> sizes_of(const std::vector<TokenizedText>& texts) {
    std::vector<std::int64_t> sizes;
    for (const TokenizedText& text : texts) sizes.push_back(static_cast<std::int64_t>(text.ids.size()));
    return sizes;
}

/// What reads more tokens than a model has positions, by config.json, computes these as they come; whether it
/// does shows in a text that is one token longer.
Status try_beyond(const Executable& executable, const EncoderShape& shape, std::int64_t positions,
                  std::int64_t most_tokens) {
    if (positions <= 0 || most_tokens <= positions || positions > kMostTried) return success();
    const auto length = static_cast<std::size_t>(positions) + 1;
    const TokenizedText text{std::vector<std::int32_t>(length), std::vector<std::int32_t>(length)};
    const TokenizedText* const texts[] = {&text};
    try {
        EncoderRuns(executable, shape, 0).run(texts, positions + 1, 0);
    } catch (const Exception&) {
        return invalid(
            "texts of {} tokens are to be read; the model has {} positions: {} tokens are the most",
            most_tokens, positions, positions);
    }
    return success();
}

}  // namespace

struct TextEncoder::Impl {
    Tokenizer tokenizer;
    TextEncoderInfo info;
    std::unique_ptr<EncoderThreads> threads;
    bool lower_cases = false;

    static Result<std::shared_ptr<Impl>> make(const Graph& graph, Tokenizer tokenizer,
                                              const ModelFolder& folder, const TextEncoderOptions& options,
                                              const std::string& path);
    /// What the graph gives for texts.
    std::shared_ptr<TextCall> run(std::vector<TokenizedText> texts, const EncodeCall& options) const;
    TokenizedText checked(TokenizedText text, std::size_t index) const;
    TextVectors vectors(std::vector<TokenizedText> texts, const EncodeCall& options) const;
};

Result<std::shared_ptr<TextEncoder::Impl>> TextEncoder::Impl::make(const Graph& graph, Tokenizer tokenizer,
                                                                   const ModelFolder& folder,
                                                                   const TextEncoderOptions& options,
                                                                   const std::string& path) {
    auto made = std::make_shared<Impl>(
        Impl{std::move(tokenizer), {}, nullptr, folder.lower_cases && options.sentence_config});
    const Executable executable = compile(graph, shared_cache(options.compile, threads_of(options.compile)));
    HR_ASSIGN(EncoderShape shape, EncoderShape::of(executable, options.pooling, options.ranks));
    if (!options.pooling && folder.pooling && shape.pooling != TextPooling::pooled) {
        HR_ASSIGN(shape, EncoderShape::of(executable, folder.pooling, options.ranks));
    }
    HR_TRY(try_beyond(executable, shape, folder.positions, options.most_tokens));
    TextEncoderInfo& info = made->info;
    info.path = path;
    info.ranks = options.ranks;
    info.pooling = shape.pooling;
    info.normalizes = !options.ranks && options.normalizes.value_or(folder.normalizes.value_or(true));
    info.width = options.ranks ? 0 : shape.width;
    const std::int64_t of_folder = options.sentence_config ? folder.most_tokens : folder.tokenizer_tokens;
    info.most_tokens = options.most_tokens > 0             ? options.most_tokens
                       : of_folder > 0                     ? of_folder
                       : made->tokenizer.most_tokens() > 0 ? made->tokenizer.most_tokens()
                                                           : kUsualTokens;
    info.vocabulary_size = made->tokenizer.size();
    info.bytes = static_cast<std::int64_t>(executable.stats().constant_bytes);
    made->threads =
        std::make_unique<EncoderThreads>(executable, shape,
                                         EncoderThreads::Options{.padding = made->tokenizer.padding_id(),
                                                                 .most_tokens = info.most_tokens,
                                                                 .most_calls = options.most_waiting,
                                                                 .threads = threads_of(options.compile)});
    return made;
}

TokenizedText TextEncoder::Impl::checked(TokenizedText text, std::size_t index) const {
    const auto refuse = [&](const std::string& what) -> TokenizedText {
        throw Exception(Code::invalid_argument, fmt::format("text {}: {}", index, what));
    };
    const auto size = static_cast<std::int64_t>(text.ids.size());
    if (size == 0) return refuse("it has no tokens");
    if (size > info.most_tokens)
        return refuse(fmt::format("it has {} tokens; this model reads {}", size, info.most_tokens));
    for (const std::int32_t id : text.ids)
        if (id < 0 || id >= info.vocabulary_size)
            return refuse(fmt::format("{} is no token: there are {}", id, info.vocabulary_size));
    return text;
}

std::shared_ptr<TextCall> TextEncoder::Impl::run(std::vector<TokenizedText> texts,
                                                 const EncodeCall& options) const {
    auto call = std::make_shared<TextCall>();
    for (std::size_t i = 0; i < texts.size(); ++i) texts[i] = checked(std::move(texts[i]), i);
    call->texts = std::move(texts);
    value_or_throw(threads->run(call, options));
    return call;
}

TextVectors TextEncoder::Impl::vectors(std::vector<TokenizedText> texts, const EncodeCall& options) const {
    if (info.ranks) throw Exception(Code::unsupported, "this model ranks, and gives no vectors");
    const auto call = run(std::move(texts), options);
    TextVectors made{std::move(call->rows), sizes_of(call->texts)};
    if (info.normalizes)
        for (std::vector<float>& vector : made.vectors) normalize(vector);
    return made;
}

TextEncoder TextEncoder::load(const std::string& path, const TextEncoderOptions& options) {
    std::error_code ignored;
    if (!std::filesystem::exists(path, ignored)) throw Exception(Code::not_found, "there is no file " + path);
    return load(path.ends_with(".onnx") ? *load_onnx(path) : *load_graph(path), path, options);
}

TextEncoder TextEncoder::load(const Graph& graph, const std::string& path,
                              const TextEncoderOptions& options) {
    const ModelFolder folder = value_or_throw(ModelFolder::read(path, options.ranks));
    const std::string file =
        options.tokenizer.empty() ? file_beside(path, "tokenizer.json") : options.tokenizer;
    if (file.empty())
        throw Exception(Code::not_found,
                        "there is no tokenizer.json in the folder of " + path + ": name the file");
    Tokenizer tokenizer = Tokenizer::load(file);
    auto made = Impl::make(graph, std::move(tokenizer), folder, options, path);
    if (!made.ok()) made = made.error().within(path);
    return TextEncoder(value_or_throw(std::move(made)));
}

TextEncoder::TextEncoder(const Graph& graph, Tokenizer tokenizer, const TextEncoderOptions& options)
    : impl_(value_or_throw(Impl::make(graph, std::move(tokenizer), {}, options, ""))) {}

std::vector<TokenizedText> TextEncoder::tokenize(const std::vector<std::string>& texts) const {
    std::vector<TokenizedText> all;
    all.reserve(texts.size());
    for (const std::string& text : texts)
        all.push_back(impl_->tokenizer.encode(impl_->lower_cases ? in_lower_case(text) : text,
                                              {.most_tokens = impl_->info.most_tokens}));
    return all;
}

TextVectors TextEncoder::embed(const std::vector<std::string>& texts, const EncodeCall& call) const {
    return impl_->vectors(tokenize(texts), call);
}

TextVectors TextEncoder::embed_tokens(const std::vector<std::vector<std::int32_t>>& sequences,
                                      const EncodeCall& call) const {
    std::vector<TokenizedText> all;
    for (const std::vector<std::int32_t>& ids : sequences)
        all.push_back({ids, std::vector<std::int32_t>(ids.size())});
    return impl_->vectors(std::move(all), call);
}

TextScores TextEncoder::rank(std::string_view query, const std::vector<std::string>& documents,
                             const EncodeCall& call) const {
    if (!impl_->info.ranks) throw Exception(Code::unsupported, "this model gives vectors, and does not rank");
    std::vector<TokenizedText> all;
    for (const std::string& document : documents)
        all.push_back(
            impl_->tokenizer.encode_pair(query, document, {.most_tokens = impl_->info.most_tokens}));
    const auto done = impl_->run(std::move(all), call);
    TextScores made{.tokens = sizes_of(done->texts)};
    for (const std::vector<float>& row : done->rows) made.scores.push_back(row.front());
    return made;
}

const Tokenizer& TextEncoder::tokenizer() const { return impl_->tokenizer; }
const TextEncoderInfo& TextEncoder::info() const { return impl_->info; }
TextEncoderStatistics TextEncoder::statistics() const { return impl_->threads->statistics(); }
void TextEncoder::cancel_all() const { impl_->threads->cancel_all(); }

}  // namespace headrace
