#pragma once
#include <functional>
#include <list>
#include <memory>
#include <vector>

#include "llm/blocks/task_thread.h"
#include "llm/engine/stream.h"
#include "llm/model/model.h"

namespace headrace::llm {

/// Has the images of an engine's streams computed on a thread beside it, in pieces that take turns with its
/// steps, and remembers the latest embeddings. For one loop.
class ImageReader {
public:
    /// wake: called when an image is there. Throws std::system_error where the system has no thread.
    ImageReader(const Model& model, std::function<void()> wake);
    ~ImageReader();

    /// Takes out those whose next token is of an image that is not there yet, and fails those whose image
    /// cannot be computed. What no stream waits for is not computed any further. True: some were taken out.
    bool keep_back(std::vector<Stream*>& active);
    /// Whether it has been computed, and is remembered.
    bool has(const ImagePiece& piece) const { return find(piece) != jobs_.end(); }
    /// The embeddings of an image that was read.
    const std::vector<float>& rows(const ImagePiece& piece) const;

private:
    struct Job;
    std::list<std::shared_ptr<Job>>::const_iterator find(const ImagePiece& piece) const;
    const std::shared_ptr<Job>& job_of(const ImagePiece& piece);
    void forget_old(const std::vector<std::shared_ptr<Job>>& wanted);

    const Model& model_;
    const std::function<void()> wake_;
    std::list<std::shared_ptr<Job>> jobs_;  // the latest first
    TaskThread thread_;
};

}  // namespace headrace::llm
