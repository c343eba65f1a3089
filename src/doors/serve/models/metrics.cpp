#include "doors/serve/models/metrics.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace headrace::serve {

void Histogram::observe(double seconds, std::uint64_t times) {
    const auto at = std::ranges::lower_bound(kBounds, seconds) - kBounds.begin();
    const std::lock_guard lock(mutex_);
    counts_[static_cast<std::size_t>(at)] += times;
    sum_ += seconds * static_cast<double>(times);
}

void Histogram::write(std::string& out, std::string_view name, std::string_view labels) const {
    const std::lock_guard lock(mutex_);
    auto end = std::back_inserter(out);
    std::uint64_t count = 0;
    for (std::size_t i = 0; i < kBounds.size(); ++i)
        fmt::format_to(end, "{}_bucket{{{},le=\"{}\"}} {}\n", name, labels, kBounds[i], count += counts_[i]);
    count += counts_.back();
    fmt::format_to(end, "{}_bucket{{{},le=\"+Inf\"}} {}\n", name, labels, count);
    fmt::format_to(end, "{}_sum{{{}}} {}\n{}_count{{{}}} {}\n", name, labels, sum_, name, labels, count);
}

void RequestCounts::add(const std::string& route, int status) {
    const std::lock_guard lock(mutex_);
    ++counts_[{route, status}];
}

void RequestCounts::write(std::string& out) const {
    write_header(out, "headrace_http_requests_total", "counter", "HTTP requests by route and status");
    const std::lock_guard lock(mutex_);
    for (const auto& [key, count] : counts_)
        write_sample(out, "headrace_http_requests_total",
                     fmt::format("route=\"{}\",status=\"{}\"", key.first, key.second),
                     static_cast<double>(count));
}

void write_header(std::string& out, std::string_view name, std::string_view type, std::string_view help) {
    fmt::format_to(std::back_inserter(out), "# HELP {} {}\n# TYPE {} {}\n", name, help, name, type);
}

void write_sample(std::string& out, std::string_view name, std::string_view labels, double value) {
    auto end = std::back_inserter(out);
    if (labels.empty())
        fmt::format_to(end, "{} {}\n", name, value);
    else
        fmt::format_to(end, "{}{{{}}} {}\n", name, labels, value);
}

void write_pool_metrics(std::string& out, const ModelPool::Counts& counts) {
    const auto write = [&](std::string_view name, std::string_view type, std::string_view help,
                           double value) {
        write_header(out, name, type, help);
        write_sample(out, name, "", value);
    };
    write("headrace_models_loaded_total", "counter", "loads of models", static_cast<double>(counts.loads));
    write("headrace_models_failed_total", "counter", "loads of models that failed",
          static_cast<double>(counts.failed_loads));
    write("headrace_models_unloaded_total", "counter", "models that were given back",
          static_cast<double>(counts.unloads));
    write("headrace_models_load_seconds_total", "counter", "that loads took", counts.load_seconds);
    write("headrace_models_bytes", "gauge", "that models in memory take, about",
          static_cast<double>(counts.bytes));
    write("headrace_models_waiting", "gauge", "requests that wait for a model",
          static_cast<double>(counts.waiting));
}

}  // namespace headrace::serve
