#include "headrace/text_encoder.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include "bindings.h"

namespace headrace::python {

namespace nb = nanobind;

namespace {

TextPooling pooling_of(const std::string& name) {
    if (name == "mean") return TextPooling::mean;
    if (name == "cls") return TextPooling::cls;
    if (name == "last") return TextPooling::last;
    if (name == "pooled") return TextPooling::pooled;
    throw Exception(Code::invalid_argument,
                    "pooling is '" + name + "'; it must be mean, cls, last or pooled");
}

TextEncoder load_encoder(const std::string& path, const std::string& tokenizer,
                         const std::optional<std::string>& pooling, std::optional<bool> normalises,
                         std::int64_t most_tokens, bool ranks, int threads) {
    TextEncoderOptions options{
        .tokenizer = tokenizer, .normalises = normalises, .most_tokens = most_tokens, .ranks = ranks};
    if (pooling) options.pooling = pooling_of(*pooling);
    options.compile.threads = threads;
    return TextEncoder::load(path, options);
}

}  // namespace

void bind_text_encoder(nb::module_& m) {
    const nb::call_guard<nb::gil_scoped_release> unlocked;
    nb::class_<TextEncoder>(
        m, "TextEncoder",
        "Vectors of texts, or scores of documents, by a graph file (.hrg) and the files in its "
        "folder: tokenizer.json, and those of sentence-transformers.")
        .def_static(
            "load", &load_encoder, nb::arg("path"), nb::kw_only(), nb::arg("tokenizer") = "",
            nb::arg("pooling") = nb::none(), nb::arg("normalises") = nb::none(), nb::arg("most_tokens") = 0,
            nb::arg("ranks") = false, nb::arg("threads") = 0, unlocked,
            "pooling: mean, cls, last or pooled. ranks: the model is a cross-encoder. What is not given "
            "the folder says.")
        .def(
            "embed",
            [](const TextEncoder& encoder, const std::vector<std::string>& texts) {
                return encoder.embed(texts).vectors;
            },
            nb::arg("texts"), unlocked, "A vector of each text.")
        .def(
            "rank",
            [](const TextEncoder& encoder, std::string_view query,
               const std::vector<std::string>& documents) { return encoder.rank(query, documents).scores; },
            nb::arg("query"), nb::arg("documents"), unlocked, "What the model gives for each document.")
        .def_prop_ro("tokenizer", &TextEncoder::tokenizer, nb::rv_policy::copy)
        .def_prop_ro("width", [](const TextEncoder& encoder) { return encoder.info().width; })
        .def_prop_ro("most_tokens", [](const TextEncoder& encoder) { return encoder.info().most_tokens; });
}

}  // namespace headrace::python
