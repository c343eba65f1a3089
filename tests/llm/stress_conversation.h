#pragma once
#include <fmt/format.h>

#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace headrace::llm {

/// A question, the parameters that decide its answer, and the answer it gets when nothing else runs.
struct Turn {
    std::string text, parameters, answer;
};

/// What one session says, from its number alone.
inline std::vector<Turn> conversation(std::uint64_t seed, int session) {
    std::mt19937_64 random(seed * 1000003u + static_cast<std::uint64_t>(session));
    const auto below = [&](int count) { return static_cast<int>(random() % static_cast<unsigned>(count)); };
    const char* const names[] = {"Ada", "Leo", "Mia"};
    const char* const capitals[] = {"France", "Italy", "Spain", "Japan", "Germany"};
    const char* const words[] = {"hot", "big", "up", "fast", "day"};
    std::vector<Turn> turns{{fmt::format("My name is {}.", names[below(3)]), R"("temp": 0)", ""}};
    for (int i = 0; i < 5; ++i) {
        Turn turn;
        switch (below(5)) {
            case 0: turn.text = fmt::format("What is {}+{}?", below(20), below(20)); break;
            case 1: turn.text = fmt::format("What is the capital of {}?", capitals[below(5)]); break;
            case 2: turn.text = fmt::format("What is the opposite of {}?", words[below(5)]); break;
            case 3: turn.text = "What is my name?"; break;
            default: turn.text = fmt::format("Count from {} to {}.", below(9), 10 + below(5)); break;
        }
        switch (below(6)) {
            case 0: turn.parameters = fmt::format(R"("temp": 0.7, "seed": {})", below(1000)); break;
            case 1: turn.parameters = R"("temp": 0, "grammar": "root ::= [0-9a-zA-Z+=., ]+")"; break;
            case 2: turn.parameters = R"("temp": 0, "stop": [" is", ", 7"])"; break;
            default: turn.parameters = R"("temp": 0)"; break;
        }
        turns.push_back(std::move(turn));
    }
    return turns;
}

}  // namespace headrace::llm
