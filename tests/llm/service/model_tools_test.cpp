#include "headrace/language_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>

#include "checkout.h"
#include "llm/calling_template.h"
#include "temporary_folder.h"

// What a language model offers beside answers: its tokens, the prompt it would read, what it remembers.
namespace headrace {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

const std::string kTinyModel = checkout_path("models/tiny-chat-q8_0.gguf");

LanguageModel load_with_tools(const Parameters& more = {}) {
    Parameters parameters = {{"temp", 0}, {"n_predict", 64}, {"threads", 1}, {"n_ctx", 512}};
    for (const auto& [name, value] : more.entries()) parameters.set(name, value);
    return LanguageModel::load(kTinyModel, {.parameters = parameters});
}

template <class Call>
std::string error_of(Call call, Code code) {
    try {
        call();
    } catch (const Exception& error) {
        EXPECT_EQ(error.code(), code) << error.what();
        return error.what();
    }
    ADD_FAILURE() << "nothing was thrown";
    return {};
}

TEST(LanguageModelTokens, BecomeTheirTextAgain) {
    LanguageModel model = load_with_tools();
    const std::vector<std::int32_t> tokens = model.tokenize("What is 2+3?", false);
    EXPECT_THAT(tokens, Not(IsEmpty()));
    EXPECT_EQ(model.detokenize(tokens), "What is 2+3?");
    EXPECT_THAT(error_of([&] { model.detokenize({-1}); }, Code::invalid_argument), HasSubstr("token -1"));
    EXPECT_THAT(error_of([&] { model.detokenize({512}); }, Code::invalid_argument), HasSubstr("511"));
}

TEST(LanguageModelTokens, ArePromptsAsTheyAre) {
    LanguageModel model = load_with_tools();
    const RenderedPrompt prompt = model.render({.messages = {{"user", "What is 2+3?"}}});
    EXPECT_THAT(prompt.text, HasSubstr("What is 2+3?"));
    const Reply by_tokens = model.generate(Request{.tokens = prompt.tokens});
    const Reply by_messages = model.generate(Request{.messages = {{"user", "What is 2+3?"}}});
    EXPECT_EQ(by_tokens.text, by_messages.text);
    EXPECT_EQ(by_tokens.prompt, prompt.tokens);
    error_of([&] { model.generate(Request{.prompt = "Hi", .tokens = {1}}); }, Code::invalid_argument);
    error_of([&] { model.generate(Request{.tokens = {100'000}}); }, Code::invalid_argument);
}

TEST(LanguageModelInfo, SaysWhatTheFileAndTheLoadSay) {
    const ModelInfo info = load_with_tools({{"n_ctx_per_request", 100}, {"n_parallel", 3}}).info();
    EXPECT_EQ(info.vocabulary_size, 512);
    EXPECT_EQ(info.vocabulary, "BPE");
    EXPECT_EQ(info.context_tokens, 512);
    EXPECT_EQ(info.request_tokens, 100);
    EXPECT_EQ(info.parallel, 3);
    EXPECT_FALSE(info.chat_template.empty());
    EXPECT_LT(info.fill_prefix, 0);
}

TEST(LanguageModelInfo, ARequestHasNoMoreThanItsPartOfTheContext) {
    LanguageModel model =
        load_with_tools({{"n_ctx_per_request", 24}, {"ignore_eos", true}, {"n_predict", -1}});
    const Reply reply = model.generate(Request{.messages = {{"user", "What is 2+3?"}}});
    EXPECT_EQ(reply.stop_reason, StopReason::context_full);
    EXPECT_EQ(reply.prompt_tokens + reply.generated_tokens, 25);  // the last is not read any more
    const std::string long_text(400, 'x');
    error_of([&] { model.generate(Request{.prompt = long_text}); }, Code::prompt_too_long);
}

TEST(LanguageModelInfo, EffectiveParametersAreThoseOfTheLoadAndTheRequest) {
    const Parameters all = load_with_tools().effective({{"top_k", 7}});
    EXPECT_EQ(std::get<std::int64_t>(*all.find("n_predict")), 64);
    EXPECT_EQ(std::get<std::int64_t>(*all.find("top_k")), 7);
    EXPECT_EQ(all.find("n_ctx"), nullptr);  // of the model
}

TEST(Messages, ThatDoNotFitAreAnErrorIfAsked) {
    LanguageModel model = load_with_tools();
    std::vector<Message> many;
    for (int i = 0; i < 100; ++i) {
        many.push_back({"user", "What is 2+3?"});
        many.push_back({"assistant", "2+3=5"});
    }
    many.push_back({"user", "What is 2+2?"});
    EXPECT_GT(model.generate(Request{.messages = many}).dropped_messages, 0);
    error_of(
        [&] {
            model.generate(Request{.messages = many, .parameters = {{"drop_oldest", false}}});
        },
        Code::prompt_too_long);
}

TEST(Messages, OfTheAssistantAreGoneOnWith) {
    LanguageModel model = load_with_tools();
    const Request request{.messages = {{"user", "What is 2+3?"}, {"assistant", "2+3"}},
                          .parameters = {{"continue_final_message", true}}};
    EXPECT_TRUE(model.render(request).text.ends_with("2+3"));
    const Reply reply = model.generate(request);
    EXPECT_EQ(reply.text, "=5");
    EXPECT_EQ(reply.content, "=5");  // without what the caller wrote
}

TEST(Messages, MayBringATemplateOfTheirOwn) {
    LanguageModel model = load_with_tools();
    const auto rendered = [&](const char* source) {
        return model.render({.messages = {{"user", "Hi"}}, .chat_template = source}).text;
    };
    EXPECT_EQ(rendered("{{ messages[0].content }}!"), "Hi!");
    EXPECT_THAT(error_of([&] { rendered("{{ foo "); }, Code::invalid_argument), HasSubstr("chat_template"));
}

TEST(MessageParts, AddUpToTheWholeMessage) {
    LanguageModel model = load_with_tools();
    Generation generation = model.stream(Request{.messages = {{"user", "What is 2+3?"}}});
    std::string content;
    std::vector<std::int32_t> tokens;
    while (auto part = generation.next_part()) {
        content += part->content;
        tokens.insert(tokens.end(), part->piece.new_tokens.begin(), part->piece.new_tokens.end());
    }
    const Reply reply = generation.reply();
    EXPECT_EQ(content, reply.content);
    EXPECT_EQ(
        std::vector(reply.tokens.begin(), reply.tokens.begin() + static_cast<std::ptrdiff_t>(tokens.size())),
        tokens);
}

TEST(MessageParts, OfToolCallsBeginWithTheirNames) {
    LanguageModel model = load_with_tools({{"chat_template", kCalling}});
    const Parameters forced = Parameters::from_json(
        R"({"tools": [{"type": "function", "function": {"name": "get_weather", "parameters": {"type": "object",
            "properties": {"city": {"type": "string"}}, "required": ["city"]}}}], "tool_choice": "required"})");
    Generation generation =
        model.stream(Request{.messages = {{"user", "What is the weather in Rome?"}}, .parameters = forced});
    std::string name, arguments;
    while (auto part = generation.next_part())
        for (const MessagePart::Call& call : part->calls) {
            if (name.empty()) {
                EXPECT_FALSE(call.name.empty());
            }
            name += call.name;
            arguments += call.arguments;
        }
    const Reply reply = generation.reply();
    ASSERT_THAT(reply.tool_calls, Not(IsEmpty())) << reply.text;
    EXPECT_EQ(reply.tool_calls[0].name, "get_weather");
    EXPECT_EQ(name, "get_weather");
    EXPECT_EQ(arguments, reply.tool_calls[0].arguments);
}

TEST(Pieces, HaveTheProbabilitiesOfTheirTokens) {
    LanguageModel model = load_with_tools();
    Generation generation = model.stream("What is 2+3?", {{"n_probs", 3}, {"temp", 1}, {"seed", 1}});
    std::string text;
    while (auto piece = generation.next()) {
        text += piece->text;
        ASSERT_EQ(piece->probabilities.size(), piece->new_tokens.size());
        ASSERT_EQ(piece->token_probabilities.size(), piece->new_tokens.size());
        for (std::size_t i = 0; i < piece->new_tokens.size(); ++i) {
            EXPECT_THAT(piece->probabilities[i], SizeIs(3));
            EXPECT_GT(piece->token_probabilities[i], 0);
            for (const TokenProbability& likely : piece->probabilities[i])
                if (likely.token == piece->new_tokens[i]) {
                    EXPECT_FLOAT_EQ(likely.probability, piece->token_probabilities[i]);
                }
        }
    }
    const Reply reply = generation.reply();
    EXPECT_EQ(text, reply.text);
    EXPECT_THAT(reply.token_probabilities, SizeIs(reply.tokens.size()));
}

TEST(Progress, OfAPromptEndsWithAllOfIt) {
    LanguageModel model = load_with_tools({{"n_batch", 64}, {"n_ubatch", 64}, {"cache_ram", 0}});
    std::string text;
    for (int i = 0; i < 40; ++i) text += "What is 2+3? ";
    Generation generation = model.stream(text, {{"return_progress", true}, {"n_predict", 4}});
    std::vector<PromptProgress> all;
    while (auto piece = generation.next())
        if (piece->progress) all.push_back(*piece->progress);
    ASSERT_GT(all.size(), 2u);
    EXPECT_EQ(all.front().processed, all.front().cached);
    EXPECT_EQ(all.back().processed, all.back().total);
    EXPECT_EQ(all.back().total, generation.reply().prompt_tokens);
    for (std::size_t i = 1; i < all.size(); ++i) EXPECT_GT(all[i].processed, all[i - 1].processed);
}

std::string long_question() {
    std::string text;
    for (int i = 0; i < 20; ++i) text += "What is 2+3? ";
    return text;
}

TEST(SavedPrompts, AreNotReadAgain) {
    const TemporaryFolder folder;
    const std::string path = folder / "prompt.bin";
    const Parameters plain = {{"chat", false}, {"n_predict", 2}};
    SavedPrompt saved;
    Reply first;
    {
        LanguageModel model = load_with_tools({{"max_sequences", 7}});
        first = model.generate(long_question(), plain);
        saved = model.save_prompt(first.prompt, path);
        EXPECT_GE(saved.tokens, first.prompt_tokens);
        error_of([&] { model.save_prompt(model.tokenize("zebra", false), path); }, Code::invalid_argument);
    }
    LanguageModel other = load_with_tools({{"max_sequences", 9}});  // an engine of its own
    EXPECT_EQ(other.restore_prompt(path).tokens, saved.tokens);
    const Reply again = other.generate(long_question(), plain);
    EXPECT_EQ(again.cached_tokens, first.prompt_tokens - 1);
    EXPECT_EQ(again.text, first.text);
    EXPECT_GT(other.forget_prompt(first.prompt), 0);
    EXPECT_EQ(other.generate(long_question(), plain).cached_tokens, 0);
}

TEST(SavedPrompts, ThatAreDamagedOrOthersAreRefused) {
    const TemporaryFolder folder;
    const std::string path = folder / "prompt.bin";
    LanguageModel model = load_with_tools();
    const Reply reply = model.generate(long_question(), {{"chat", false}, {"n_predict", 2}});
    model.save_prompt(reply.prompt, path);
    LanguageModel other = load_with_tools({{"type_k", "q8_0"}, {"type_v", "q8_0"}, {"flash_attn", "on"}});
    EXPECT_THAT(error_of([&] { other.restore_prompt(path); }, Code::invalid_argument), HasSubstr("another"));
    error_of([&] { model.restore_prompt(folder / "none.bin"); }, Code::not_found);
    const std::string bytes = folder.read("prompt.bin");
    for (const std::size_t at : {std::size_t{0}, std::size_t{9}, std::size_t{24}, bytes.size() / 2}) {
        std::string wrong = bytes;
        wrong[at] = static_cast<char>(wrong[at] ^ 1);
        folder.write("prompt.bin", wrong);
        error_of([&] { model.restore_prompt(path); }, Code::invalid_argument);
    }
    folder.write("prompt.bin", bytes.substr(0, bytes.size() - 1));
    error_of([&] { model.restore_prompt(path); }, Code::invalid_argument);
    folder.write("prompt.bin", "");
    error_of([&] { model.restore_prompt(path); }, Code::invalid_argument);
}

TEST(SavedPrompts, OfOtherWeightsOrAnotherRopeAreRefused) {
    const TemporaryFolder folder;
    const std::string path = folder / "prompt.bin";
    LanguageModel model = load_with_tools();
    model.save_prompt(model.generate(long_question(), {{"chat", false}, {"n_predict", 2}}).prompt, path);
    EXPECT_THAT(error_of(
                    [&] {
                        load_with_tools({{"yarn_ext_factor", 0.5}}).restore_prompt(path);
                    },
                    Code::invalid_argument),
                HasSubstr("another"));
    std::ifstream file(kTinyModel, std::ios::binary);
    std::string bytes{std::istreambuf_iterator<char>(file), {}};
    for (std::size_t i = 1; i <= 4096; ++i)  // a fine-tune of the same shape: the last matrix
        bytes[bytes.size() - i] = static_cast<char>(bytes[bytes.size() - i] ^ 1);
    folder.write("tuned.gguf", bytes);
    LanguageModel tuned = LanguageModel::load(folder / "tuned.gguf", {{{"n_threads", 1}}});
    EXPECT_THAT(error_of([&] { tuned.restore_prompt(path); }, Code::invalid_argument), HasSubstr("another"));
}

TEST(SharedEngines, AreNotSharedWhenAnotherDraftModelLiesUnderTheName) {
    const TemporaryFolder folder;
    const std::string draft = folder / "draft.gguf";
    std::filesystem::copy_file(kTinyModel, draft);
    const Parameters parameters = {{"draft_model", draft}, {"max_sequences", 11}};
    LanguageModel first = load_with_tools(parameters), same = load_with_tools(parameters);
    const std::size_t engines = first.statistics().process_engines;
    std::filesystem::last_write_time(draft,
                                     std::filesystem::file_time_type::clock::now() + std::chrono::hours(1));
    LanguageModel other = load_with_tools(parameters);
    EXPECT_EQ(other.statistics().process_engines, engines + 1);
}

TEST(ModelOutlines, SayWhatALoadWillTake) {
    const ModelOptions options{.parameters = {{"n_ctx", 512}}};
    const ModelOutline outline = outline_model(kTinyModel, options);
    const ModelInfo info = load_with_tools().info();
    EXPECT_EQ(outline.kind, ModelKind::text);
    EXPECT_EQ(outline.architecture, "llama");
    EXPECT_EQ(outline.weight_bytes, info.bytes);
    EXPECT_GT(info.context_bytes, 0);
    EXPECT_GT(outline.context_bytes, info.context_bytes)
        << "the buffers that compute are of the context, too";
    EXPECT_EQ(outline_model(kTinyModel, options, false).context_bytes, 0);
    const TemporaryFolder folder;
    folder.write("mmproj.gguf", std::string(1000, '-'));
    const ModelOutline with_images = outline_model(kTinyModel, {{{"mmproj", folder / "mmproj.gguf"}}}, false);
    EXPECT_EQ(with_images.weight_bytes, outline.weight_bytes + 1000);
    const auto kind = [](const Parameters& parameters) {
        return outline_model(kTinyModel, {.parameters = parameters}, false).kind;
    };
    EXPECT_EQ(kind({{"embeddings", true}, {"pooling", "mean"}}), ModelKind::vectors);
    EXPECT_EQ(kind({{"embeddings", true}, {"pooling", "none"}}), ModelKind::token_vectors);
    EXPECT_EQ(kind({{"embeddings", true}, {"pooling", "rank"}}), ModelKind::scores);
    EXPECT_THAT(error_of([] { outline_model("none.gguf"); }, Code::not_found), HasSubstr("none.gguf"));
}

}  // namespace
}  // namespace headrace
