#pragma once
#include <algorithm>
#include <chrono>
#include <ctime>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "doors/serve/models/model_record.h"
#include "doors/serve/models/places.h"
#include "doors/serve/pool/model_pool.h"
#include "doors/serve/request/errors.h"
#include "headrace/text_encoder.h"

namespace headrace::serve {

/// A graph that gives vectors of texts, or scores of documents, beside the language models.
class EncoderModel : public Resident {
public:
    /// aliases: of which the first is its id. record: of that id; none: one of its own.
    EncoderModel(TextEncoder encoder, std::vector<std::string> aliases, std::size_t places,
                 std::size_t most_per_client, std::shared_ptr<EncoderRecord> record = nullptr);
    ~EncoderModel() override;

    const TextEncoder& encoder() const { return encoder_; }
    const TextEncoderInfo& info() const { return encoder_.info(); }
    const std::string& id() const { return aliases_.front(); }
    const std::vector<std::string>& aliases() const { return aliases_; }
    bool answers_to(std::string_view name) const {
        return std::ranges::find(aliases_, name) != aliases_.end();
    }
    std::uint64_t resident_bytes() const override { return static_cast<std::uint64_t>(info().bytes); }
    Places& places() { return places_; }
    Histogram& times() { return record_->times; }
    const std::time_t loaded_at;
    const std::chrono::system_clock::time_point modified_at;  ///< its file

    /// A failure of the encoder, without paths of this machine. field: of the request, for what is wrong in
    /// it.
    ApiError error_of(const Exception& error, const std::string& field) const;

private:
    const TextEncoder encoder_;
    const std::vector<std::string> aliases_;
    Places places_;
    const std::shared_ptr<EncoderRecord> record_;
};

}  // namespace headrace::serve
