/// Fuzzes the loading of language models: damaged GGUF files.
#include "base/log.h"
#include "checkout.h"
#include "fuzz/fuzz_main.h"
#include "fuzz/model_file_target.h"

int main(int argc, char** argv) {
    using namespace headrace;
    (void)set_log(LogLevel::none, "text", "");
    return fuzz::fuzz_main(argc, argv, "Fuzzes the loading of language models.",
                           {fuzz::model_file_target(checkout_path("models/tiny-chat-q8_0.gguf"))});
}
