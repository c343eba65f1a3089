/// A chat with a GGUF model: answers are shown while they are written.
#include <headrace/language_model.h>

#include <cstdio>
#include <iostream>
#include <string>

int main(int count, char** arguments) {
    if (count != 2) return std::fprintf(stderr, "usage: cpp_chat model.gguf\n"), 2;
    try {
        auto model = headrace::LanguageModel::load(arguments[1], {.parameters = {{"n_ctx", 4096}}});
        auto conversation = model.conversation();
        std::string line;
        while (std::cout << "> " << std::flush && std::getline(std::cin, line)) {
            auto answer = conversation.stream(line, {{"temperature", 0}});
            while (const auto piece = answer.next()) std::cout << piece->text << std::flush;
            std::cout << "\n[" << answer.reply().generated_tokens << " tokens]\n";
        }
    } catch (const headrace::Exception& error) {
        std::fprintf(stderr, "cpp_chat: %s\n", error.what());
        return 1;
    }
}
