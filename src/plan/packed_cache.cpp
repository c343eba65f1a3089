#include "plan/packed_cache.h"

#include <algorithm>
#include <chrono>
#include <filesystem>

#include "base/log.h"
#include "base/parallel.h"
#include "kernels/simd/target.h"

namespace headrace {
namespace {

/// Packing less takes about as long as opening a file.
constexpr std::size_t kLeastBytes = std::size_t{1} << 20;

template <class T>
void append(std::string& bytes, const T& value) {
    bytes.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

ContentHash hash_of(const std::string& bytes) { return content_hash(bytes.data(), bytes.size()); }

bool may_be_packed(const OpDef& op, std::size_t operand) {
    return std::any_of(op.kernels.begin(), op.kernels.end(), [&](const KernelDef& kernel) {
        return kernel.packed_operand == static_cast<int>(operand);
    });
}

/// Removes what writers left that were ended in the middle; none writes for an hour.
void remove_leftovers(const std::filesystem::path& folder) {
    namespace fs = std::filesystem;
    const auto long_ago = fs::file_time_type::clock::now() - std::chrono::hours(1);
    std::error_code error, ignored;
    for (fs::directory_iterator it(folder, error); !error && it != fs::directory_iterator();
         it.increment(error)) {
        const fs::path& path = it->path();
        const bool is_leftover =
            path.extension() == ".tmp" && path.stem().string().find(".packed") != std::string::npos;
        const auto written = it->last_write_time(ignored);
        if (is_leftover && !ignored && written < long_ago) fs::remove(path, ignored);
    }
}

}  // namespace

PackedCache::PackedCache(const Graph& graph, const std::string& folder, int threads, const FilePages& pages)
    : pages_(pages) {
    key_.machine = fmt::format("{} {} {}", HEADRACE_VERSION, kPackingVersion, kernels::simd_target());
    key_.model = hash_uses(graph, threads);
    std::string name = fmt::format("{:016x}-{}.packed", key_.model.low, key_.machine);
    std::replace(name.begin(), name.end(), ' ', '-');
    const std::filesystem::path path = std::filesystem::path(folder) / name;
    path_ = path.string();
    std::error_code error;
    if (!std::filesystem::exists(path, error) && !error) return;
    auto file = PackedFile::open(path_, key_);
    if (file.ok())
        file_ = std::move(file).value();
    else
        report(file.error());
}

ContentHash PackedCache::hash_uses(const Graph& graph, int threads) {
    std::vector<std::pair<const Node*, const Value*>> found;
    std::vector<const Constant*> constants;
    for (const Node& node : graph.nodes)
        for (std::size_t i = 0; i < node.inputs.size(); ++i) {
            if (node.inputs[i] == kNoValue || !may_be_packed(*node.op, i)) continue;
            const Value& value = graph.value(node.inputs[i]);
            if (value.kind != ValueKind::constant) continue;
            found.emplace_back(&node, &value);
            if (contents_.try_emplace(value.constant.get()).second) constants.push_back(value.constant.get());
        }
    for_each_index(constants.size(), threads,
                   [&](std::size_t i) { contents_.at(constants[i]) = read_content(*constants[i]); });
    std::string uses;
    for (const auto& [node, value] : found) {
        uses += fmt::format("{}|{}", node->op->name, value->type.str());
        for (const AttrValue& attr : node->op->attr_values(node->attrs.get())) uses += "|" + text_of(attr);
        append(uses, content_of(value->constant.get()));
    }
    return hash_of(uses);
}

ContentHash PackedCache::read_content(const Constant& constant) const {
    const ContentHash content = content_hash(constant.bytes.data(), constant.bytes.size());
    pages_.give_back(constant.bytes);
    if (!constant.factors) return content;
    std::string parts;
    append(parts, content);
    append(parts, constant.factors->hash());
    return hash_of(parts);
}

ContentHash PackedCache::content_of(const Constant* constant) {
    const auto [it, is_new] = contents_.try_emplace(constant);
    if (is_new) it->second = read_content(*constant);
    return it->second;
}

ContentHash PackedCache::name_of(const Constant* constant, std::string_view use) {
    std::string bytes(use);
    append(bytes, content_of(constant));
    return hash_of(bytes);
}

std::shared_ptr<const std::byte> PackedCache::find(const ContentHash& use, std::size_t bytes) {
    if (!file_) return nullptr;
    const auto form = file_->find(use, bytes);
    if (!form.ok()) report(form.error());
    if (!form.ok() || !form.value()) return nullptr;
    return {file_, form.value()->data()};
}

void PackedCache::keep(const std::map<ContentHash, std::span<const std::byte>>& forms) {
    std::size_t total = 0;
    for (const auto& [use, form] : forms) total += form.size();
    if (total < kLeastBytes || !can_write_) return;
    std::error_code error;
    const auto folder = std::filesystem::path(path_).parent_path();
    std::filesystem::create_directories(folder, error);
    remove_leftovers(folder);
    // Writing says what is wrong with the folder.
    if (const Status status = write_packed_file(path_, key_, forms); !status.ok()) {
        HR_LOG(warn, {}, "packed weights are not kept for the next start: {}", status.error().message);
        can_write_ = false;
    }
}

void PackedCache::report(const Error& error) {
    if (!is_reported_.exchange(true))
        HR_LOG(warn, {}, "'{}' is not used and written anew: {}", path_, error.message);
}

}  // namespace headrace
