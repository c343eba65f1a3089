#pragma once
#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "doors/serve/pool/model_pool.h"

namespace headrace::serve {

/// Counts of seconds, with bounds that suit answers of language models. Thread-safe.
class Histogram {
public:
    static constexpr std::array kBounds = {0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25,
                                           0.5,   1.0,    2.5,   5.0,  10.0,  30.0, 60.0};

    void observe(double seconds, std::uint64_t times = 1);
    /// In Prometheus' text format; labels: "model=\"x\"".
    void write(std::string& out, std::string_view name, std::string_view labels) const;

private:
    mutable std::mutex mutex_;
    std::array<std::uint64_t, kBounds.size() + 1> counts_{};
    double sum_ = 0;
};

/// What a server measures of one model's requests, beside what its engine counts.
struct ModelMetrics {
    Histogram first_token, between_tokens, queue, whole;
};

/// Requests by route and status.
class RequestCounts {
public:
    void add(const std::string& route, int status);
    void write(std::string& out) const;

private:
    mutable std::mutex mutex_;
    std::map<std::pair<std::string, int>, std::uint64_t> counts_;
};

/// model="x", as a label.
std::string model_label(std::string_view id);

/// Metrics of models that come and go.
void write_pool_metrics(std::string& out, const ModelPool::Counts& counts);

/// "# HELP ... # TYPE ..." lines.
void write_header(std::string& out, std::string_view name, std::string_view type, std::string_view help);
void write_sample(std::string& out, std::string_view name, std::string_view labels, double value);

}  // namespace headrace::serve
