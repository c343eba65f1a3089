#pragma once
#include <fmt/format.h>

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "llm/model/model.h"

namespace headrace::wasi_nn {

using namespace llm;

/// A question, the parameters that decide its answer, and the answer it gets when nothing else runs.
struct Turn {
    std::string text, parameters, answer;
    Tokens tokens;  ///< of the answer
};

struct BadInput {
    std::string text, parameters;
    Code code;
};

inline const std::vector<BadInput>& bad_inputs() {
    static const std::vector<BadInput> inputs = {
        {"Hi", R"({"temp": -7})", Code::invalid_argument},
        {"Hi", R"({"n_predict": "many"})", Code::invalid_argument},
        {"Hi", R"({"grammar": "root ::= ("})", Code::invalid_argument},
        {"Hi", R"({"stop_patterns": ["("]})", Code::invalid_argument},
        {"Hi", R"({"lora": [{"id": 5, "scale": 1}]})", Code::invalid_argument},
        {std::string(4000, 'x'), "", Code::prompt_too_long},
    };
    return inputs;
}

/// What one session says, from its number alone.
inline std::vector<Turn> conversation(std::uint64_t seed, int session) {
    std::mt19937_64 random(seed * 1000003u + static_cast<std::uint64_t>(session));
    const auto below = [&](int count) { return static_cast<int>(random() % static_cast<unsigned>(count)); };
    const char* const names[] = {"Ada", "Leo", "Mia"};
    const char* const capitals[] = {"France", "Italy", "Spain", "Japan", "Germany"};
    const char* const words[] = {"hot", "big", "up", "fast", "day"};
    std::vector<Turn> turns{{fmt::format("My name is {}.", names[below(3)]), R"("temp": 0)", "", {}}};
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
            case 0:
                turn.parameters = fmt::format(
                    R"("temp": 0.7, "seed": {}, "top_k": 4, "top_p": 1, "min_p": 0)", below(1000));
                break;
            case 1: turn.parameters = R"("temp": 0, "grammar": "root ::= [0-9a-zA-Z+=., ]+")"; break;
            case 2: turn.parameters = R"("temp": 0, "stop": [" is", ", 7"])"; break;
            default: turn.parameters = R"("temp": 0)"; break;
        }
        turns.push_back(std::move(turn));
    }
    return turns;
}

}  // namespace headrace::wasi_nn
