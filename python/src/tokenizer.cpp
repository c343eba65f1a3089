#include "headrace/tokenizer.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <utility>

#include "bindings.h"

namespace headrace::python {

namespace nb = nanobind;

void bind_tokenizer(nb::module_& m) {
    nb::class_<Tokenizer>(
        m, "Tokenizer",
        "Texts as numbers of tokens, by a model's file tokenizer.json, as Hugging Face's library "
        "has them. A file that is not covered raises ValueError.")
        .def_static("load", &Tokenizer::load, nb::arg("path"), nb::call_guard<nb::gil_scoped_release>())
        .def_static("parse", &Tokenizer::parse, nb::arg("json"), nb::call_guard<nb::gil_scoped_release>(),
                    "Of the file's content.")
        .def(
            "encode",
            [](const Tokenizer& tokenizer, std::string_view text, std::optional<std::string_view> pair,
               std::int64_t most_tokens, bool special) {
                const EncodeOptions options{.most_tokens = most_tokens, .special = special};
                TokenizedText made =
                    pair ? tokenizer.encode_pair(text, *pair, options) : tokenizer.encode(text, options);
                return std::pair(std::move(made.ids), std::move(made.types));
            },
            nb::arg("text"), nb::arg("pair") = nb::none(), nb::kw_only(), nb::arg("most_tokens") = 0,
            nb::arg("special") = true,
            "The tokens of a text, or of two, and the type of each. most_tokens: cuts what is beyond; 0: as "
            "the "
            "file says. special: with the tokens that the file puts around texts.")
        .def("token_id", &Tokenizer::token_id, nb::arg("content"))
        .def_prop_ro("padding_id", &Tokenizer::padding_id)
        .def("__len__", &Tokenizer::size);
}

}  // namespace headrace::python
