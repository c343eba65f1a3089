#include "llm/model/placement.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/log.h"

namespace headrace::llm {
namespace {

constexpr double kActivationBytes = 32 << 10;  // of a token, there and back
constexpr double kGib = 1024.0 * 1024.0 * 1024.0;

struct Chosen {
    ggml_backend_dev_t device;
    Place place;
    bool is_remote;
};

Error unknown_device(const std::string& name) {
    std::string known;
    for (std::size_t i = 0; i < ggml_backend_dev_count(); ++i)
        known += fmt::format("{}{}", i ? ", " : "", ggml_backend_dev_name(ggml_backend_dev_get(i)));
    return invalid("model.devices: no device is called '{}'; there are: {}, rpc://host:port", name, known);
}

void add_host(const std::shared_ptr<remote::Host>& host, std::vector<Chosen>& chosen) {
    // What is free now: others may have been placed there since it was asked.
    for (std::size_t i = 0; i < host->devices().size(); ++i)
        chosen.push_back({host->devices()[i],
                          {host->name(), host->memory(i).free, host->probe().hop_ms(kActivationBytes)},
                          true});
}

Result<std::vector<Chosen>> open_devices(const ModelSettings& settings, Placement& placement) {
    std::vector<Chosen> chosen;
    for (const std::string& name : settings.devices) {
        if (remote::is_remote(name)) {
            const remote::Patience patience{.silence = remote::Milliseconds(settings.host_timeout_ms)};
            HR_ASSIGN(std::shared_ptr<remote::Host> host, remote::Host::open(name, patience));
            if (std::find(placement.hosts.begin(), placement.hosts.end(), host) != placement.hosts.end())
                return invalid("model.devices: '{}' is named twice", name);
            placement.hosts.push_back(host);
            add_host(host, chosen);
            HR_TRY(host->check());  // what a lost one says of its memory is nothing
            continue;
        }
        ggml_backend_dev_t device = ggml_backend_dev_by_name(name.c_str());
        if (!device) return unknown_device(name);
        Place place{.name = name};
        std::size_t total = 0;
        ggml_backend_dev_memory(device, &place.free, &total);
        chosen.push_back({device, place, false});
    }
    return chosen;
}

/// What llama.cpp makes of shares that the user gave.
std::vector<int> counts_of(std::vector<float> shares, std::size_t places, int layers) {
    shares.resize(places);
    const double sum = std::accumulate(shares.begin(), shares.end(), 0.0);
    std::vector<int> counts(places);
    double below = 0;
    int placed = 0;
    for (std::size_t i = 0; i < places && sum > 0; ++i) {
        below += shares[i];
        const int end = static_cast<int>(std::ceil(below / sum * layers - 1e-6));
        counts[i] = end - placed;
        placed = end;
    }
    return counts;
}

double in_gib(std::uint64_t bytes) { return static_cast<double>(bytes) / kGib; }

/// What devices need beside their layers.
struct Margin {
    std::uint64_t compute;
    int fit_margin_mib;

    std::uint64_t bytes() const { return compute + (static_cast<std::uint64_t>(fit_margin_mib) << 20); }
    std::string text() const {
        return fmt::format("{:.2f} GiB to compute and {} MiB to stay free (fit_margin_mib)", in_gib(compute),
                           fit_margin_mib);
    }
};

Status check_memory(std::span<const std::uint64_t> layers, std::span<const int> counts,
                    std::span<const Chosen> chosen, const Margin& margin) {
    auto first = layers.end() - std::accumulate(counts.begin(), counts.end(), 0);
    for (std::size_t i = 0; i < chosen.size(); first += counts[i++]) {
        const std::uint64_t needed = std::accumulate(first, first + counts[i], std::uint64_t{0});
        if (!chosen[i].is_remote || counts[i] == 0 || needed + margin.bytes() <= chosen[i].place.free)
            continue;
        return failure(
            Code::out_of_memory,
            "device '{}' has {:.2f} GiB free, and its {} layers with their part of the context need {:.2f} "
            "GiB, besides {}. Give it less with tensor_split or n_gpu_layers, leave both out, or use a "
            "smaller n_ctx",
            chosen[i].place.name, in_gib(chosen[i].place.free), counts[i], in_gib(needed), margin.text());
    }
    return success();
}

/// With their caches, which all but the output have.
std::vector<std::uint64_t> with_caches(std::vector<std::uint64_t> layers, std::uint64_t cache) {
    const std::uint64_t count = layers.size() - 1;
    for (std::size_t i = 0; i < count; ++i) layers[i] += (cache + count - 1) / count;
    return layers;
}

/// Fills the nearest devices first.
Result<std::vector<int>> fill(std::span<const std::uint64_t> layers, const ModelSettings& settings,
                              const Margin& margin, std::vector<Chosen>& chosen) {
    std::stable_sort(chosen.begin(), chosen.end(),
                     [](const Chosen& a, const Chosen& b) { return a.place.hop_ms < b.place.hop_ms; });
    std::vector<Place> places;
    for (const Chosen& c : chosen) places.push_back(c.place);
    std::vector<int> counts = share_layers(layers, places, margin.bytes());
    std::reverse(chosen.begin(), chosen.end());  // the first to be filled has the last layers
    std::reverse(counts.begin(), counts.end());
    const int placed = std::accumulate(counts.begin(), counts.end(), 0);
    if (placed == 0 && !layers.empty())
        return failure(
            Code::out_of_memory,
            "device '{}' has {:.2f} GiB free, and not one layer fits: it needs {:.2f} GiB with its part of "
            "the context, besides {}. Use a smaller n_ctx, n_ubatch or fit_margin_mib, or another host",
            places.front().name, in_gib(places.front().free), in_gib(layers.back()), margin.text());
    if (settings.n_gpu_layers > 0 && std::cmp_less(placed, layers.size()))
        return failure(
            Code::out_of_memory,
            "the devices hold {} of the {} layers that n_gpu_layers asks for, which need {:.2f} GiB with "
            "their part of the context; each needs {} besides. Use a smaller n_ctx or n_gpu_layers, or more "
            "hosts",
            placed, layers.size(), in_gib(std::accumulate(layers.begin(), layers.end(), std::uint64_t{0})),
            margin.text());
    return counts;
}

void log_shares(std::span<const int> counts, std::span<const Chosen> chosen, std::size_t layers) {
    for (std::size_t i = 0; i < chosen.size(); ++i)
        HR_LOG(info, {}, "{}: {} of {} layers (hop {:.2f} ms, {:.2f} GiB free)", chosen[i].place.name,
               counts[i], layers, chosen[i].place.hop_ms, static_cast<double>(chosen[i].place.free) / kGib);
    const int placed = std::accumulate(counts.begin(), counts.end(), 0);
    if (std::cmp_less(placed, layers))
        HR_LOG(warn, {}, "{} of {} layers stay on this machine's CPU",
               layers - static_cast<std::size_t>(placed), layers);
}

/// Devices without layers are left out: they would cost memory and a connection for nothing.
void use_shares(std::span<const int> counts, std::span<const Chosen> chosen, Placement& placement) {
    placement.n_gpu_layers = 0;
    for (std::size_t i = 0; i < chosen.size(); ++i) {
        if (counts[i] == 0) continue;
        placement.devices.push_back(chosen[i].device);
        placement.split.push_back(static_cast<float>(counts[i]));
        placement.n_gpu_layers += counts[i];
    }
    std::erase_if(placement.hosts, [&](const auto& host) {
        return std::none_of(host->devices().begin(), host->devices().end(), [&](ggml_backend_dev_t device) {
            return std::find(placement.devices.begin(), placement.devices.end(), device) !=
                   placement.devices.end();
        });
    });
}

Status share(const ModelFile& file, const ModelSettings& settings, const ContextNeeds& needs,
             std::vector<Chosen> chosen, Placement& placement) {
    std::vector<std::uint64_t> layers = with_caches(file.layers, needs.cache);
    if (settings.n_gpu_layers >= 0 && std::cmp_less(settings.n_gpu_layers, layers.size()))
        layers.erase(layers.begin(), layers.end() - settings.n_gpu_layers);
    const Margin margin{needs.compute, settings.fit_margin_mib};
    std::vector<int> counts;
    if (settings.tensor_split.empty()) {
        HR_ASSIGN(counts, fill(layers, settings, margin, chosen));
    } else {
        counts = counts_of(settings.tensor_split, chosen.size(), static_cast<int>(layers.size()));
        HR_TRY(check_memory(layers, counts, chosen, margin));
    }
    log_shares(counts, chosen, file.layers.size());
    use_shares(counts, chosen, placement);
    const auto remote =
        std::accumulate(file.layers.end() - placement.n_gpu_layers, file.layers.end(), std::uint64_t{0});
    placement.local_bytes = file.bytes - std::min(file.bytes, remote);
    return success();
}

}  // namespace

std::vector<int> share_layers(std::span<const std::uint64_t> layers, std::span<const Place> places,
                              std::uint64_t margin) {
    std::vector<std::size_t> order(places.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return places[a].hop_ms < places[b].hop_ms; });
    // From the last layer backwards, as those are what goes to devices when not all do.
    std::vector<int> counts(places.size());
    std::size_t next = layers.size();
    for (std::size_t i : order) {
        std::uint64_t room = places[i].free - std::min(places[i].free, margin);
        while (next > 0 && layers[next - 1] <= room) {
            room -= layers[--next];
            ++counts[i];
        }
    }
    return counts;
}

bool names_remote_hosts(const ModelSettings& settings) {
    return std::any_of(settings.devices.begin(), settings.devices.end(),
                       [](const std::string& name) { return remote::is_remote(name); });
}

Result<Placement> place_model(const ModelFile& file, const ModelSettings& settings,
                              const ContextNeeds& needs) {
    Placement placement{.n_gpu_layers = settings.n_gpu_layers, .local_bytes = file.bytes};
    HR_ASSIGN(std::vector<Chosen> chosen, open_devices(settings, placement));
    if (placement.is_remote() && settings.split_mode == "layer" && !file.layers.empty()) {
        HR_TRY(share(file, settings, needs, std::move(chosen), placement));
    } else {
        for (const Chosen& c : chosen) placement.devices.push_back(c.device);
        placement.split = settings.tensor_split;
        if (placement.is_remote()) placement.local_bytes = 0;
    }
    if (!placement.devices.empty()) placement.devices.push_back(nullptr);
    return placement;
}

}  // namespace headrace::llm
