#pragma once
#include <llama-cpp.h>

#include <map>
#include <memory>

#include "base/result.h"
#include "llm/model/model.h"
#include "llm/settings.h"

namespace headrace::llm {

/// A smaller model that guesses what a larger one will say next. For one engine's loop.
class DraftModel {
public:
    /// Errors: a file that cannot be loaded, a vocabulary other than the main model's.
    /// context_tokens: of the main model's context.
    static Result<std::unique_ptr<DraftModel>> load(const Model& main, const EngineSettings& settings,
                                                    int context_tokens);

    /// At most that many tokens that may follow a stream's history, the likeliest each time; fewer where the
    /// draft model gives them less than that probability.
    Tokens propose(std::uint64_t stream, const Tokens& history, int most, float least_probability);
    void forget(std::uint64_t stream);

private:
    struct Place {
        llama_seq_id sequence;
        Tokens tokens;  // in the context's memory
    };
    DraftModel() = default;
    Place* place_of(std::uint64_t stream);
    bool read(Place& place, const Tokens& history);
    bool decode(Place& place, const llama_token* tokens, int count);

    std::shared_ptr<const Model> model_;
    llama_context_ptr context_;
    std::map<std::uint64_t, Place> places_;
    int batch_ = 0;
};

}  // namespace headrace::llm
