#include "headrace/tokenizer.h"

#include "model.h"
#include "task.h"

namespace headrace::node {
namespace {

struct TokenizerHandle : Handle {
    static constexpr Kind kKind = Kind::tokenizer;
    explicit TokenizerHandle(Tokenizer of) : Handle(kKind), tokenizer(std::move(of)) {}
    const Tokenizer tokenizer;
};

class OpenTokenizer : public Task {
public:
    explicit OpenTokenizer(std::string path) : path_(std::move(path)) {}
    void run() override { tokenizer_.emplace(Tokenizer::load(path_)); }
    napi_value result(napi_env env) override {
        return Record(env)
            .add("size", tokenizer_->size())
            .add("paddingId", tokenizer_->padding_id())
            .add("mostTokens", tokenizer_->most_tokens())
            .add("handle", external(env, new TokenizerHandle(*tokenizer_)));
    }

private:
    const std::string path_;
    std::optional<Tokenizer> tokenizer_;
};

class EncodeTexts : public Task {
public:
    EncodeTexts(Tokenizer tokenizer, std::vector<std::string> first, std::vector<std::string> second,
                EncodeOptions options)
        : tokenizer_(std::move(tokenizer)),
          first_(std::move(first)),
          second_(std::move(second)),
          options_(options) {}
    void run() override {
        for (std::size_t i = 0; i < first_.size(); ++i)
            encoded_.push_back(i < second_.size() ? tokenizer_.encode_pair(first_[i], second_[i], options_)
                                                  : tokenizer_.encode(first_[i], options_));
    }
    napi_value result(napi_env env) override {
        std::vector<napi_value> items;
        for (const TokenizedText& text : encoded_) {
            items.push_back(Record(env)
                                .add("ids", typed_array(env, napi_int32_array, text.ids))
                                .add("types", typed_array(env, napi_int32_array, text.types)));
        }
        return list(env, items);
    }

private:
    const Tokenizer tokenizer_;
    const std::vector<std::string> first_, second_;
    const EncodeOptions options_;
    std::vector<TokenizedText> encoded_;
};

}  // namespace

napi_value open_tokenizer(const Call& call) {
    return Task::start(call.env(), std::make_unique<OpenTokenizer>(call.text(0)));
}

napi_value encode_texts(const Call& call) {
    const napi_env env = call.env();
    const EncodeOptions options{to_integer(env, call[3]), to_boolean(env, call[4])};
    return Task::start(
        env, std::make_unique<EncodeTexts>(call.handle<TokenizerHandle>(0).tokenizer, to_texts(env, call[1]),
                                           to_texts(env, call[2]), options));
}

}  // namespace headrace::node
