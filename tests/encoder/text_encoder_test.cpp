#include "headrace/text_encoder.h"

#include <gmock/gmock.h>

#include <cmath>
#include <thread>

#include "encoder_sample.h"
#include "temporary_folder.h"

namespace headrace {
namespace {

using namespace ::headrace::testing;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TextEncoder encoder(const TextEncoderOptions& options = {}) {
    return TextEncoder(*word_graph(options.ranks), Tokenizer::parse(word_tokenizer()), options);
}

/// The error of loading or calling something.
template <class Call>
std::pair<Code, std::string> error_of(const Call& call) {
    try {
        call();
    } catch (const Exception& error) {
        return {error.code(), error.what()};
    }
    return {Code::io, "no error"};
}

std::vector<float> embed_one(const TextEncoderOptions& options, const std::string& text) {
    return encoder(options).embed({text}).vectors.front();
}

TEST(TextEncoder, PoolsAsItIsTold) {
    // [CLS] w0 w1 [SEP] is 2 4 5 3.
    EXPECT_THAT(embed_one({.pooling = TextPooling::mean, .normalizes = false}, "w0 w1"),
                ElementsAre(3.5f, (4 + 16 + 25 + 9) / 4.0f, 1, 0));
    EXPECT_THAT(embed_one({.pooling = TextPooling::cls, .normalizes = false}, "w0 w1"),
                ElementsAre(2, 4, 1, 0));
    EXPECT_THAT(embed_one({.pooling = TextPooling::last, .normalizes = false}, "w0 w1"),
                ElementsAre(3, 9, 1, 0));
    EXPECT_THAT(embed_one({.pooling = TextPooling::max, .normalizes = false}, "w0 w1"),
                ElementsAre(5, 25, 1, 0));
    EXPECT_THAT(embed_one({.pooling = TextPooling::mean_sqrt_length, .normalizes = false}, "w0 w1"),
                ElementsAre(7, (4 + 16 + 25 + 9) / 2.0f, 2, 0));
}

TEST(TextEncoder, FillsInputsOf32Bits) {
    const TextEncoder model(*word_graph(false, DType::i32), Tokenizer::parse(word_tokenizer()),
                            {.pooling = TextPooling::mean, .normalizes = false});
    const TextVectors made = model.embed({"w0 w1", "w2", "w0 w1 w2"});
    EXPECT_THAT(made.vectors[0], ElementsAre(3.5f, (4 + 16 + 25 + 9) / 4.0f, 1, 0));
    EXPECT_THAT(made.vectors[1], ElementsAre((2 + 6 + 3) / 3.0f, (4 + 36 + 9) / 3.0f, 1, 0));
    EXPECT_THAT(made.vectors[2], ElementsAre(4, (4 + 16 + 25 + 36 + 9) / 5.0f, 1, 0));
}

TEST(TextEncoder, NormalizesUnlessToldOtherwise) {
    const std::vector<float> vector = embed_one({}, "w0 w1");
    float sum = 0;
    for (const float value : vector) sum += value * value;
    EXPECT_NEAR(sum, 1, 1e-6);
    EXPECT_NEAR(vector[1] / vector[0], 13.5 / 3.5, 1e-5);
}

TEST(TextEncoder, GivesEachTextItsOwnVectorWhateverTheBatch) {
    const TextEncoder model = encoder({.pooling = TextPooling::mean, .normalizes = false});
    std::vector<std::string> texts;
    for (int i = 0; i < 200; ++i) {
        std::string text = "w" + std::to_string(i % 10);
        for (int j = 0; j < i % 17; ++j) text += " w" + std::to_string((i + j) % 10);
        texts.push_back(text);
    }
    const TextVectors all = model.embed(texts);
    for (std::size_t i = 0; i < texts.size(); ++i) {
        const TextVectors alone = model.embed({texts[i]});
        ASSERT_EQ(all.vectors[i], alone.vectors[0]) << texts[i];
        ASSERT_EQ(all.tokens[i], alone.tokens[0]);
    }
    const TextEncoderStatistics counts = model.statistics();
    EXPECT_EQ(counts.texts, 400u);
    EXPECT_EQ(counts.finished, 201u);
    EXPECT_LT(counts.runs, 280u) << "texts share runs";
    EXPECT_LT(counts.padding, counts.tokens / 4);
}

TEST(TextEncoder, ConcurrentCallsGetTheirOwnVectors) {
    const TextEncoder model =
        encoder({.pooling = TextPooling::mean, .normalizes = false, .compile = {.threads = 2}});
    std::vector<std::thread> threads;
    for (int t = 0; t < 8; ++t)
        threads.emplace_back([&model, t] {
            for (int i = 0; i < 40; ++i) {
                const int word = (t + i) % 10;
                const auto made = model.embed({"w" + std::to_string(word), "w0 w1 w2"});
                EXPECT_FLOAT_EQ(made.vectors[0][0], static_cast<float>(2 + 4 + word + 3) / 3);
                EXPECT_FLOAT_EQ(made.vectors[1][0], (2 + 4 + 5 + 6 + 3) / 5.0f);
            }
        });
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(model.statistics().finished, 320u);
}

TEST(TextEncoder, CutsTextsThatAreTooLong) {
    const TextEncoder model = encoder({.pooling = TextPooling::last, .normalizes = false, .most_tokens = 4});
    EXPECT_EQ(model.embed({"w0 w1 w2 w3 w4"}).tokens[0], 4);
    const auto [code, message] = error_of([&] { model.embed_tokens({{2, 4, 4, 4, 3}}); });
    EXPECT_EQ(code, Code::invalid_argument);
    EXPECT_THAT(message, HasSubstr("text 0: it has 5 tokens; this model reads 4"));
}

TEST(TextEncoder, RefusesTokensThatAreNone) {
    const TextEncoder model = encoder();
    EXPECT_THAT(error_of([&] {
                    model.embed_tokens({{2, 3}, {14}});
                }).second,
                HasSubstr("text 1: 14 is no token: there are 14"));
    EXPECT_THAT(error_of([&] { model.embed_tokens({{-1}}); }).second, HasSubstr("-1 is no token"));
    EXPECT_THAT(error_of([&] { model.embed_tokens({{}}); }).second, HasSubstr("it has no tokens"));
    EXPECT_TRUE(model.embed({}).vectors.empty());
}

TEST(TextEncoder, RanksPairs) {
    const TextEncoder model = encoder({.ranks = true});
    const TextScores made = model.rank("w0", {"w1", "w2 w3"});
    EXPECT_THAT(made.scores, ElementsAre(2 + 4 + 3 + 5 + 3, 2 + 4 + 3 + 6 + 7 + 3));
    EXPECT_THAT(made.tokens, ElementsAre(5, 6));
    EXPECT_EQ(error_of([&] { model.embed({"w0"}); }).first, Code::unsupported);
    EXPECT_EQ(error_of([&] { encoder().rank("w0", {"w1"}); }).first, Code::unsupported);
}

TEST(TextEncoder, EndsCallsWhoseCallerGivesUp) {
    const TextEncoder model = encoder();
    const std::vector<std::string> many(200'000, "w0 w1 w2");
    EXPECT_EQ(error_of([&] { model.embed(many, {.is_cancelled = [] { return true; }}); }).first,
              Code::cancelled);
    EXPECT_EQ(error_of([&] { model.embed(many, {.timeout = std::chrono::milliseconds(1)}); }).first,
              Code::timed_out);
    EXPECT_EQ(model.embed({"w0"}).vectors.size(), 1u) << "what waited of them is gone";
    EXPECT_EQ(model.statistics().waiting, 0u);
}

TEST(TextEncoder, LetsShortCallsInBetween) {
    const TextEncoder model = encoder({.compile = {.threads = 1}});
    std::thread large([&] { model.embed(std::vector<std::string>(300'000, "w0 w1 w2")); });
    while (model.statistics().calls == 0) std::this_thread::yield();
    model.embed({"w0"});
    EXPECT_GT(model.statistics().waiting, 0u) << "the large call still waits";
    large.join();
}

TEST(TextEncoder, SaysWhenTooManyWait) {
    const TextEncoder model = encoder({.most_waiting = 1, .compile = {.threads = 1}});
    std::thread large([&] { model.embed(std::vector<std::string>(300'000, "w0 w1 w2")); });
    while (model.statistics().calls == 0) std::this_thread::yield();
    EXPECT_EQ(error_of([&] { model.embed({"w0"}); }).first, Code::busy);
    large.join();
    model.embed({"w0"});
}

TEST(TextEncoder, NamesWhatIsOddInAGraph) {
    const auto refused = [](const std::vector<Extent>& shape, const std::string& name, DType type) {
        GraphWriter w;
        const auto x = w.input(name, type, shape);
        w.output("y", w.op("cast", {x}, {{"data_type", DType::f32}})[0]);
        const auto graph = w.finish();
        return error_of([&] { TextEncoder(*graph, Tokenizer::parse(word_tokenizer())); }).second;
    };
    const Extent batch = Extent::symbol("batch", 1, 64), sequence = Extent::symbol("sequence", 1, 64);
    EXPECT_THAT(refused({batch, Extent(8)}, "input_ids", DType::i64), HasSubstr("fixed extent 8"));
    EXPECT_THAT(refused({batch, sequence}, "pixels", DType::i64), HasSubstr("'pixels' is not known"));
    EXPECT_THAT(refused({batch, sequence}, "input_ids", DType::f32), HasSubstr("int64 or int32"));
    EXPECT_THAT(refused({batch, sequence}, "attention_mask", DType::i64), HasSubstr("no input input_ids"));
    EXPECT_THAT(refused({batch, sequence}, "input_ids", DType::i64), HasSubstr("open last extent"));
    const auto vectors = error_of([] {
        TextEncoder(*word_graph(), Tokenizer::parse(word_tokenizer()), {.pooling = TextPooling::pooled});
    });
    EXPECT_THAT(vectors.second,
                HasSubstr("no output is [batch, width]; the graph has last_hidden_state of rank 3"));
}

/// A folder as sentence-transformers writes it.
class ModelFolderTest : public ::testing::Test {
protected:
    ModelFolderTest() {
        save_graph(*word_graph(), folder_ / "model.hrg");
        folder_.write("tokenizer.json", word_tokenizer());
        std::filesystem::create_directory(folder_ / "1_Pooling");
    }
    TextEncoder load(const TextEncoderOptions& options = {}) {
        return TextEncoder::load(folder_ / "model.hrg", options);
    }

    TemporaryFolder folder_;
};

TEST_F(ModelFolderTest, SaysHowTextsArePooled) {
    folder_.write("1_Pooling/config.json",
                  R"({"pooling_mode_cls_token": true, "pooling_mode_mean_tokens": false})");
    folder_.write("modules.json", R"([{"type": "sentence_transformers.models.Transformer"}])");
    EXPECT_EQ(load().info().pooling, TextPooling::cls);
    EXPECT_FALSE(load().info().normalizes);
    EXPECT_EQ(load({.pooling = TextPooling::mean}).info().pooling, TextPooling::mean) << "options come first";
    folder_.write("modules.json", R"([{"type": "sentence_transformers.models.Normalize"}])");
    EXPECT_TRUE(load().info().normalizes);
}

TEST_F(ModelFolderTest, MayNameThePoolingInAText) {
    for (const auto& [name, pooling] :
         {std::pair("cls", TextPooling::cls), std::pair("lasttoken", TextPooling::last),
          std::pair("max", TextPooling::max),
          std::pair("mean_sqrt_len_tokens", TextPooling::mean_sqrt_length)}) {
        folder_.write("1_Pooling/config.json", R"({"pooling_mode": ")" + std::string(name) + R"("})");
        EXPECT_EQ(load().info().pooling, pooling) << name;
    }
}

TEST_F(ModelFolderTest, IsRefusedWhereItChangesVectorsByWhatIsNotKnown) {
    const auto message = [&] { return error_of([&] { load(); }).second; };
    folder_.write("1_Pooling/config.json", R"({"pooling_mode": "weightedmean"})");
    EXPECT_THAT(message(),
                HasSubstr("has the pooling_mode \"weightedmean\"; one of mean, cls, lasttoken, max"));
    folder_.write("1_Pooling/config.json", R"({"pooling_mode": "mean", "include_prompt": false})");
    EXPECT_THAT(message(), HasSubstr("sets include_prompt to false"));
    folder_.write("1_Pooling/config.json", "{}");
    folder_.write("modules.json", R"([{"type": "sentence_transformers.models.Dense"}])");
    EXPECT_THAT(message(), HasSubstr("modules.json has Dense; Transformer, Pooling and Normalize are known"));
}

TEST_F(ModelFolderTest, ServesAGraphThatWasReadElsewhere) {
    folder_.write("1_Pooling/config.json", R"({"pooling_mode": "max"})");
    const TextEncoder model = TextEncoder::load(*word_graph(), folder_ / "onnx.model");
    EXPECT_EQ(model.info().pooling, TextPooling::max);
}

TEST_F(ModelFolderTest, SaysHowLongTextsMayBe) {
    EXPECT_EQ(load().info().most_tokens, 512);
    folder_.write("config.json", R"({"max_position_embeddings": 130, "model_type": "xlm-roberta"})");
    EXPECT_EQ(load().info().most_tokens, 128);
    folder_.write("tokenizer_config.json", R"({"model_max_length": 1000000000000000019884624838656})");
    EXPECT_EQ(load().info().most_tokens, 128);
    folder_.write("sentence_bert_config.json", R"({"max_seq_length": 64})");
    EXPECT_EQ(load().info().most_tokens, 64);
    EXPECT_EQ(load({.most_tokens = 9}).info().most_tokens, 9);
}

TEST_F(ModelFolderTest, IsRefusedWhereItIsDamagedOrNotKnown) {
    folder_.write("1_Pooling/config.json", R"({"pooling_mode_weightedmean_tokens": true})");
    EXPECT_THAT(error_of([&] { load(); }).second, HasSubstr("pooling_mode_weightedmean_tokens"));
    folder_.write("1_Pooling/config.json", "{");
    EXPECT_THAT(error_of([&] { load(); }).second, HasSubstr("config.json: no JSON"));
    std::filesystem::remove(folder_ / "1_Pooling/config.json");
    std::filesystem::remove(folder_ / "tokenizer.json");
    EXPECT_EQ(error_of([&] { load(); }).first, Code::not_found);
    EXPECT_EQ(error_of([&] { TextEncoder::load(folder_ / "none.hrg"); }).first, Code::not_found);
}

}  // namespace
}  // namespace headrace
