#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/result.h"
#include "headrace/headrace.h"
#include "headrace/text_encoder.h"

namespace headrace {

/// What a graph that encodes texts takes and gives.
struct EncoderShape {
    enum class Input : std::uint8_t { ids, mask, types, positions };

    std::vector<Input> inputs;  ///< of the graph, in its order
    std::size_t output = 0;     ///< position of the one that is read
    TextPooling pooling = TextPooling::mean;
    std::int64_t width = 0;  ///< of a vector; 1 of scores

    /// Errors: Code::unsupported with the input or output that is odd.
    static Result<EncoderShape> of(const Executable& executable, std::optional<TextPooling> pooling,
                                   bool ranks);
};

/// A stream of runs of such a graph; one thread at a time.
class EncoderRuns {
public:
    EncoderRuns(const Executable& executable, const EncoderShape& shape, std::int32_t padding);

    /// The vectors (or scores) of texts of at most `length` tokens each: f32 [texts, width], valid until the
    /// next run. threads: 0 for all. Throws headrace::Exception.
    std::span<const float> run(std::span<const TokenizedText* const> texts, std::int64_t length, int threads);

private:
    void fill(std::size_t input, std::span<const TokenizedText* const> texts, std::size_t length);
    void pool(std::span<const TokenizedText* const> texts, std::size_t length);

    EncoderShape shape_;
    std::int32_t padding_;
    Session session_;
    std::vector<DType> input_dtypes_, output_dtypes_;
    std::vector<std::vector<std::int64_t>> inputs_;   // their memory
    std::vector<std::vector<std::int64_t>> outputs_;  // likewise, in units of 8 bytes, which are aligned
    std::vector<float> pooled_;
};

}  // namespace headrace
