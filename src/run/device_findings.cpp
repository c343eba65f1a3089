#include "run/device_findings.h"

#include <filesystem>
#include <fstream>
#include <ostream>

#include "base/cache_folder.h"
#include "base/content_hash.h"
#include "base/new_files.h"
#include "ggml-backend.h"
#include "ggml.h"

namespace headrace {
namespace {

/// The file's first line: what a finding is true of.
std::string identity(ggml_backend_dev_t device) {
    return fmt::format("headrace device check 1, ggml {}, {}", ggml_version(),
                       ggml_backend_dev_description(device));
}

Result<std::filesystem::path> findings_file(ggml_backend_dev_t device) {
    HR_ASSIGN(const std::string folder, cache_folder("devices"));
    const std::string name = identity(device);
    return std::filesystem::path(folder) /
           fmt::format("{:016x}.txt", content_hash(name.data(), name.size()).low);
}

}  // namespace

std::vector<std::string> read_findings(ggml_backend_dev_t device) {
    const auto path = findings_file(device);
    if (!path.ok()) return {};
    std::ifstream file(path.value());
    std::string line;
    if (!std::getline(file, line) || line != identity(device)) return {};
    std::vector<std::string> ops;
    while (std::getline(file, line)) ops.push_back(line);
    return ops;
}

Status write_findings(ggml_backend_dev_t device, std::span<const std::string> ops) {
    HR_ASSIGN(const std::filesystem::path path, findings_file(device));
    std::error_code error;  // writing says what is wrong with the folder
    std::filesystem::create_directories(path.parent_path(), error);
    NewFiles files;
    HR_TRY(files.write(path.string(), [&](std::ostream& stream) {
        stream << identity(device) << '\n';
        for (const std::string& op : ops) stream << op << '\n';
        return success();
    }));
    return files.finish();
}

}  // namespace headrace
