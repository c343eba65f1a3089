#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "headrace/language_model.h"

namespace headrace::llm {

/// What can be said of a GGUF before llama.cpp sees it.
struct ModelFile {
    std::string architecture;
    std::uint64_t bytes = 0;            ///< of all tensors, in all files
    std::vector<std::uint64_t> layers;  ///< bytes of each, and of the output's
    bool embeddings = false;            ///< of an encoder, such as BERT
    bool can_rank = false;              ///< it has what makes a score of a text
    std::uint32_t trained_context = 0;  ///< tokens; 0 where the file does not say
    bool is_recurrent = false;          ///< some layers keep a state in place of keys and values
    std::vector<std::string> parts;     ///< the other files of a model that is split
    Parameters metadata;                ///< of the header; lists are null
};

/// Reads and checks a GGUF's header: that all tensors lie within the file, that the sizes llama.cpp divides
/// by and allocates for are sensible. llama.cpp aborts the process on some files that these checks refuse.
/// overrides: key=type:value, in place of the file's metadata, as llama.cpp will take them.
Result<ModelFile> inspect_model_file(const std::string& path, const std::vector<std::string>& overrides = {});

/// Whether its vectors are pooled by that kind, which llama.cpp has under a name and a number: as is asked
/// for, or else as the file says.
bool pools_by(const ModelFile& file, std::string_view asked, std::string_view name, std::int64_t number);

/// A number of what lies here and there in the files: models of one shape with other weights differ in it.
Result<std::uint64_t> sample_weights(const std::vector<std::string>& files);

/// An error with the numbers when the machine's free memory cannot hold that many bytes of weights.
Status enough_memory(std::uint64_t bytes);

}  // namespace headrace::llm
