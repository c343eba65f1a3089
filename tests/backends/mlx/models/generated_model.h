#pragma once
#include <string>

#include "ggml.h"

namespace headrace::mlx {

enum class Architecture { llama, qwen3moe, gemma2, gemma3, mamba2, bert };
/// As llama.cpp calls it.
const char* name_of(Architecture architecture);

/// A small model with random weights, as a GGUF file of the process that goes with the object.
class GeneratedModel {
public:
    /// Matrices of `type`; with `as_f32` the same values in f32, so that both files mean one model.
    GeneratedModel(Architecture architecture, ggml_type type, bool as_f32 = false);
    ~GeneratedModel();
    GeneratedModel(const GeneratedModel&) = delete;
    GeneratedModel& operator=(const GeneratedModel&) = delete;

    const std::string& path() const { return path_; }

private:
    std::string path_;
};

}  // namespace headrace::mlx
