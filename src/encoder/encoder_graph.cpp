#include "encoder/encoder_graph.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace headrace {
namespace {

using Input = EncoderShape::Input;

Result<Input> input_of(const TensorInfo& info) {
    if ((info.dtype != DType::i64 && info.dtype != DType::i32) || info.shape.size() != 2)
        return unsupported("input '{}': graphs of texts take int64 or int32 [batch, sequence]", info.name);
    for (const std::int64_t extent : info.shape)
        if (extent >= 0)
            return unsupported(
                "input '{}' has the fixed extent {}; batch and sequence must be open: export the "
                "model with dynamic axes",
                info.name, extent);
    if (info.name == "input_ids") return Input::ids;
    if (info.name == "attention_mask") return Input::mask;
    if (info.name == "token_type_ids") return Input::types;
    if (info.name == "position_ids") return Input::positions;
    return unsupported(
        "input '{}' is not known; graphs of texts take input_ids, attention_mask, token_type_ids and "
        "position_ids",
        info.name);
}

/// The first output of that rank, or one of a usual name; nothing where there is none.
std::optional<std::size_t> find_output(const std::vector<TensorInfo>& outputs, std::size_t rank,
                                       std::initializer_list<std::string_view> names) {
    std::optional<std::size_t> first;
    for (const std::string_view name : names)
        for (std::size_t i = 0; i < outputs.size(); ++i)
            if (outputs[i].name == name && outputs[i].shape.size() == rank) return i;
    for (std::size_t i = outputs.size(); i-- > 0;)
        if (outputs[i].shape.size() == rank) first = i;
    return first;
}

std::string names_of(const std::vector<TensorInfo>& outputs) {
    std::string text;
    for (const TensorInfo& info : outputs)
        text += fmt::format("{}{} of rank {}", text.empty() ? "" : ", ", info.name, info.shape.size());
    return text;
}

Status choose_output(EncoderShape& shape, const std::vector<TensorInfo>& outputs,
                     std::optional<TextPooling> pooling, bool ranks) {
    const bool has_sentences = std::ranges::any_of(outputs, [](const auto& info) {
        return info.name == "sentence_embedding" && info.shape.size() == 2;
    });
    const auto tokens = find_output(outputs, 3, {"last_hidden_state", "token_embeddings"});
    const auto whole = find_output(outputs, 2, {ranks ? "logits" : "sentence_embedding", "pooler_output"});
    shape.pooling = pooling.value_or(has_sentences || !tokens ? TextPooling::pooled : TextPooling::mean);
    if (ranks) shape.pooling = TextPooling::pooled;
    const auto chosen = shape.pooling == TextPooling::pooled ? whole : tokens;
    if (!chosen)
        return unsupported(
            "no output is {}; the graph has {}",
            shape.pooling == TextPooling::pooled ? "[batch, width]" : "[batch, sequence, width]",
            names_of(outputs));
    const TensorInfo& info = outputs[shape.output = *chosen];
    shape.width = info.shape.back();
    if (info.dtype != DType::f32) return unsupported("output '{}' is not f32", info.name);
    if (shape.width < 1) return unsupported("output '{}' has an open last extent", info.name);
    if (ranks && shape.width != 1)
        return unsupported("output '{}' has {} values for a text; a model that ranks has one", info.name,
                           shape.width);
    return success();
}

}  // namespace

Result<EncoderShape> EncoderShape::of(const Executable& executable, std::optional<TextPooling> pooling,
                                      bool ranks) {
    EncoderShape shape;
    for (const TensorInfo& info : executable.inputs()) {
        HR_ASSIGN(const Input input, input_of(info));
        if (std::ranges::find(shape.inputs, input) != shape.inputs.end())
            return unsupported("input '{}' is there twice", info.name);
        shape.inputs.push_back(input);
    }
    if (std::ranges::find(shape.inputs, Input::ids) == shape.inputs.end())
        return unsupported("the graph has no input input_ids: it encodes no texts");
    HR_TRY(choose_output(shape, executable.outputs(), pooling, ranks));
    return shape;
}

EncoderRuns::EncoderRuns(const Executable& executable, const EncoderShape& shape, std::int32_t padding)
    : shape_(shape), padding_(padding), session_(executable) {
    for (const TensorInfo& info : executable.inputs()) input_dtypes_.push_back(info.dtype);
    for (const TensorInfo& info : executable.outputs()) output_dtypes_.push_back(info.dtype);
    inputs_.resize(input_dtypes_.size());
    outputs_.resize(output_dtypes_.size());
}

void EncoderRuns::fill(std::size_t input, std::span<const TokenizedText* const> texts, std::size_t length) {
    const Input kind = shape_.inputs[input];
    const auto value = [&](const TokenizedText& text, std::size_t i) -> std::int64_t {
        const bool is_there = i < text.ids.size();
        switch (kind) {
            case Input::ids: return is_there ? text.ids[i] : padding_;
            case Input::mask: return is_there;
            case Input::types: return is_there ? text.types[i] : 0;
            case Input::positions: break;
        }
        return static_cast<std::int64_t>(i);
    };
    std::vector<std::int64_t>& memory = inputs_[input];
    memory.resize(texts.size() * length);
    auto* const narrow = reinterpret_cast<std::int32_t*>(memory.data());
    for (std::size_t row = 0; row < texts.size(); ++row)
        for (std::size_t i = 0; i < length; ++i) {
            const std::int64_t number = value(*texts[row], i);
            if (input_dtypes_[input] == DType::i64)
                memory[row * length + i] = number;
            else
                std::memcpy(narrow + row * length + i, &number, sizeof(*narrow));  // the low half comes first
        }
}

/// What vectors of tokens become for each text.
void EncoderRuns::pool(std::span<const TokenizedText* const> texts, std::size_t length) {
    const auto width = static_cast<std::size_t>(shape_.width);
    const auto* const tokens = reinterpret_cast<const float*>(outputs_[shape_.output].data());
    pooled_.assign(texts.size() * width, 0);
    for (std::size_t row = 0; row < texts.size(); ++row) {
        const float* const first = tokens + row * length * width;
        float* const to = pooled_.data() + row * width;
        const std::size_t count = texts[row]->ids.size();
        if (shape_.pooling == TextPooling::cls || shape_.pooling == TextPooling::last) {
            const std::size_t place = shape_.pooling == TextPooling::cls ? 0 : count - 1;
            std::copy_n(first + place * width, width, to);
            continue;
        }
        if (shape_.pooling == TextPooling::max) {
            std::copy_n(first, width, to);
            for (std::size_t i = 1; i < count; ++i)
                for (std::size_t j = 0; j < width; ++j) to[j] = std::max(to[j], first[i * width + j]);
            continue;
        }
        for (std::size_t i = 0; i < count; ++i)
            for (std::size_t j = 0; j < width; ++j) to[j] += first[i * width + j];
        const auto number = static_cast<float>(count);
        const float divisor = shape_.pooling == TextPooling::mean ? number : std::sqrt(number);
        for (std::size_t j = 0; j < width; ++j) to[j] /= divisor;
    }
}

std::span<const float> EncoderRuns::run(std::span<const TokenizedText* const> texts, std::int64_t length,
                                        int threads) {
    const std::vector<std::int64_t> extents = {static_cast<std::int64_t>(texts.size()), length};
    std::vector<InputView> inputs;
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
        fill(i, texts, static_cast<std::size_t>(length));
        inputs.push_back({input_dtypes_[i], extents, inputs_[i].data()});
    }
    const bool is_pooled = shape_.pooling == TextPooling::pooled;
    const std::int64_t needed = extents[0] * (is_pooled ? 1 : length) * shape_.width;
    const auto make_outputs = [&](const std::vector<std::vector<std::int64_t>>& shapes) {
        std::vector<OutputView> views;
        for (std::size_t i = 0; i < shapes.size(); ++i) {
            std::int64_t elements = 1;
            for (const std::int64_t extent : shapes[i]) elements *= extent;
            if (i == shape_.output && elements != needed)
                throw Exception(
                    Code::invalid_argument,
                    fmt::format("the graph's output has {} values for {} texts of {} tokens; {} were due",
                                elements, texts.size(), length, needed));
            const std::size_t bytes = bytes_of(output_dtypes_[i], elements);
            outputs_[i].resize((bytes + 7) / 8);
            views.push_back({outputs_[i].data(), bytes});
        }
        return views;
    };
    session_.run(inputs, make_outputs, {.threads = threads});
    const std::size_t size = texts.size() * static_cast<std::size_t>(shape_.width);
    if (is_pooled) return {reinterpret_cast<const float*>(outputs_[shape_.output].data()), size};
    pool(texts, static_cast<std::size_t>(length));
    return pooled_;
}

}  // namespace headrace
