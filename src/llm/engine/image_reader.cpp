#include "llm/engine/image_reader.h"

#include <algorithm>
#include <atomic>
#include <optional>
#include <utility>

#include "llm/model/context_params.h"

namespace headrace::llm {
namespace {

constexpr std::size_t kMostRemembered = 64 << 20;  // bytes of embeddings that no stream waits for

}  // namespace

struct ImageReader::Job {
    explicit Job(const ImagePiece& image) : piece(image) {}

    const ImagePiece piece;
    std::atomic<bool> is_wanted = true, is_done = false;
    std::optional<Error> error;  // after is_done, as `rows`
    std::vector<float> rows;

    std::size_t bytes() const { return is_done ? rows.size() * sizeof(float) : 0; }
};

ImageReader::ImageReader(const Model& model, std::function<void()> wake)
    : model_(model), wake_(std::move(wake)) {}

ImageReader::~ImageReader() {
    for (const auto& job : jobs_) job->is_wanted = false;
}

bool ImageReader::keep_back(std::vector<Stream*>& active) {
    std::vector<std::shared_ptr<Job>> wanted;
    const std::size_t before = active.size();
    std::erase_if(active, [&](Stream* stream) {
        const ImagePiece* image = stream->image_from(stream->decoded);
        if (!image || stream->has_ended()) return false;
        const std::shared_ptr<Job>& job = job_of(*image);
        wanted.push_back(job);
        if (!stream->is_at_image()) return false;  // it is computed while the text before it is read
        if (!job->is_done) return true;
        if (job->error) stream->fail(*job->error);
        return job->error.has_value();
    });
    forget_old(wanted);
    return active.size() < before;
}

const std::shared_ptr<ImageReader::Job>& ImageReader::job_of(const ImagePiece& piece) {
    const auto known = std::ranges::find_if(
        jobs_, [&](const auto& job) { return job->piece.id == piece.id && !(job->is_done && job->error); });
    if (known != jobs_.end()) {
        jobs_.splice(jobs_.begin(), jobs_, known);
        return jobs_.front();
    }
    const auto job = std::make_shared<Job>(piece);
    thread_.post([job, &model = model_, wake = wake_] {
        std::optional<ComputeTurn> turn;
        const auto goes_on = [&] {
            turn.reset();
            if (!job->is_wanted) return false;
            turn.emplace(model);
            return true;
        };
        Result<std::vector<float>> rows = model.projector()->encode(job->piece, goes_on);
        turn.reset();
        if (rows.ok())
            job->rows = std::move(rows).value();
        else
            job->error = rows.error();
        job->is_done = true;
        wake();
    });
    return jobs_.emplace_front(job);
}

void ImageReader::forget_old(const std::vector<std::shared_ptr<Job>>& wanted) {
    std::size_t bytes = 0;
    std::erase_if(jobs_, [&](const std::shared_ptr<Job>& job) {
        if (std::ranges::find(wanted, job) != wanted.end()) return false;
        bytes += job->bytes();
        const bool is_kept = job->is_done && !job->error && bytes <= kMostRemembered;
        if (!is_kept) job->is_wanted = false;
        return !is_kept;
    });
}

std::list<std::shared_ptr<ImageReader::Job>>::const_iterator ImageReader::find(
    const ImagePiece& piece) const {
    return std::ranges::find_if(
        jobs_, [&](const auto& job) { return job->piece.id == piece.id && job->is_done && !job->error; });
}

const std::vector<float>& ImageReader::rows(const ImagePiece& piece) const { return (*find(piece))->rows; }

}  // namespace headrace::llm
