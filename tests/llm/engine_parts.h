#pragma once
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "llm/engine/compute_context.h"
#include "llm/engine/sequences.h"
#include "llm/engine/statistics.h"
#include "llm/engine/stream.h"
#include "llm/model/context_params.h"
#include "llm/tiny_model.h"

namespace headrace::llm {

/// What an engine's parts stand on, without its loop: a context of 256 tokens, its sequences, and streams.
class EngineParts : public testing::Test {
protected:
    explicit EngineParts(int sequence_count) {
        settings.context.n_ctx = 256;
        settings.context.n_parallel = settings.context.max_sequences = sequence_count;
        settings.cache.ram_mib = 0;
        auto loaded = Model::load(tiny_model(), {});
        if (!loaded.ok()) throw std::runtime_error(loaded.error().message);
        model = loaded.value();
        const auto params = context_params(*model, settings.context);
        auto made = ComputeContext::create(*model, params.value(), [] { return false; });
        if (!made.ok()) throw std::runtime_error(made.error().message);
        context = std::move(made).value();
        sequences.emplace(context->get(), true, 0);
    }

    /// A prompt of that many tokens, all the same one.
    Tokens prompt(std::size_t size, llama_token token = 100) const { return Tokens(size, token); }
    std::unique_ptr<Stream> stream(GenerationRequest request) {
        const auto generation = std::make_shared<Generation>(++last_id, std::move(request));
        auto made = Stream::create(*model, generation, 256);
        if (!made.ok()) throw std::runtime_error(made.error().message);
        return std::move(made).value();
    }
    /// Warnings tokens as those in a sequence's memory.
    void fill(Sequences::Id id, std::size_t count) {
        const Tokens tokens = prompt(count, 200 + id);
        sequences->append(id, tokens.data(), tokens.size());
    }

    Settings settings = tiny_settings();
    std::shared_ptr<const Model> model;
    std::unique_ptr<ComputeContext> context;
    std::optional<Sequences> sequences;
    EngineStatistics counters;
    std::uint64_t last_id = 0;
};

}  // namespace headrace::llm
