#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "base/mapped_file.h"
#include "ir/graph.h"

namespace headrace::onnx {

/// The files beside a model that have elements of its tensors; each is opened and checked once.
///
/// Only regular files of the model's folder and those below it, with a single name: what a model comes with,
/// not what it could point at. Symbolic links are followed in a cache of Hugging Face's layout alone, into
/// the blobs of the same model. What is checked is the file that was opened, whatever happens to its names
/// meanwhile.
class ExternalFiles {
public:
    /// folder: the model's; "" where the model is no file.
    explicit ExternalFiles(std::string folder) : folder_(std::move(folder)) {}

    /// `count` bytes from `offset` on, mapped and not read. Errors: invalid_argument with the remedy; io
    /// where the file cannot be read.
    Result<std::shared_ptr<const Constant>> map(const std::string& location, std::uint64_t offset,
                                                std::size_t count);

private:
    Result<std::shared_ptr<const MappedFile>> open(const std::string& location) const;

    std::string folder_;
    std::map<std::string, std::shared_ptr<const MappedFile>> files_;  ///< by location
};

}  // namespace headrace::onnx
