#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"
#include "headrace/text_encoder.h"

namespace headrace {

/// What the files beside a model say, as sentence-transformers and transformers write them.
struct ModelFolder {
    std::optional<TextPooling> pooling;
    std::optional<bool> normalizes;
    bool lower_cases = false;           ///< texts, before the tokenizer has them
    std::int64_t most_tokens = 0;       ///< 0: nothing
    std::int64_t tokenizer_tokens = 0;  ///< the same without sentence_bert_config.json, as fastembed has it
    std::int64_t positions = 0;         ///< of the model, by config.json; 0: nothing

    /// Reads the folder that a model lies in, or the one above where that is called onnx. Missing files are
    /// no error. ranks: what is said of vectors is not read. Errors: of files that are damaged;
    /// Code::unsupported of a pooling or a module that is not known.
    static Result<ModelFolder> read(const std::string& model, bool ranks = false);
};

/// A file of the model's folder, or of the one above.
std::string file_beside(const std::string& model, const std::string& name);

}  // namespace headrace
