#pragma once
#include <ggml-backend.h>
#include <llama.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "llm/checks/model_file.h"
#include "llm/model/context_needs.h"
#include "llm/settings.h"
#include "remote/host.h"

namespace headrace::llm {

/// A device as far as placing layers is concerned.
struct Place {
    std::string name;
    std::uint64_t free = 0;  ///< bytes
    double hop_ms = 0;       ///< what a token's way there and back takes, whatever is computed there
};

/// How many layers each place gets: that with the shortest hop is filled first and has the last ones, the
/// next those before, so that what fits on few hosts takes few hops. layers: bytes, caches included; margin:
/// bytes that are none of theirs on each place that is used.
std::vector<int> share_layers(std::span<const std::uint64_t> layers, std::span<const Place> places,
                              std::uint64_t margin);

/// A model's devices and what each gets. hosts outlive all that is placed there.
struct Placement {
    std::vector<std::shared_ptr<remote::Host>> hosts;
    std::vector<ggml_backend_dev_t> devices;  ///< empty: llama.cpp's choice; otherwise ends with null
    std::vector<float> split;                 ///< empty: llama.cpp's choice
    int n_gpu_layers = -1;
    std::uint64_t local_bytes = 0;  ///< of the weights that stay on this machine

    bool is_remote() const { return !hosts.empty(); }
};

/// Whether other machines' memory is asked for.
bool names_remote_hosts(const ModelSettings& settings);

/// Errors: an unknown device, a host that does not answer or has too little memory for what it was given.
Result<Placement> place_model(const ModelFile& file, const ModelSettings& settings,
                              const ContextNeeds& needs);

}  // namespace headrace::llm
