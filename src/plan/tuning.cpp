#include "plan/tuning.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <ostream>

#include "base/cpu_name.h"
#include "base/mapped_file.h"
#include "base/new_files.h"
#include "base/take_until.h"
#include "kernels/simd/target.h"

namespace headrace {
namespace {

constexpr std::string_view kFirstLine = "headrace tuning 1";

ContentHash hash_of(std::string_view text) { return content_hash(text.data(), text.size()); }

std::string hex(const ContentHash& hash) { return fmt::format("{:016x}{:016x}", hash.high, hash.low); }

bool parse_hex(std::string_view text, ContentHash& hash) {
    if (text.size() != 32) return false;
    const auto read = [](std::string_view digits, std::uint64_t& value) {
        const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
        return error == std::errc() && end == digits.data() + digits.size();
    };
    return read(text.substr(0, 16), hash.high) && read(text.substr(16), hash.low);
}

const std::string& machine() {
    static const std::string name =
        fmt::format("{} {} {}", HEADRACE_VERSION, kernels::simd_target(), cpu_name());
    return name;
}

}  // namespace

std::string kind_of(const Graph& graph, const Node& node, int threads) {
    std::string kind = fmt::format("{} threads {}", node.op->name, threads);
    for (const AttrValue& attr : node.op->attr_values(node.attrs.get())) kind += " " + text_of(attr);
    for (const ValueId id : node.inputs) {
        if (id == kNoValue) {
            kind += " -";
            continue;
        }
        const Value& value = graph.value(id);
        kind += fmt::format(" {}{}", value.type.str(), value.kind == ValueKind::constant ? "!" : "");
    }
    std::replace(kind.begin(), kind.end(), '\n', ' ');
    return kind;
}

const NodeChoice* Tuning::find(std::string_view kind) const {
    const auto it = choices_.find(hash_of(kind));
    return it == choices_.end() ? nullptr : &it->second;
}

void Tuning::set(std::string_view kind, NodeChoice choice) {
    choice.node = kind;
    choices_[hash_of(kind)] = std::move(choice);
}

void Tuning::erase(std::string_view kind) { choices_.erase(hash_of(kind)); }

std::string Tuning::text() const {
    std::string lines;
    for (const auto& [kind, choice] : choices_)
        lines += fmt::format("{} {} {} {}\n", hex(kind), choice.implementation,
                             choice.one_thread ? "one" : "all", choice.node);
    return fmt::format("{}\n{}\n{}\n{}", kFirstLine, machine(), hex(hash_of(lines)), lines);
}

Result<Tuning> Tuning::parse(std::string_view text) {
    if (take_until(text, '\n') != kFirstLine) return invalid("it does not begin with '{}'", kFirstLine);
    if (const auto other = take_until(text, '\n'); other != machine())
        return invalid("it is for '{}', this is '{}'", other, machine());
    if (const auto checksum = take_until(text, '\n'); checksum != hex(hash_of(text)))
        return invalid("its checksum is wrong");
    Tuning tuning;
    while (!text.empty()) {
        std::string_view line = take_until(text, '\n');
        ContentHash kind;
        const bool has_kind = parse_hex(take_until(line, ' '), kind);
        const std::string_view implementation = take_until(line, ' '), threads = take_until(line, ' ');
        if (!has_kind || implementation.empty() || (threads != "one" && threads != "all"))
            return invalid("a line has no choice");
        tuning.choices_[kind] = {std::string(implementation), threads == "one", std::string(line)};
    }
    return tuning;
}

std::string tuning_file(const std::string& folder) {
    const std::string name = fmt::format("{:016x}.tuning", hash_of(machine()).low);
    return (std::filesystem::path(folder) / name).string();
}

Result<Tuning> read_tuning(const std::string& path) {
    std::error_code error;
    if (!std::filesystem::exists(path, error) && !error) return Tuning();
    HR_ASSIGN(const auto file, MappedFile::open(path));
    const auto bytes = file->bytes();
    return Tuning::parse({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

Status write_tuning(const std::string& path, const Tuning& tuning) {
    std::error_code error;  // writing says what is wrong with the folder
    std::filesystem::create_directories(std::filesystem::path(path).parent_path(), error);
    NewFiles files;
    HR_TRY(files.write(path, [&](std::ostream& stream) {
        stream << tuning.text();
        return success();
    }));
    return files.finish();
}

}  // namespace headrace
