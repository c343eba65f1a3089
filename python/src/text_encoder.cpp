#include "headrace/text_encoder.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <array>
#include <utility>

#include "arrays.h"
#include "bindings.h"
#include "options.h"

namespace headrace::python {

namespace nb = nanobind;

namespace {

constexpr std::array<std::pair<const char*, TextPooling>, 6> kPoolings = {{
    {"mean", TextPooling::mean},
    {"cls", TextPooling::cls},
    {"last", TextPooling::last},
    {"max", TextPooling::max},
    {"mean_sqrt_length", TextPooling::mean_sqrt_length},
    {"pooled", TextPooling::pooled},
}};

TextPooling pooling_of(const std::string& name) {
    for (const auto& [known, pooling] : kPoolings)
        if (name == known) return pooling;
    throw Exception(Code::invalid_argument,
                    "pooling is '" + name + "'; it must be mean, cls, last, max, mean_sqrt_length or pooled");
}

const char* name_of(TextPooling pooling) {
    for (const auto& [name, known] : kPoolings)
        if (pooling == known) return name;
    return "";
}

TextEncoder load_encoder(const std::string& path, const std::string& tokenizer,
                         const std::optional<std::string>& pooling, std::optional<bool> normalizes,
                         std::int64_t most_tokens, bool sentence_config, bool ranks, int threads,
                         const std::string& precision) {
    TextEncoderOptions options{.tokenizer = tokenizer,
                               .normalizes = normalizes,
                               .most_tokens = most_tokens,
                               .sentence_config = sentence_config,
                               .ranks = ranks};
    if (pooling) options.pooling = pooling_of(*pooling);
    options.compile.threads = threads;
    options.compile.precision = to_precision(precision);
    return TextEncoder::load(path, options);
}

/// f32 [texts, width]
nb::object to_array(const TextVectors& made, std::int64_t width) {
    ArrayWriter writer(DType::f32, {static_cast<std::int64_t>(made.vectors.size()), width});
    auto* to = static_cast<float*>(writer.view().data);
    for (const std::vector<float>& vector : made.vectors) to = std::ranges::copy(vector, to).out;
    return writer.finish();
}

}  // namespace

void bind_text_encoder(nb::module_& m) {
    const nb::call_guard<nb::gil_scoped_release> unlocked;
    nb::class_<TextEncoder>(m, "TextEncoder",
                            "Vectors of texts, or scores of documents, by a graph file (.hrg) or an ONNX "
                            "model and the files in its "
                            "folder: tokenizer.json, and those of sentence-transformers.")
        .def_static("load", &load_encoder, nb::arg("path"), nb::kw_only(), nb::arg("tokenizer") = "",
                    nb::arg("pooling") = nb::none(), nb::arg("normalizes") = nb::none(),
                    nb::arg("most_tokens") = 0, nb::arg("sentence_config") = true, nb::arg("ranks") = false,
                    nb::arg("threads") = 0, nb::arg("precision") = "exact", unlocked,
                    "pooling: mean, cls, last, max, mean_sqrt_length or pooled. sentence_config: whether "
                    "sentence_bert_config.json counts. ranks: the model is a "
                    "cross-encoder. precision: as compile() has it. What is not given "
                    "the folder says.")
        .def(
            "embed",
            [](const TextEncoder& encoder, const std::vector<std::string>& texts) {
                return encoder.embed(texts).vectors;
            },
            nb::arg("texts"), unlocked, "A vector of each text.")
        .def(
            "embed_array",
            [](const TextEncoder& encoder, const std::vector<std::string>& texts) {
                TextVectors made;
                {
                    const nb::gil_scoped_release others_run;
                    made = encoder.embed(texts);
                }
                return to_array(made, encoder.info().width);
            },
            nb::arg("texts"),
            nb::sig("def embed_array(self, texts: collections.abc.Sequence[str]) -> numpy.ndarray"),
            "The same as an array: float32 [texts, width].")
        .def(
            "rank",
            [](const TextEncoder& encoder, std::string_view query,
               const std::vector<std::string>& documents) { return encoder.rank(query, documents).scores; },
            nb::arg("query"), nb::arg("documents"), unlocked, "What the model gives for each document.")
        .def(
            "tokenize",
            [](const TextEncoder& encoder, const std::vector<std::string>& texts) {
                std::vector<std::pair<std::vector<std::int32_t>, std::vector<std::int32_t>>> made;
                for (TokenizedText& text : encoder.tokenize(texts))
                    made.emplace_back(std::move(text.ids), std::move(text.types));
                return made;
            },
            nb::arg("texts"), unlocked, "Of each text the tokens that embed() reads, and their types.")
        .def_prop_ro("tokenizer", &TextEncoder::tokenizer, nb::rv_policy::copy)
        .def_prop_ro(
            "pooling", [](const TextEncoder& encoder) { return name_of(encoder.info().pooling); },
            "What load() was told, or found.")
        .def_prop_ro("normalizes", [](const TextEncoder& encoder) { return encoder.info().normalizes; })
        .def_prop_ro("width", [](const TextEncoder& encoder) { return encoder.info().width; })
        .def_prop_ro("most_tokens", [](const TextEncoder& encoder) { return encoder.info().most_tokens; });
}

}  // namespace headrace::python
