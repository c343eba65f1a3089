#pragma once
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "headrace/graph_writer.h"
#include "headrace/text_encoder.h"

namespace headrace::testing {

/// Words w0 ... w9 and BERT's special tokens, of which [PAD] is 0, [CLS] 2 and [SEP] 3. wN is token 4 + N.
inline std::string word_tokenizer() {
    std::string vocabulary, added;
    const std::vector<std::string> special = {"[PAD]", "[UNK]", "[CLS]", "[SEP]"};
    for (std::size_t i = 0; i < 14; ++i) {
        const std::string token = i < 4 ? special[i] : "w" + std::to_string(i - 4);
        vocabulary += (i ? ",\"" : "\"") + token + "\":" + std::to_string(i);
        if (i < 4)
            added += std::string(i ? "," : "") + "{\"special\":true,\"content\":\"" + token +
                     "\",\"id\":" + std::to_string(i) + "}";
    }
    return "{\"model\":{\"type\":\"WordPiece\",\"vocab\":{" + vocabulary + "}},\"added_tokens\":[" + added +
           "],\"pre_tokenizer\":{\"type\":\"BertPreTokenizer\"},\"post_processor\":{\"type\":"
           "\"BertProcessing\","
           "\"sep\":[\"[SEP]\",3],\"cls\":[\"[CLS]\",2]}}";
}

/// Token t's vector is {t, t * t, mask, type}: last_hidden_state. With `scores`, logits: the sum of all ids
/// that the mask leaves, of each text.
inline std::shared_ptr<const Graph> word_graph(bool scores = false, DType type = DType::i64) {
    GraphWriter w;
    const std::vector<Extent> shape = {Extent::symbol("batch", 1, 1 << 20),
                                       Extent::symbol("sequence", 1, 1 << 20)};
    const auto ids = w.input("input_ids", type, shape);
    const auto mask = w.input("attention_mask", type, shape);
    const auto types = w.input("token_type_ids", type, shape);
    const auto real = [&](GraphWriter::Value value) {
        return w.op("cast", {value}, {{"data_type", DType::f32}})[0];
    };
    const auto numbers = real(ids), kept = real(mask), kinds = real(types);
    if (scores) {
        const auto sum = w.op("reduce_sum", {w.op("mul", {numbers, kept})[0]},
                              {{"axes", std::vector<std::int64_t>{1}}, {"keep_dimensions", true}})[0];
        w.output("logits", sum);
        return w.finish();
    }
    std::vector<GraphWriter::Value> columns;
    for (const auto value : {numbers, w.op("mul", {numbers, numbers})[0], kept, kinds})
        columns.push_back(
            w.op("reshape", {value}, {{"new_shape", std::vector<Extent>{shape[0], shape[1], Extent(1)}}})[0]);
    w.output("last_hidden_state", w.op("concat", columns, {{"axis", std::int64_t{2}}})[0]);
    return w.finish();
}

}  // namespace headrace::testing
