#pragma once
#include <cstring>
#include <random>
#include <string>

#include "fuzz/gguf_image.h"

namespace headrace::llm {

/// A GGUF of the architecture bert with random weights and a head for scores. Its words are single letters.
inline std::string small_ranker() {
    constexpr std::uint32_t kWidth = 32, kFloat = 0;  // ggml's number of the type
    fuzz::GgufImage image = fuzz::small_bert();
    image.tensors.push_back({"cls.output.weight", {kWidth, 1}, kFloat, 0});
    image.tensors.push_back({"cls.output.bias", {1}, kFloat, 0});
    image.place_tensors();
    std::string file = image.header();
    file.resize((file.size() + 31) / 32 * 32);
    std::mt19937 random(7);
    std::normal_distribution<float> weight;
    for (std::uint64_t i = 0; i < image.data_bytes() / sizeof(float); ++i) {
        const float value = weight(random);
        file.append(reinterpret_cast<const char*>(&value), sizeof value);
    }
    return file;
}

}  // namespace headrace::llm
