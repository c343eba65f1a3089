#pragma once
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "llm/engine/embedder.h"
#include "llm/engine/engine.h"
#include "llm/engine/memory_file.h"

namespace headrace::llm {

/// What runs a model: an engine, or an embedder for models that only give vectors.
struct Runner {
    std::shared_ptr<Engine> engine;
    std::shared_ptr<Embedder> embedder;

    const Model& model() const { return engine ? engine->model() : embedder->model(); }
};

/// The runner of a file, shared by all of this process that ask for the same one with the same settings. The
/// weights are shared by all that have the same ModelSettings; on remote hosts, the same ContextMemory, too.
/// Both live as long as somebody holds them. Thread-safe: two that ask at once wait for one load.
Result<Runner> open_runner(const std::string& path, const EngineSettings& settings);

/// For weights that are in memory.
Result<Runner> open_runner(const MemoryFile& file, const EngineSettings& settings);

struct RegistryStatistics {
    std::size_t models = 0, engines = 0;
};
RegistryStatistics registry_statistics();

}  // namespace headrace::llm
