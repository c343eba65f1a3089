#pragma once
#include <memory>
#include <string>

#include "base/result.h"
#include "llm/engine/embedder.h"
#include "llm/engine/engine.h"

namespace headrace::llm {

/// What a graph handle stands for: an engine, or an embedder for models that only give vectors.
struct Runner {
    std::shared_ptr<Engine> engine;
    std::shared_ptr<Embedder> embedder;

    const Model& model() const { return engine ? engine->model() : embedder->model(); }
};

/// The runner of a file, shared by all of this process that ask for the same one with the same settings of
/// model, context, queue and cache. The weights are shared even where only the latter differ. Both live as
/// long as somebody holds them. Thread-safe: two that ask at once wait for one load.
Result<Runner> open_runner(const std::string& path, const Settings& settings);

/// For weights that are in memory. They are copied into a file without a name.
Result<Runner> open_runner(std::string_view bytes, const Settings& settings);

struct RegistryStatistics {
    size_t models = 0, engines = 0;
};
RegistryStatistics registry_statistics();

}  // namespace headrace::llm
