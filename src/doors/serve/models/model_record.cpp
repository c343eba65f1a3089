#include "doors/serve/models/model_record.h"

namespace headrace::serve {
namespace {

template <class Statistics, class Number>
void count_each(Statistics& sum, const Statistics& part, bool adds,
                std::initializer_list<Number Statistics::*> counters) {
    for (const auto counter : counters) sum.*counter += adds ? part.*counter : -(part.*counter);
}

}  // namespace

void count(LanguageModelStatistics& sum, const LanguageModelStatistics& part, bool adds) {
    using S = LanguageModelStatistics;
    count_each(sum, part, adds,
               {&S::submitted, &S::finished, &S::failed, &S::cancelled, &S::rejected, &S::prompt_tokens,
                &S::cached_tokens, &S::generated_tokens, &S::drafted_tokens, &S::accepted_tokens, &S::drafts,
                &S::stream_steps, &S::steps, &S::pauses, &S::evictions, &S::disk_cached_tokens,
                &S::disk_written_tokens, &S::disk_failures});
    count_each(sum, part, adds, {&S::prompt_ms, &S::decode_ms});
    if (sum.accepted_at.size() < part.accepted_at.size()) sum.accepted_at.resize(part.accepted_at.size());
    for (std::size_t i = 0; i < part.accepted_at.size(); ++i)
        sum.accepted_at[i] += adds ? part.accepted_at[i] : -part.accepted_at[i];
    sum.longest_request = std::max(sum.longest_request, part.longest_request);
}

void count(TextEncoderStatistics& sum, const TextEncoderStatistics& part, bool adds) {
    using S = TextEncoderStatistics;
    count_each(
        sum, part, adds,
        {&S::calls, &S::finished, &S::failed, &S::cancelled, &S::texts, &S::tokens, &S::padding, &S::runs});
}

void add_present(LanguageModelStatistics& sum, const LanguageModelStatistics& part) {
    using S = LanguageModelStatistics;
    count_each(sum, part, true, {&S::running, &S::waiting, &S::remembered_tokens, &S::ram_cache_bytes});
    sum.disk_cache_bytes = part.disk_cache_bytes;  // of the folder
    sum.process_resident_bytes = part.process_resident_bytes;
}

void add_present(TextEncoderStatistics& sum, const TextEncoderStatistics& part) {
    using S = TextEncoderStatistics;
    count_each(sum, part, true, {&S::waiting, &S::running});
}

}  // namespace headrace::serve
