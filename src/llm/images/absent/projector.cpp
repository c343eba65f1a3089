#include "llm/images/projector.h"

namespace headrace::llm {

// Where mtmd was not compiled, nothing but load is ever called: there is no projector.

struct Projector::Impl {};

Projector::~Projector() = default;

Result<std::unique_ptr<Projector>> Projector::load(const ModelSettings& settings, const llama_model*) {
    return unsupported("mmproj {}: this build reads no images; `make build` makes one that does",
                       settings.mmproj)
        .of_parameter("mmproj");
}

const std::string& Projector::marker() {
    static const std::string none;
    return none;
}

Result<ImagePrompt> Projector::tokenize(std::string_view, const std::vector<const Image*>&) const {
    return unsupported("this build reads no images");
}

Result<std::vector<float>> Projector::encode(const ImagePiece&, const std::function<bool()>&) const {
    return unsupported("this build reads no images");
}

void Projector::add_rows(llama_batch_ext*, const ImagePiece&, const std::vector<float>&, std::size_t,
                         std::size_t, std::size_t, llama_seq_id) const {}

std::size_t Projector::bytes() const { return 0; }

std::uint64_t Projector::needed_bytes(const ModelSettings&) { return 0; }

bool has_projectors() { return false; }

}  // namespace headrace::llm
