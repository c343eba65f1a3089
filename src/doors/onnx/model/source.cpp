#include "doors/onnx/model/source.h"

#include <filesystem>
#include <string_view>
#include <utility>

#include "base/gguf_magic.h"
#include "base/mapped_file.h"

namespace headrace::onnx {
namespace {

constexpr std::int64_t kNewestForm = 14;  ///< ir_version of messages

/// How other files begin, which are given by mistake.
constexpr std::pair<std::string_view, std::string_view> kOtherFiles[] = {
    {"HDRGRAPH", "it is a graph file; load it from a path that ends in .hrg"},
    {kGgufMagic, "it is a GGUF model; LanguageModel loads it"},
    {"version https://git-lfs", "it is a pointer of Git LFS; `git lfs pull` fetches the file"},
    {"<!DOCTYPE", "it is a web page; download the file itself"},
    {"<html", "it is a web page; download the file itself"},
    {"PK", "it is a zip archive, as torch.save makes; torch.onnx.export writes ONNX models"},
};

Result<std::shared_ptr<Source>> checked(std::shared_ptr<Source> source, Bytes bytes) {
    source->bytes = bytes.size();
    for (const auto& [magic, remedy] : kOtherFiles)
        if (bytes.starts_with(magic)) return invalid("{}: this is no ONNX model: {}", source->title, remedy);
    auto model = decode_model(bytes);
    if (!model.ok())
        return invalid("{}: this is no ONNX model, or it is cut off ({} bytes): {}", source->title,
                       bytes.size(), model.error().message);
    source->model = std::move(model).value();
    if (!source->model.graph)
        return invalid("{}: this is no ONNX model: there is no graph in its {} bytes", source->title,
                       bytes.size());
    if (source->graph().outputs.empty())
        return invalid("{}: this is no ONNX model: there is no graph with outputs in its {} bytes",
                       source->title, bytes.size());
    if (source->model.ir_version > kNewestForm)
        return unsupported(
            "{}: its ir_version is {}; versions up to {} are read. Export the model for an older one",
            source->title, source->model.ir_version, kNewestForm);
    HR_TRY(check_operator_set(source->model.sets, source->title));
    return source;
}

std::string folder_of(const std::string& path) {
    std::error_code error;
    const std::filesystem::path file(std::u8string(path.begin(), path.end()));
    const std::u8string folder = std::filesystem::absolute(file, error).parent_path().u8string();
    return {folder.begin(), folder.end()};
}

Bytes text_of(std::span<const std::byte> bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

Result<std::shared_ptr<Source>> open_model(const std::string& path) {
    HR_ASSIGN(const auto file, MappedFile::open(path));
    auto source = std::make_shared<Source>(Source{
        .title = path,
        .storage = {.owner = file, .is_mapped = file->is_mapped(), .files = ExternalFiles(folder_of(path))}});
    return checked(std::move(source), text_of(file->bytes()));
}

Result<std::shared_ptr<Source>> open_model(std::span<const std::byte> bytes,
                                           std::shared_ptr<const void> owner) {
    auto source = std::make_shared<Source>(Source{
        .title = "the ONNX model", .storage = {.owner = std::move(owner), .files = ExternalFiles("")}});
    return checked(std::move(source), text_of(bytes));
}

Status check_operator_set(const OperatorSets& sets, std::string_view title) {
    const auto found = sets.find("");
    if (found != sets.end() && found->second >= kOldestSet && found->second <= kNewestSet) return success();
    return unsupported(
        "{}: it imports {} of ai.onnx; {} to {} are read. onnx.version_converter.convert_version changes it",
        title, found == sets.end() ? "no operator set" : fmt::format("operator set {}", found->second),
        kOldestSet, kNewestSet);
}

}  // namespace headrace::onnx
