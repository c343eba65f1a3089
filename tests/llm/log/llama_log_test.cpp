#include <ggml.h>
#include <gmock/gmock.h>
#include <llama.h>

#include <thread>

#include "base/log.h"
#include "base/temporary_log.h"
#include "llm/log/llama_log.h"

namespace headrace::llm {
namespace {

using testing::ElementsAre;
using testing::EndsWith;

class LlamaLog : public TemporaryLog {
protected:
    LlamaLog() { capture_llama_log(); }

    /// A message as llama.cpp and ggml would give it to their callback.
    static void say(ggml_log_level level, const char* text) {
        ggml_log_callback callback = nullptr;
        void* data = nullptr;
        llama_log_get(&callback, &data);
        callback(level, text, data);
    }
};

TEST_F(LlamaLog, JoinsPiecesToLines) {
    configure(LogLevel::debug);
    say(GGML_LOG_LEVEL_WARN, "loading ");
    say(GGML_LOG_LEVEL_CONT, ".");
    say(GGML_LOG_LEVEL_CONT, ".");
    say(GGML_LOG_LEVEL_CONT, " done\nsecond");
    say(GGML_LOG_LEVEL_CONT, " line\n");
    say(GGML_LOG_LEVEL_CONT, "\n");
    say(GGML_LOG_LEVEL_INFO, "detail\n");
    EXPECT_THAT(lines(), ElementsAre(EndsWith(" warn  loading .. done"), EndsWith(" warn  second line"),
                                     EndsWith(" info  detail")));
}

TEST_F(LlamaLog, EndsALineWhereAnotherMessageStarts) {
    configure(LogLevel::debug);
    say(GGML_LOG_LEVEL_INFO, "no newline");
    say(GGML_LOG_LEVEL_ERROR, "failed\n");
    say(GGML_LOG_LEVEL_NONE, "plain\n");
    say(GGML_LOG_LEVEL_DEBUG, "small\n");
    EXPECT_THAT(lines(), ElementsAre(EndsWith(" info  no newline"), EndsWith(" error failed"),
                                     EndsWith(" info  plain"), EndsWith(" debug small")));
}

TEST_F(LlamaLog, ShowsItsDetailsAtTheLevelDebugOnly) {
    configure(LogLevel::info);
    say(GGML_LOG_LEVEL_INFO, "detail ");
    say(GGML_LOG_LEVEL_CONT, "goes on\n");
    say(GGML_LOG_LEVEL_WARN, "warning\n");
    configure(LogLevel::error);
    say(GGML_LOG_LEVEL_WARN, "warning, too\n");
    EXPECT_THAT(lines(), ElementsAre(EndsWith(" warn  warning")));
}

TEST_F(LlamaLog, KeepsThreadsPiecesApart) {
    configure(LogLevel::debug);
    say(GGML_LOG_LEVEL_WARN, "here ");
    std::thread([] { say(GGML_LOG_LEVEL_WARN, "there, without an end"); }).join();
    say(GGML_LOG_LEVEL_CONT, "and on\n");
    EXPECT_THAT(lines(), ElementsAre(EndsWith("there, without an end"), EndsWith("here and on")));
}

TEST_F(LlamaLog, ShowsWhyAModelCannotBeLoaded) {
    configure(LogLevel::info);
    EXPECT_EQ(llama_model_load_from_file((folder_ + "/none.gguf").c_str(), llama_model_default_params()),
              nullptr);
    EXPECT_NE(text().find("none.gguf"), std::string::npos) << text();
    EXPECT_EQ(text().find(" info "), std::string::npos) << text();
}

}  // namespace
}  // namespace headrace::llm
