// What callers are told: of parameters that a load changed, of each level's, and of calls that failed.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "checkout.h"
#include "doors/wasi_nn/context_table.h"
#include "llm/tiny_model.h"

namespace headrace::wasi_nn {

using namespace llm;
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class ContextReports : public testing::Test {
protected:
    ContextReports() : service_(std::move(ContextTable::create("")).value()) {}

    Result<GraphId> load(nlohmann::json config = nlohmann::json::object()) {
        config["temp"] = 0;
        config["n_predict"] = 64;
        return service_->load(tiny_model(), config.dump());
    }
    ContextId open(const nlohmann::json& config = nlohmann::json::object()) {
        const auto graph = load(config);
        EXPECT_TRUE(graph.ok()) << graph.error().message;
        return service_->open(graph.value()).value();
    }
    std::string metadata(ContextId context, std::string_view options = "") {
        const std::string text = answer(context, options);
        return text.starts_with("error: ") ? text : service_->output(context, 1).value();
    }
    std::string answer(ContextId context, std::string_view options = "") {
        const auto text = service_->run(context, "What is 2+3?", options);
        return text.ok() ? text.value() : "error: " + text.error().message;
    }
    std::string load_error(const nlohmann::json& config, Code code) {
        const auto graph = load(config);
        if (graph.ok()) return "it was loaded";
        EXPECT_EQ(graph.error().code, code) << graph.error().message;
        return graph.error().message;
    }

    std::unique_ptr<ContextTable> service_;
};

TEST_F(ContextReports, WarnOfWhatALoadChanged) {
    const auto context = open({{"min_p", 4},
                               {"tempp", 1},
                               {"penalty_last_n", -1},
                               {"n_ctx", 300},
                               {"threads", 512},
                               {"pooling", "mean"}});
    EXPECT_THAT(metadata(context),
                AllOf(HasSubstr("'min_p' is 4; 1 is used"), HasSubstr("'tempp' is not known"),
                      HasSubstr("'penalty_last_n' is 512 in place of -1"),
                      HasSubstr("'n_ctx' is 512 in place of 300"),
                      HasSubstr("'n_threads' is 1 in place of 512"), HasSubstr("'pooling' has no effect")));
    EXPECT_THAT(metadata(open({{"n_ctx", 2048}})), HasSubstr("the model was trained with 512 tokens"));
    EXPECT_THAT(metadata(open()), Not(HasSubstr("warnings"))) << "what the defaults are fitted to is no news";
}

TEST_F(ContextReports, WarnOfGpuParametersWithoutAGpu) {
    if (has_gpu()) GTEST_SKIP() << "this machine has a GPU";
    EXPECT_THAT(metadata(open({{"n_gpu_layers", 98}, {"main_gpu", 1}, {"tensor_split", {1, 2}}})),
                AllOf(HasSubstr("'n_gpu_layers' has no effect"), HasSubstr("'main_gpu' has no effect"),
                      HasSubstr("'tensor_split' has no effect")));
}

TEST_F(ContextReports, WarnOfToolsThatTheTemplateDoesNotShow) {
    const auto context = open();
    EXPECT_THAT(metadata(context, R"({"tools": [{"type": "function", "function": {"name": "f"}}]})"),
                HasSubstr("'tools' has no effect"));
}

TEST_F(ContextReports, OptionsGoOverTheContextsParametersOverTheModels) {
    const auto context = open();
    ASSERT_TRUE(
        service_->set_input(context, 1, R"({"grammar": "root ::= \"seven\"", "max_history": 2})").ok());
    EXPECT_EQ(answer(context), "seven");
    EXPECT_EQ(answer(context, R"({"stop": "v"})"), "se") << "the grammar stays beside the request's options";
    EXPECT_EQ(answer(context, R"({"grammar": ""})"), "2+3=5");
    EXPECT_EQ(answer(context), "seven");
    EXPECT_THAT(metadata(context), Not(HasSubstr("max_history")));
    ASSERT_TRUE(service_->set_input(context, 1, "").ok());
    EXPECT_EQ(answer(context), "2+3=5");
}

TEST_F(ContextReports, AContextMayLimitItsHistory) {
    const auto context = open();
    const auto input_tokens = [&] {
        return nlohmann::json::parse(metadata(context))["input_tokens"].get<int>();
    };
    ASSERT_TRUE(service_->set_input(context, 1, R"({"max_history": 2})").ok());
    input_tokens();
    const int second = input_tokens(), third = input_tokens();
    EXPECT_EQ(second, third);
    ASSERT_TRUE(service_->set_input(context, 1, "").ok());
    input_tokens();
    EXPECT_GT(input_tokens(), third);
}

TEST_F(ContextReports, EndingPiecesLeavesTheNextPrompt) {
    const auto context = open();
    ASSERT_TRUE(service_->set_input(context, 0, "Tell me a story.").ok());
    ASSERT_TRUE(service_->compute_piece(context).ok());
    ASSERT_TRUE(service_->set_input(context, 0, "What is 2+3?").ok());
    ASSERT_TRUE(service_->end_pieces(context).ok());
    ASSERT_TRUE(service_->compute(context).ok());
    EXPECT_EQ(service_->output(context, 0).value(), "2+3=5");
}

TEST_F(ContextReports, NameWhatALoadCouldNotDo) {
    EXPECT_THAT(load_error({{"devices", {"GPU9"}}}, Code::invalid_argument),
                AllOf(HasSubstr("no device is called 'GPU9'"), HasSubstr("CPU")));
    EXPECT_THAT(load_error({{"draft_model", "/missing.gguf"}}, Code::not_found),
                HasSubstr("draft_model: /missing.gguf: there is no such file"));
    EXPECT_THAT(load_error({{"lora", {"/missing.gguf"}}}, Code::not_found),
                HasSubstr("lora: /missing.gguf: there is no such file"));
    EXPECT_THAT(load_error({{"lora", {tiny_model()}}}, Code::invalid_argument), HasSubstr("adapter"));
    EXPECT_THAT(load_error({{"chat_template", "{{ foo "}}, Code::invalid_argument),
                AllOf(HasSubstr("chat template"), Not(HasSubstr("std::exception"))));
    EXPECT_THAT(service_->load(checkout_path(), "").error().message, HasSubstr("this is a folder"));
    if (!has_gpu()) {
        EXPECT_THAT(load_error({{"split_mode", "tensor"}}, Code::invalid_argument),
                    HasSubstr("LLAMA_SPLIT_MODE_TENSOR needs"));
    }
}

TEST_F(ContextReports, RefuseAGuestsMetadataAndTemplatesAsThoseOfAFile) {
    const std::pair<const char*, const char*> overrides[] = {
        {"llama.expert_count=int:3", "expert_used_count is 0, and llama.expert_count 3"},
        {"llama.expert_count=int:-1", "llama.expert_count is 4294967295"},
        {"tokenizer.ggml.model=str:none", "the model has no vocabulary"},
        {"llama.attention.layer_norm_rms_epsilon=float:nan", "epsilon is nan"},
    };
    for (const auto& [override, reason] : overrides) {
        const auto loaded = load({{"kv_overrides", {override}}});
        ASSERT_FALSE(loaded.ok()) << override;
        EXPECT_THAT(loaded.error().message, HasSubstr(reason));
    }
    EXPECT_TRUE(load({{"kv_overrides", {"general.name=str:x"}}}).ok());
    const std::string deep = "{{ " + std::string(200000, '(') + "1" + std::string(200000, ')') + " }}";
    EXPECT_THAT(load_error({{"chat_template", deep}}, Code::invalid_argument),
                HasSubstr("chat_template: brackets"));
}

TEST_F(ContextReports, SayHowMuchMemoryAContextNeeds) {
    EXPECT_THAT(load_error({{"n_ctx", 2000000000}}, Code::out_of_memory),
                AllOf(HasSubstr("a context of 2000000000 tokens needs 3814.70 GiB"),
                      HasSubstr("GiB are available"), HasSubstr("Use an n_ctx below")));
}

TEST_F(ContextReports, SayWhatIsWrongWithAGrammar) {
    const auto context = open();
    EXPECT_THAT(answer(context, R"({"grammar": "roto ::= \"a\""})"),
                HasSubstr("grammar: there is no rule 'root'"));
    EXPECT_THAT(answer(context, R"({"grammar": "root ::= \"a"})"),
                HasSubstr("grammar: line 1, column 12: '\"' is expected at the end"));
    EXPECT_THAT(answer(context, R"({"grammar": "root ::= \"a\"{2000000000}"})"),
                HasSubstr("2000000000 times"));
    EXPECT_THAT(answer(context, R"({"grammar": "root ::= \"{\" [a-z]+ \"}\"", "grammar_lazy": true,
                                    "grammar_triggers": [{"type": "word", "value": "="}]})"),
                HasSubstr("must begin with the trigger's own text"));
}

TEST_F(ContextReports, ShowPreservedTokensAsText) {
    const auto context = open();
    const std::string options = R"({"logit_bias": [["<|im_start|>", 100]], "n_predict": 2)";
    EXPECT_EQ(answer(context, options + "}"), "");
    EXPECT_EQ(answer(context, options + R"(, "preserved_tokens": ["<|im_start|>"]})"),
              "<|im_start|><|im_start|>");
}

}  // namespace
}  // namespace headrace::wasi_nn
