#include "headrace/tokenizer.h"

#include <cstring>

#include "model.h"
#include "task.h"

namespace headrace::node {
namespace {

struct TokenizerHandle : Handle {
    static constexpr Kind kKind = Kind::tokenizer;
    explicit TokenizerHandle(Tokenizer of) : Handle(kKind), tokenizer(std::move(of)) {}
    const Tokenizer tokenizer;
};

napi_value int32_array(napi_env env, std::span<const std::int32_t> numbers) {
    napi_value buffer, array;
    void* data = nullptr;
    check(napi_create_arraybuffer(env, numbers.size_bytes(), &data, &buffer));
    if (!numbers.empty()) std::memcpy(data, numbers.data(), numbers.size_bytes());
    check(napi_create_typedarray(env, napi_int32_array, numbers.size(), buffer, 0, &array));
    return array;
}

class OpenTokenizer : public Task {
public:
    explicit OpenTokenizer(std::string path) : path_(std::move(path)) {}
    void run() override { tokenizer_.emplace(Tokenizer::load(path_)); }
    napi_value result(napi_env env) override {
        napi_value object;
        check(napi_create_object(env, &object));
        set(env, object, "size", number(env, static_cast<double>(tokenizer_->size())));
        set(env, object, "paddingId", number(env, tokenizer_->padding_id()));
        set(env, object, "mostTokens", number(env, static_cast<double>(tokenizer_->most_tokens())));
        set(env, object, "handle", external(env, new TokenizerHandle(*tokenizer_)));
        return object;
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
            napi_value object;
            check(napi_create_object(env, &object));
            set(env, object, "ids", int32_array(env, text.ids));
            set(env, object, "types", int32_array(env, text.types));
            items.push_back(object);
        }
        return list(env, items);
    }

private:
    const Tokenizer tokenizer_;
    const std::vector<std::string> first_, second_;
    const EncodeOptions options_;
    std::vector<TokenizedText> encoded_;
};

std::vector<std::string> texts_of(napi_env env, napi_value value) {
    std::vector<std::string> texts;
    for (const napi_value item : to_list(env, value)) texts.push_back(to_text(env, item));
    return texts;
}

}  // namespace

napi_value open_tokenizer(const Call& call) {
    return Task::start(call.env(), std::make_unique<OpenTokenizer>(call.text(0)));
}

napi_value encode_texts(const Call& call) {
    const napi_env env = call.env();
    const EncodeOptions options{to_integer(env, call[3]), to_boolean(env, call[4])};
    return Task::start(
        env, std::make_unique<EncodeTexts>(call.handle<TokenizerHandle>(0).tokenizer, texts_of(env, call[1]),
                                           texts_of(env, call[2]), options));
}

}  // namespace headrace::node
