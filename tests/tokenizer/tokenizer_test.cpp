#include "headrace/tokenizer.h"

#include <gmock/gmock.h>

#include <functional>
#include <nlohmann/json.hpp>

#include "temporary_folder.h"

namespace headrace {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;

/// BERT's kind, with a few words.
json bert_file() {
    json vocabulary;
    for (const char* token :
         {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "un", "##able", "##s", "cafe", "caf", "##é", "!"})
        vocabulary[token] = vocabulary.size();
    json added = json::array();
    for (const char* token : {"[PAD]", "[UNK]", "[CLS]", "[SEP]"})
        added.push_back(
            {{"id", vocabulary[token]}, {"content", token}, {"special", true}, {"normalized", false}});
    return {{"model", {{"type", "WordPiece"}, {"unk_token", "[UNK]"}, {"vocab", vocabulary}}},
            {"normalizer", {{"type", "BertNormalizer"}, {"lowercase", true}}},
            {"pre_tokenizer", {{"type", "BertPreTokenizer"}}},
            {"post_processor", {{"type", "BertProcessing"}, {"sep", {"[SEP]", 3}}, {"cls", {"[CLS]", 2}}}},
            {"added_tokens", added}};
}

Tokenizer bert() { return Tokenizer::parse(bert_file().dump()); }

std::string refusal(const json& file) {
    try {
        Tokenizer::parse(file.dump());
    } catch (const Exception& error) {
        return error.what();
    }
    return "none";
}

TEST(Tokenizer, FindsTheLongestPiecesOfWords) {
    EXPECT_THAT(bert().encode("Unables!").ids, ElementsAre(2, 4, 5, 6, 10, 3));
    EXPECT_THAT(bert().encode("nothing").ids, ElementsAre(2, 1, 3))
        << "a word that is not covered is one token";
    EXPECT_THAT(bert().encode("").ids, ElementsAre(2, 3));
}

TEST(Tokenizer, StripsAccentsWhereTheFileSaysSo) {
    EXPECT_THAT(bert().encode("CAFÉ").ids, ElementsAre(2, 7, 3));
    json kept = bert_file();
    kept["normalizer"]["strip_accents"] = false;
    EXPECT_THAT(Tokenizer::parse(kept.dump()).encode("CAFÉ").ids, ElementsAre(2, 8, 9, 3));
}

TEST(Tokenizer, ReadsSpecialTokensInTheTextAsSuch) {
    EXPECT_THAT(bert().encode("un[SEP]un", {.special = false}).ids, ElementsAre(4, 3, 4));
}

TEST(Tokenizer, CutsTheLongerOfTwoTexts) {
    const TokenizedText pair = bert().encode_pair("un un un un", "cafe", {.most_tokens = 6});
    EXPECT_THAT(pair.ids, ElementsAre(2, 4, 4, 3, 7, 3));
    EXPECT_THAT(pair.types, ElementsAre(0, 0, 0, 0, 1, 1));
    EXPECT_THROW(bert().encode("un", {.most_tokens = 1}), Exception) << "the special ones alone are two";
}

TEST(Tokenizer, KnowsItsTokens) {
    EXPECT_EQ(bert().token_id("cafe"), 7);
    EXPECT_EQ(bert().token_id("tea"), std::nullopt);
    EXPECT_EQ(bert().padding_id(), 0);
    EXPECT_EQ(bert().size(), 11);
}

TEST(Tokenizer, RefusesTextsThatAreNoUtf8) {
    EXPECT_THROW(bert().encode("a\xFFz"), Exception);
    EXPECT_THROW(bert().encode("\xC3"), Exception) << "half a character";
}

TEST(Tokenizer, NamesWhatItDoesNotCover) {
    const auto changed = [](const char* part, const json& value) {
        json file = bert_file();
        file[part] = value;
        return refusal(file);
    };
    EXPECT_THAT(changed("normalizer", {{"type", "Nmt"}}), HasSubstr("normalizer: the normaliser 'Nmt'"));
    EXPECT_THAT(changed("pre_tokenizer", {{"type", "UnicodeScripts"}}), HasSubstr("'UnicodeScripts'"));
    EXPECT_THAT(changed("post_processor", {{"type", "Other"}}), HasSubstr("Known are TemplateProcessing"));
    EXPECT_THAT(changed("model", {{"type", "WordLevel"}}), HasSubstr("Known are WordPiece, Unigram and BPE"));
}

TEST(Tokenizer, NamesThePlaceOfWhatIsWrong) {
    json file = bert_file();
    file["model"]["vocab"]["tea"] = -1;
    EXPECT_THAT(refusal(file), HasSubstr("model.vocab['tea'] is a number; it must be an id"));
    file = bert_file();
    file["added_tokens"][1]["id"] = 9;
    EXPECT_THAT(refusal(file),
                HasSubstr("added_tokens[1]: '[UNK]' has the id 9, and 1 in the model's vocabulary"));
    file = bert_file();
    file.erase("model");
    EXPECT_THAT(refusal(file), HasSubstr("model is missing"));
    try {
        Tokenizer::parse("{\"model\": ");
        FAIL();
    } catch (const Exception& error) {
        EXPECT_THAT(error.what(), HasSubstr("line 1, column"));
    }
}

TEST(Tokenizer, NamesTheFileThatItCannotRead) {
    const TemporaryFolder folder;
    EXPECT_THROW(Tokenizer::load(folder / "none.json"), Exception);
    folder.write("bad.json", "[]");
    try {
        Tokenizer::load(folder / "bad.json");
        FAIL();
    } catch (const Exception& error) {
        EXPECT_THAT(error.what(), HasSubstr("bad.json: the file is a list; it must be an object"));
    }
}

TEST(Tokenizer, SurvivesDeeplyNestedFiles) {
    std::string deep = "{\"normalizer\":";
    for (int i = 0; i < 100'000; ++i) deep += "{\"type\":\"Sequence\",\"normalizers\":[";
    EXPECT_THROW(Tokenizer::parse(deep), Exception);
    json nested = {{"type", "NFC"}};
    for (int i = 0; i < 20; ++i) nested = {{"type", "Sequence"}, {"normalizers", {nested}}};
    json file = bert_file();
    file["normalizer"] = nested;
    EXPECT_THAT(refusal(file), HasSubstr("nested too deeply"));
}

/// Calls use for each value in a file.
void each_value(json& value, const std::function<void(json&)>& use) {
    use(value);
    for (json& inner : value)
        if (inner.is_structured())
            each_value(inner, use);
        else
            use(inner);
}

TEST(Tokenizer, NeverCrashesOnAValueOfAnotherKind) {
    const json whole = bert_file();
    const std::vector<json> odd = {nullptr, true, -5, 1e300, "text", json::array(), json::object(), {1, 2}};
    json count = whole;
    int values = 0;
    each_value(count, [&](json&) { ++values; });
    for (int target = 0; target < values; ++target)
        for (const json& value : odd) {
            json file = whole;
            int place = 0;
            bool is_done = false;
            each_value(file, [&](json& found) {
                if (is_done || place++ != target) return;
                found = value;
                is_done = true;
            });
            try {
                Tokenizer::parse(file.dump()).encode_pair("Un[SEP]ables é", "cafe", {.most_tokens = 5});
            } catch (const Exception& error) {
                EXPECT_NE(std::string(error.what()), "");
            }
        }
}

TEST(Tokenizer, TakesTheBestOfAllWaysThroughAPiece) {
    json vocabulary = json::array();
    const std::vector<std::pair<std::string, double>> tokens = {
        {"<unk>", 0}, {"\u2581", -3}, {"a", -3}, {"b", -3}, {"ab", -4}, {"\u2581a", -3.5}};
    for (const auto& [token, score] : tokens) vocabulary.push_back(json::array({token, score}));
    const json file = {{"model", {{"type", "Unigram"}, {"unk_id", 0}, {"vocab", vocabulary}}},
                       {"pre_tokenizer", {{"type", "Metaspace"}, {"prepend_scheme", "always"}}}};
    const Tokenizer tokenizer = Tokenizer::parse(file.dump());
    EXPECT_THAT(tokenizer.encode("ab").ids, ElementsAre(5, 3)) << "-6.5, and -7 of the others";
    EXPECT_THAT(tokenizer.encode("b a").ids, ElementsAre(1, 3, 5));
    EXPECT_THAT(tokenizer.encode("xyb").ids, ElementsAre(1, 0, 3))
        << "unknown characters in a row are one token";
}

TEST(Tokenizer, MergesPairsInTheirOrder) {
    const json file = {
        {"model",
         {{"type", "BPE"},
          {"vocab", {{"a", 0}, {"b", 1}, {"c", 2}, {"ab", 3}, {"bc", 4}, {"\u0120", 5}, {"\u0120a", 6}}},
          {"merges", {"b c", "a b", json::array({"\u0120", "a"})}}}},
        {"pre_tokenizer", {{"type", "ByteLevel"}, {"add_prefix_space", false}}}};
    const Tokenizer tokenizer = Tokenizer::parse(file.dump());
    EXPECT_THAT(tokenizer.encode("abc ab").ids, ElementsAre(0, 4, 5, 3));
    EXPECT_THAT(tokenizer.encode("c a").ids, ElementsAre(2, 6));
}

}  // namespace
}  // namespace headrace
