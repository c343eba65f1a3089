#pragma once
#include <algorithm>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "doors/serve/models/metrics.h"
#include "headrace/language_model.h"
#include "headrace/text_encoder.h"

namespace headrace::serve {

/// sum += part, or sum -= part, of what only grows.
void count(LanguageModelStatistics& sum, const LanguageModelStatistics& part, bool adds);
void count(TextEncoderStatistics& sum, const TextEncoderStatistics& part, bool adds);
/// Whether anybody asked for anything.
inline bool has_worked(const LanguageModelStatistics& of) { return of.submitted > 0; }
inline bool has_worked(const TextEncoderStatistics& of) { return of.calls > 0; }
/// Adds the statistics of the present.
void add_present(LanguageModelStatistics& sum, const LanguageModelStatistics& part);
void add_present(TextEncoderStatistics& sum, const TextEncoderStatistics& part);

/// What was counted under one name, through all loads of its model: counters never begin anew, however often
/// it is given back. Thread-safe.
template <class Model, class Statistics, class Times>
class ModelRecord {
public:
    explicit ModelRecord(std::string id) : id_(std::move(id)) {}

    const std::string& id() const { return id_; }
    /// What the model counted before for others who have its engine is not this name's; what its own load
    /// counted is.
    void begin(const void* holder, const Model& model) {
        const std::lock_guard lock(mutex_);
        const Statistics before = model.statistics();
        parts_.push_back({holder, model, has_worked(before) ? before : Statistics()});
    }
    void end(const void* holder) {
        const std::lock_guard lock(mutex_);
        const auto part = std::ranges::find(parts_, holder, &Part::holder);
        if (part == parts_.end()) return;
        count(past_, part->model.statistics(), true);
        count(past_, part->start, false);
        parts_.erase(part);
    }
    Statistics statistics() const {
        const std::lock_guard lock(mutex_);
        Statistics sum = past_;
        for (const Part& part : parts_) {
            const Statistics now = part.model.statistics();
            count(sum, now, true);
            count(sum, part.start, false);
            add_present(sum, now);
        }
        return sum;
    }

    Times times;

private:
    struct Part {
        const void* holder;
        Model model;
        Statistics start;
    };
    const std::string id_;
    mutable std::mutex mutex_;
    Statistics past_;
    std::vector<Part> parts_;
};

using LanguageRecord = ModelRecord<LanguageModel, LanguageModelStatistics, ModelMetrics>;
using EncoderRecord = ModelRecord<TextEncoder, TextEncoderStatistics, Histogram>;

/// A server's records, in the order of the first loads.
template <class Record>
class ModelRecords {
public:
    std::shared_ptr<Record> of(const std::string& id) {
        const std::lock_guard lock(mutex_);
        for (const auto& record : all_)
            if (record->id() == id) return record;
        return all_.emplace_back(std::make_shared<Record>(id));
    }
    std::vector<std::shared_ptr<Record>> all() const {
        const std::lock_guard lock(mutex_);
        return all_;
    }

private:
    mutable std::mutex mutex_;
    std::vector<std::shared_ptr<Record>> all_;
};

/// Metrics of models and their engines, in Prometheus' text format.
void write_model_metrics(std::string& out, const std::vector<std::shared_ptr<LanguageRecord>>& models);
void write_encoder_metrics(std::string& out, const std::vector<std::shared_ptr<EncoderRecord>>& encoders);

}  // namespace headrace::serve
