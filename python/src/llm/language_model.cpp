#include "language_model.h"

#include <nanobind/stl/vector.h>

#include "conversation.h"
#include "generation.h"
#include "held_model.h"
#include "parameters.h"
#include "text_caster.h"

namespace headrace::python {
namespace {

/// headrace.LanguageModel: a model until it is closed.
class Model {
public:
    explicit Model(SharedModel model) : model_(std::move(model)) {}
    Model(Model&&) noexcept = default;
    ~Model() { release(model_); }

    const SharedModel& open() const {
        if (!model_) throw Exception(Code::invalid_state, "the model is closed");
        return model_;
    }
    void close() {
        if (!model_) return;
        {
            const WithoutGil other_threads_run;
            model_->cancel_all();
        }
        release(model_);
    }

private:
    SharedModel model_;
};

std::string path_text(nb::handle model) {
    if (PyBytes_Check(model.ptr()))
        throw nb::type_error(
            "the model is bytes; a path must be a str, and LanguageModel.from_bytes takes a "
            "file's contents");
    return to_text(nb::module_::import_("os").attr("fspath")(model), "the model's path");
}

/// Parameters of the service around a model, and above them the model's own.
ModelOptions options_of(nb::handle config, nb::handle service) {
    ModelOptions options{to_parameters(service)};
    merge(options.parameters, to_parameters(config));
    return options;
}

Model load(nb::handle model, nb::handle config, nb::handle service) {
    return Model(interruptible([path = path_text(model), options = options_of(config, service)] {
        return share(LanguageModel::load(path, options));
    }));
}

Model load_bytes(const nb::bytes& data, nb::handle config, nb::handle service) {
    const ModelOptions options = options_of(config, service);
    const WithoutGil other_threads_run;
    return Model(share(LanguageModel::load_bytes({data.c_str(), data.size()}, options)));
}

Stream stream(const Model& self, nb::handle prompt, nb::handle parameters) {
    const SharedModel& model = self.open();
    return {model, [model, request = to_request(prompt, parameters)] { return model->stream(request); }};
}

Talk conversation(const Model& self, nb::handle name, nb::handle parameters) {
    const SharedModel& model = self.open();
    const std::string text = to_text(name, "the conversation's name");
    const Parameters values = to_parameters(parameters);
    const WithoutGil other_threads_run;
    return {model, model->conversation(text, values)};
}

Embeddings embeddings(const Model& self, nb::handle texts, nb::handle parameters) {
    return interruptible([model = self.open(), list = to_texts(texts, "texts"),
                          values = to_parameters(parameters)] { return model->embed(list, values); });
}

nb::object embed(const Model& self, nb::handle text, nb::handle parameters) {
    if (!PyUnicode_Check(text.ptr())) return nb::cast(embeddings(self, text, parameters).vectors);
    return nb::cast(embeddings(self, nb::make_tuple(text), parameters).vectors.at(0));
}

std::vector<std::vector<float>> embed_tokens(const Model& self, nb::handle text, nb::handle parameters) {
    return interruptible([model = self.open(), one = to_text(text, "the text"),
                          values = to_parameters(parameters)] { return model->embed_tokens(one, values); })
        .vectors;
}

RankScores rerank(const Model& self, nb::handle query, nb::handle documents, nb::handle parameters) {
    return interruptible([model = self.open(), text = to_text(query, "the query"),
                          list = to_texts(documents, "documents"),
                          values = to_parameters(parameters)] { return model->rerank(text, list, values); });
}

void replace(const Model& self, nb::handle path, nb::handle config, nb::handle service) {
    interruptible([model = self.open(), to = path_text(path), options = options_of(config, service)] {
        model->replace(to, options);
    });
}

template <class Get>
auto asked(const Model& self, Get get) {
    const SharedModel model = self.open();
    const WithoutGil other_threads_run;
    return get(*model);
}

#define HEADRACE_PROMPT \
    "prompt: str | collections.abc.Sequence[Message | collections.abc.Mapping[str, object]]"

void bind_requests(nb::class_<Model>& cls) {
    const auto parameters = nb::arg("parameters").none() = nb::none();
    cls.def(
           "generate",
           without_arguments<const Model>("generate(prompt, ",
                                          [](const Model& self, nb::handle prompt, nb::handle values) {
                                              return stream(self, prompt, values).read_to_end();
                                          }),
           nb::arg("prompt"), parameters, nb::arg("others"),
           nb::sig("def generate(self, " HEADRACE_PROMPT ", parameters: " HEADRACE_PARAMETERS ") -> Reply"),
           "The whole answer to a text, or to messages: Message objects, or mappings with 'role', 'content' "
           "and, where they apply, 'images' (bytes of files), 'reasoning', 'tool_calls' and "
           "'tool_call_id'.\n\n"
           "parameters: of this request, such as temperature, n_predict, stop, grammar (docs/parameters.md). "
           "Errors: LanguageModelError; TypeError and ValueError for what is no prompt or parameter.")
        .def("stream", without_arguments<const Model>("stream(prompt, ", &stream), nb::arg("prompt"),
             parameters, nb::arg("others"),
             nb::sig("def stream(self, " HEADRACE_PROMPT ", parameters: " HEADRACE_PARAMETERS
                     ") -> Generation"),
             "The answer in pieces: an iterator over texts. Arguments and errors as generate's; those of the "
             "engine come while iterating, too.")
        .def("conversation", &conversation, nb::arg("name") = "", parameters,
             nb::sig("def conversation(self, name: str = '', parameters: " HEADRACE_PARAMETERS
                     ") -> Conversation"),
             "A conversation of that name, new or known; without a name one of its own. parameters: defaults "
             "of its requests. At most max_concurrent (64) without a name exist at once; another is an error "
             "with the code 'busy'. Of those with a name max_sessions (100) are remembered.");
}

void bind_vectors(nb::class_<Model>& cls) {
    const auto parameters = nb::arg("parameters").none() = nb::none();
    cls.def("embed", &embed, nb::arg("text"), parameters,
            nb::sig("def embed(self, text: str, parameters: " HEADRACE_PARAMETERS ") -> list[float]"),
            "The vector of a text, or of each text of a list, by a model that is made for it or was loaded "
            "with "
            "{'embeddings': True}. Errors: LanguageModelError.")
        .def("embed", &embed, nb::arg("text"), parameters,
             nb::sig("def embed(self, text: collections.abc.Sequence[str], parameters: " HEADRACE_PARAMETERS
                     ") -> list[list[float]]"))
        .def("embeddings", &embeddings, nb::arg("texts"), parameters,
             nb::sig(
                 "def embeddings(self, texts: collections.abc.Sequence[str], parameters: " HEADRACE_PARAMETERS
                 ") -> Embeddings"),
             "The vectors of texts, and how many tokens were read for them.")
        .def("embed_tokens", &embed_tokens, nb::arg("text"), parameters,
             nb::sig("def embed_tokens(self, text: str, parameters: " HEADRACE_PARAMETERS
                     ") -> list[list[float]]"),
             "A vector for each token of a text, as the model left it, by a model that was loaded with "
             "{'embeddings': True, 'pooling': 'none'}.")
        .def("rerank", &rerank, nb::arg("query"), nb::arg("documents"), parameters,
             nb::sig("def rerank(self, query: str, documents: collections.abc.Sequence[str], "
                     "parameters: " HEADRACE_PARAMETERS ") -> RankScores"),
             "How well each document answers the query, by a model that was loaded with "
             "{'embeddings': True, 'pooling': 'rank'}.");
}

std::vector<std::int32_t> tokenize(const Model& self, nb::handle text, bool special, bool control) {
    return asked(self, [one = to_text(text, "the text"), special, control](auto& model) {
        return model.tokenize(one, special, control);
    });
}

RenderedPrompt render(const Model& self, nb::handle prompt, nb::handle parameters) {
    return asked(self,
                 [request = to_request(prompt, parameters)](auto& model) { return model.render(request); });
}

using Tokens = std::vector<std::int32_t>;

void bind_tokens(nb::class_<Model>& cls) {
    cls.def_prop_ro(
           "info", [](const Model& self) { return asked(self, [](auto& model) { return model.info(); }); },
           "What the file and the load say of the model.")
        .def(
            "tokenize", &tokenize, nb::arg("text"), nb::arg("special") = true, nb::arg("control") = true,
            nb::sig("def tokenize(self, text: str, special: bool = True, control: bool = True) -> list[int]"),
            "The tokens of a text. special: with the marks of begin and end that the model wants. control: "
            "control tokens in the text are read as such.")
        .def(
            "detokenize",
            [](const Model& self, const Tokens& tokens) {
                return asked(self, [&](auto& model) { return model.detokenize(tokens); });
            },
            nb::arg("tokens"), "The text of tokens; control tokens show. Errors: LanguageModelError.")
        .def("render", &render, nb::arg("prompt"), nb::arg("parameters").none() = nb::none(),
             nb::sig("def render(self, " HEADRACE_PROMPT ", parameters: " HEADRACE_PARAMETERS
                     ") -> RenderedPrompt"),
             "What the model would read for a prompt or messages; nothing is done.")
        .def(
            "save_prompt",
            [](const Model& self, const Tokens& tokens, nb::handle path) {
                return interruptible([model = self.open(), tokens, to = path_text(path)] {
                    return model->save_prompt(tokens, to);
                });
            },
            nb::arg("tokens"), nb::arg("path"),
            nb::sig("def save_prompt(self, tokens: collections.abc.Sequence[int], path: str | "
                    "os.PathLike[str]) -> SavedPrompt"),
            "Writes what is remembered of a text that begins with these tokens into a file, from which this "
            "model reads it faster than it would read the text. Errors: LanguageModelError where nothing is.")
        .def(
            "restore_prompt",
            [](const Model& self, nb::handle path) {
                return interruptible(
                    [model = self.open(), from = path_text(path)] { return model->restore_prompt(from); });
            },
            nb::arg("path"), nb::sig("def restore_prompt(self, path: str | os.PathLike[str]) -> SavedPrompt"),
            "Remembers what such a file has. Errors: LanguageModelError where it is another model's or "
            "damaged, "
            "or the cache has no room (`cache_ram`).")
        .def(
            "forget_prompt",
            [](const Model& self, const Tokens& tokens) {
                return asked(self, [&](auto& model) { return model.forget_prompt(tokens); });
            },
            nb::arg("tokens"),
            "Forgets what is remembered of texts that begin like these tokens. Returns how many tokens that "
            "were.");
}

void bind_lifetime(nb::class_<Model>& cls) {
    const auto config = nb::arg("config").none() = nb::none(),
               service = nb::arg("service").none() = nb::none();
    cls.def(
           "__init__",
           [](Model* self, nb::handle model, nb::handle config, nb::handle service,
              const nb::kwargs& others) {
               refuse_arguments("LanguageModel(model, ", others);
               new (self) Model(load(model, config, service));
           },
           nb::arg("model"), config, service, nb::arg("others"),
           nb::sig("def __init__(self, model: str | os.PathLike[str], config: " HEADRACE_PARAMETERS
                   ", service: " HEADRACE_PARAMETERS ") -> None"))
        .def_static("from_bytes", &load_bytes, nb::arg("data"), config, service,
                    nb::sig("def from_bytes(data: bytes, config: " HEADRACE_PARAMETERS
                            ", service: " HEADRACE_PARAMETERS ") -> LanguageModel"),
                    "The model of a GGUF file's contents, which are copied.")
        .def("replace", &replace, nb::arg("model"), config, service,
             nb::sig("def replace(self, model: str | os.PathLike[str], config: " HEADRACE_PARAMETERS
                     ", service: " HEADRACE_PARAMETERS ") -> None"),
             "Puts another model in this one's place: requests that run end on the old model, later ones use "
             "the new one. A load that fails changes nothing.")
        .def(
            "statistics",
            [](const Model& self) { return asked(self, [](auto& model) { return model.statistics(); }); },
            "Requests, tokens, cache and memory.")
        .def_prop_ro(
            "warnings",
            [](const Model& self) { return asked(self, [](auto& model) { return model.warnings(); }); },
            "Parameters of the load that were not taken as they are.")
        .def(
            "cancel_all", [](const Model& self) { asked(self, [](auto& model) { model.cancel_all(); }); },
            "Ends all requests that run or wait, with the code 'cancelled'.")
        .def("close", &Model::close, "Ends what runs and frees the model, once nobody uses it.")
        .def(
            "__enter__", [](nb::handle self) { return nb::borrow(self); },
            nb::sig("def __enter__(self) -> LanguageModel"))
        .def(
            "__exit__", [](Model& self, const nb::args&) { self.close(); },
            nb::sig("def __exit__(self, *exception: object) -> None"));
}

}  // namespace

void bind_language_model(nb::module_& m) {
    nb::class_<Model> cls(
        m, "LanguageModel",
        "One model and its engine.\n\n"
        "model: a GGUF file's path, or one of the `model_aliases` of the configuration. config: the model's "
        "parameters, and defaults for its requests (docs/parameters.md). service: parameters of what is "
        "around "
        "it, such as `model_root` and `log_level`.\n\n"
        "Everything is thread-safe, and requests that run at the same time share batches. Ctrl-C ends every "
        "call of the main thread. Errors: LanguageModelError, and TypeError or ValueError, which name the "
        "parameter.",
        nb::is_weak_referenceable());
    bind_lifetime(cls);
    bind_requests(cls);
    bind_vectors(cls);
    bind_tokens(cls);
    m.def(
        "check_model_file",
        [](nb::handle path) { interruptible([of = path_text(path)] { check_model_file(of); }); },
        nb::arg("path"), nb::sig("def check_model_file(path: str | os.PathLike[str]) -> None"),
        "Whether a GGUF file can be loaded as far as its header and size tell; its weights are not read. "
        "Errors: LanguageModelError.");
}

}  // namespace headrace::python
