#include "doors/serve/models/encoder_model.h"

#include <fmt/format.h>

#include "doors/serve/models/served_model.h"

namespace headrace::serve {
namespace {

struct EncoderCount {
    std::string_view name, type, help;
    double (*value)(const TextEncoderStatistics&);
};

template <auto Member>
double encoder_count(const TextEncoderStatistics& statistics) {
    return static_cast<double>(statistics.*Member);
}

using E = TextEncoderStatistics;
const EncoderCount kEncoderCounts[] = {
    {"headrace_encoder_requests_total", "counter", "requests for vectors or scores",
     encoder_count<&E::calls>},
    {"headrace_encoder_requests_finished_total", "counter", "of these, answered",
     encoder_count<&E::finished>},
    {"headrace_encoder_requests_failed_total", "counter", "of these, failed", encoder_count<&E::failed>},
    {"headrace_encoder_requests_cancelled_total", "counter", "of these, whose client went away",
     encoder_count<&E::cancelled>},
    {"headrace_encoder_texts_total", "counter", "texts that were read", encoder_count<&E::texts>},
    {"headrace_encoder_tokens_total", "counter", "tokens that were read", encoder_count<&E::tokens>},
    {"headrace_encoder_padding_tokens_total", "counter", "tokens that filled up batches",
     encoder_count<&E::padding>},
    {"headrace_encoder_runs_total", "counter", "batches that were computed", encoder_count<&E::runs>},
    {"headrace_encoder_texts_waiting", "gauge", "texts that wait", encoder_count<&E::waiting>},
    {"headrace_encoder_runs_running", "gauge", "batches that run", encoder_count<&E::running>},
};

}  // namespace

EncoderModel::EncoderModel(TextEncoder encoder, std::vector<std::string> aliases, std::size_t places,
                           std::size_t most_per_client, std::shared_ptr<EncoderRecord> record)
    : loaded_at(std::time(nullptr)),
      modified_at(change_of(encoder.info().path)),
      encoder_(std::move(encoder)),
      aliases_(std::move(aliases)),
      places_(places, most_per_client),
      record_(record ? std::move(record) : std::make_shared<EncoderRecord>(id())) {
    record_->begin(this, encoder_);
}

EncoderModel::~EncoderModel() { record_->end(this); }

ApiError EncoderModel::error_of(const Exception& error, const std::string& field) const {
    const std::string message = without_paths(error.what(), info().path);
    if (error.code() == Code::invalid_argument) return wrong_field(field, "is wrong: " + message);
    const ApiError whole = api_error(error);
    ApiError shown(whole.status, whole.type, message);
    shown.retry_after = whole.retry_after;
    return shown;
}

void write_encoder_metrics(std::string& out, const std::vector<std::shared_ptr<EncoderRecord>>& encoders) {
    if (encoders.empty()) return;
    std::vector<std::pair<std::string, TextEncoderStatistics>> all;
    for (const auto& model : encoders) all.emplace_back(model_label(model->id()), model->statistics());
    for (const EncoderCount& count : kEncoderCounts) {
        write_header(out, count.name, count.type, count.help);
        for (const auto& [label, statistics] : all)
            write_sample(out, count.name, label, count.value(statistics));
    }
    constexpr std::string_view kTimes = "headrace_encoder_request_seconds";
    write_header(out, kTimes, "histogram", "from a request for vectors or scores to its answer");
    for (std::size_t i = 0; i < encoders.size(); ++i) encoders[i]->times.write(out, kTimes, all[i].first);
}

}  // namespace headrace::serve
