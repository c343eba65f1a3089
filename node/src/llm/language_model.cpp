#include "language_model.h"

#include <algorithm>
#include <chrono>
#include <mutex>
#include <set>
#include <thread>

#include "calls.h"
#include "records.h"

namespace headrace::node::llm {
namespace {

using SharedModel = std::shared_ptr<LanguageModel>;
using SharedConversation = std::shared_ptr<Conversation>;
using SharedGeneration = std::shared_ptr<Generation>;

/// Every answer that is being written, so that the end of the process can cancel it.
class Generations {
public:
    static Generations& all() {
        static Generations* const only = new Generations;  // threads may use it until the process is gone
        return *only;
    }
    SharedGeneration keep(Generation generation) {
        auto shared = std::make_shared<Generation>(std::move(generation));
        const std::lock_guard lock(mutex_);
        std::erase_if(held_, [](const auto& other) { return other.expired(); });
        held_.push_back(shared);
        return shared;
    }
    void cancel() {
        std::vector<std::weak_ptr<Generation>> held;
        {
            const std::lock_guard lock(mutex_);
            held = held_;
        }
        for (const auto& weak : held)
            if (const auto generation = weak.lock()) generation->cancel();
    }

private:
    std::mutex mutex_;
    std::vector<std::weak_ptr<Generation>> held_;
};

/// A handle that keeps an engine. All are known, so that the end of the process can take it from them.
struct Holder : Handle {
    explicit Holder(Kind of) : Handle(of) {
        const std::lock_guard lock(all().mutex);
        all().holders.insert(this);
    }
    ~Holder() override {
        const std::lock_guard lock(all().mutex);
        all().holders.erase(this);
    }
    virtual void let_go() = 0;

    struct All {
        std::mutex mutex;
        std::set<Holder*> holders;
    };
    static All& all() {
        static All* const only = new All;  // handles may outlive static objects
        return *only;
    }
};

struct ModelHandle : Holder {
    static constexpr Kind kKind = Kind::language_model;
    explicit ModelHandle(SharedModel of) : Holder(kKind), model(std::move(of)) {}
    void let_go() override { model.reset(); }
    SharedModel model;                                                     ///< null once it is disposed of
    std::shared_ptr<const bool> use = std::make_shared<const bool>(true);  ///< each call's that goes on, too
};

/// A conversation keeps its model.
struct ConversationHandle : Holder {
    static constexpr Kind kKind = Kind::conversation;
    ConversationHandle(SharedModel of, SharedConversation with)
        : Holder(kKind), model(std::move(of)), conversation(std::move(with)) {}
    void let_go() override {
        conversation.reset();
        model.reset();
    }
    SharedModel model;
    SharedConversation conversation;
};

struct GenerationHandle : Holder {
    static constexpr Kind kKind = Kind::generation;
    explicit GenerationHandle(SharedGeneration of) : Holder(kKind), generation(std::move(of)) {}
    /// JavaScript holds it no more. A thread that waits for its next piece may.
    ~GenerationHandle() override {
        if (generation) generation->cancel();
    }
    void let_go() override { generation.reset(); }
    SharedGeneration generation;
};

/// Ends all that runs: an engine must not compute while static objects are destroyed, which it uses.
void end_all() {
    Generations::all().cancel();
    end_threads();
    const std::lock_guard lock(Holder::all().mutex);
    for (Holder* holder : Holder::all().holders) holder->let_go();
}

/// The model of a call that goes on, which dispose() waits for.
struct ModelInUse {
    SharedModel model;
    std::shared_ptr<const bool> use;
    LanguageModel* operator->() const { return model.get(); }
};

ModelInUse opened(const Call& call) {
    const auto& handle = call.handle<ModelHandle>(0);
    if (!handle.model) throw Exception(Code::invalid_state, "the model is disposed of; load it again");
    return {handle.model, handle.use};
}

std::string_view name_of_kind(ModelKind kind) {
    switch (kind) {
        case ModelKind::text: return "text";
        case ModelKind::vectors: return "vectors";
        case ModelKind::token_vectors: return "token_vectors";
        case ModelKind::scores: return "scores";
    }
    return "text";
}

/// The promise of what `work` gives, as a value.
template <class Work>
napi_value promise_of(const Call& call, Work work) {
    return Calls::of(call.env()).start([work = std::move(work)]() -> MakeValue {
        return [result = work()](napi_env env) { return to_value(env, result); };
    });
}

napi_value promise_of_generation(const Call& call, std::function<Generation()> begin) {
    return Calls::of(call.env()).start([begin = std::move(begin)]() -> MakeValue {
        auto generation = Generations::all().keep(begin());
        return [generation](napi_env env) { return external(env, new GenerationHandle(generation)); };
    });
}

napi_value undefined_value(napi_env env) { return undefined(env); }

/// For programs that exit without JavaScript's event, such as by process.reallyExit().
struct EndWithProcess {
    ~EndWithProcess() { end_all(); }
};

}  // namespace

napi_value load(const Call& call) {
    return Calls::of(call.env()).start([path = call.text(0), json = call.text(1)]() -> MakeValue {
        auto model = std::make_shared<LanguageModel>(
            LanguageModel::load(path, {.parameters = Parameters::from_json(json)}));
        static const EndWithProcess at_exit;
        return [model, kind = model->kind(), warnings = model->warnings()](napi_env env) {
            return Record(env)
                .add("kind", name_of_kind(kind))
                .add("warnings", to_value(env, warnings))
                .add("handle", external(env, new ModelHandle(model)));
        };
    });
}

napi_value dispose(const Call& call) {
    auto& handle = call.handle<ModelHandle>(0);
    const std::weak_ptr<const bool> uses = std::exchange(handle.use, nullptr);
    return Calls::of(call.env())
        .start([model = std::exchange(handle.model, nullptr), uses]() mutable -> MakeValue {
            constexpr std::chrono::milliseconds kPause(2);
            if (!model) return undefined_value;
            // A call that JavaScript made before this one may reach the engine only now.
            for (model->cancel_all(); !uses.expired(); model->cancel_all())
                std::this_thread::sleep_for(kPause);
            model.reset();
            return undefined_value;
        });
}

napi_value information(const Call& call) {
    return promise_of(call, [model = opened(call)] { return model->info(); });
}

napi_value statistics(const Call& call) {
    return promise_of(call, [model = opened(call)] { return model->statistics(); });
}

napi_value stream(const Call& call) {
    return promise_of_generation(
        call, [model = opened(call), json = call.text(1)] { return model->stream(request_of(json)); });
}

napi_value conversation(const Call& call) {
    return Calls::of(call.env())
        .start([model = opened(call), name = call.text(1), json = call.text(2)]() -> MakeValue {
            auto made =
                std::make_shared<Conversation>(model->conversation(name, Parameters::from_json(json)));
            return [model = model.model, made](napi_env env) {
                return external(env, new ConversationHandle(model, made));
            };
        });
}

napi_value stream_in(const Call& call) {
    return promise_of_generation(
        call, [with = call.handle<ConversationHandle>(0).conversation, message = call.text(1),
               json = call.text(2)] { return with->stream(message, Parameters::from_json(json)); });
}

napi_value messages(const Call& call) {
    return promise_of(call,
                      [with = call.handle<ConversationHandle>(0).conversation] { return with->messages(); });
}

napi_value next(const Call& call) {
    return Calls::of(call.env())
        .start([generation = call.handle<GenerationHandle>(0).generation]() -> MakeValue {
            return [piece = generation->next()](napi_env env) {
                return piece ? text(env, piece->text) : undefined(env);
            };
        });
}

napi_value reply(const Call& call) {
    return promise_of(
        call, [generation = call.handle<GenerationHandle>(0).generation] { return generation->reply(); });
}

napi_value cancel(const Call& call) {
    if (const auto& generation = call.handle<GenerationHandle>(0).generation) generation->cancel();
    return nullptr;
}

napi_value end(const Call&) {
    end_all();
    return nullptr;
}

napi_value embed(const Call& call) {
    return Calls::of(call.env())
        .start([model = opened(call), texts = to_texts(call.env(), call[1]), json = call.text(2),
                of_tokens = to_boolean(call.env(), call[3])]() -> MakeValue {
            const Parameters parameters = Parameters::from_json(json);
            Embeddings made =
                of_tokens ? model->embed_tokens(texts.at(0), parameters) : model->embed(texts, parameters);
            return [vectors = std::move(made.vectors)](napi_env env) {
                std::vector<napi_value> values;
                for (const auto& vector : vectors) values.push_back(to_value(env, vector));
                return list(env, values);
            };
        });
}

napi_value rerank(const Call& call) {
    return promise_of(call, [model = opened(call), query = call.text(1),
                             documents = to_texts(call.env(), call[2]), json = call.text(3)] {
        return model->rerank(query, documents, Parameters::from_json(json)).scores;
    });
}

napi_value tokenize(const Call& call) {
    return promise_of(
        call,
        [model = opened(call), text = call.text(1), special = to_boolean(call.env(), call[2]),
         control = to_boolean(call.env(), call[3])] { return model->tokenize(text, special, control); });
}

napi_value detokenize(const Call& call) {
    std::vector<std::int32_t> tokens;
    for (const std::int64_t token : to_integers(call.env(), call[1]))
        tokens.push_back(static_cast<std::int32_t>(token));
    return Calls::of(call.env()).start([model = opened(call), tokens = std::move(tokens)]() -> MakeValue {
        return [made = model->detokenize(tokens)](napi_env env) { return text(env, made); };
    });
}

}  // namespace headrace::node::llm
