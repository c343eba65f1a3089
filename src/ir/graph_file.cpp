#include "ir/graph_file.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <ostream>
#include <string_view>

#include "base/mapped_file.h"
#include "base/new_files.h"
#include "base/small_letters.h"
#include "ir/constant.h"
#include "ir/graph_file_tables.h"
#include "ir/verify.h"

namespace headrace {
namespace {

static_assert(std::endian::native == std::endian::little,
              "weights are stored and mapped as they lie in memory");

constexpr std::string_view kMagic = "HDRGRAPH";
constexpr std::uint32_t kFormatVersion = 1;

struct Header {
    char magic[8];
    std::uint32_t version;
    std::uint32_t zero;
    std::uint64_t table_bytes;
    std::uint64_t weights_offset;
};
static_assert(sizeof(Header) == 32);

/// Hands the file's content piece by piece to put(data, size).
template <class Put>
Status write_content(const Graph& graph, bool by_key, Put&& put) {
    HR_TRY(verify(graph));
    HR_ASSIGN(const auto encoded, detail::encode_graph(graph, by_key));
    Header header{.version = kFormatVersion, .zero = 0, .table_bytes = encoded.tables.size()};
    kMagic.copy(header.magic, sizeof(header.magic));
    header.weights_offset = detail::align_weight(sizeof(Header) + encoded.tables.size());
    std::uint64_t position = 0;
    const auto append = [&](const void* data, std::size_t size) {
        put(static_cast<const std::byte*>(data), size);
        position += size;
    };
    const auto pad_to = [&](std::uint64_t offset) {
        static constexpr std::byte kZeros[detail::kWeightAlignment] = {};
        append(kZeros, offset - position);
    };
    append(&header, sizeof(header));
    append(encoded.tables.data(), encoded.tables.size());
    pad_to(header.weights_offset);
    for (const auto& weight : encoded.weights) {
        pad_to(header.weights_offset + weight.offset);
        AlignedBytes multiplied;
        if (weight.constant->factors) {
            HR_ASSIGN(multiplied, AlignedBytes::of(*weight.constant));
        }
        append(multiplied.data() ? multiplied.data() : weight.constant->bytes.data(),
               weight.constant->bytes.size());
    }
    return success();
}

/// A ModelProto: its version of the format, a small number, then another field of those that a model begins
/// with. Text cannot begin so.
bool starts_as_onnx(std::span<const std::byte> bytes) {
    constexpr std::byte kVersionField{0x08}, kProducer{0x12}, kGraph{0x3a}, kOperatorSet{0x42};
    constexpr std::byte kMostVersion{0x7f};
    return bytes[0] == kVersionField && bytes[1] <= kMostVersion &&
           (bytes[2] == kProducer || bytes[2] == kGraph || bytes[2] == kOperatorSet);
}

Result<Graph> read_content(std::span<const std::byte> bytes, std::shared_ptr<const void> owner, bool mapped,
                           const OpLookup& find_op, const FindWeight& find_weight) {
    Header header;
    if (bytes.size() < sizeof(header)) return invalid("{} bytes are too few for a graph file", bytes.size());
    std::memcpy(&header, bytes.data(), sizeof(header));
    if (starts_as_onnx(bytes))
        return invalid("it is an ONNX model; give it a name that ends in .onnx, by which those are read");
    if (std::string_view(header.magic, sizeof(header.magic)) != kMagic)
        return invalid(
            "not a graph file: it does not start with {}. ONNX models are read from names that end in .onnx, "
            "language models (.gguf) by headrace chat or LanguageModel",
            kMagic);
    if (header.version != kFormatVersion || header.zero != 0)
        return failure(Code::unsupported, "graph file version {}.{}; this build reads version {}.0",
                       header.version, header.zero, kFormatVersion);
    if (header.table_bytes > bytes.size() - sizeof(header))
        return invalid("the file ends after {} bytes, within its {} bytes of tables", bytes.size(),
                       header.table_bytes);
    if (header.weights_offset > bytes.size() || header.weights_offset < sizeof(header) + header.table_bytes ||
        header.weights_offset % detail::kWeightAlignment != 0)
        return invalid("the weights cannot start at offset {} of {} bytes", header.weights_offset,
                       bytes.size());
    const detail::WeightBytes weights{bytes.subspan(header.weights_offset), std::move(owner), mapped,
                                      find_weight ? &find_weight : nullptr};
    return detail::decode_graph(bytes.subspan(sizeof(header), header.table_bytes), weights, find_op);
}

}  // namespace

bool is_graph_file(std::span<const std::byte> bytes) {
    return bytes.size() >= kMagic.size() && std::memcmp(bytes.data(), kMagic.data(), kMagic.size()) == 0;
}

bool is_onnx_file(std::string_view path) {
    constexpr std::string_view kExtension = ".onnx";
    if (path.size() < kExtension.size()) return false;
    return std::ranges::equal(path.substr(path.size() - kExtension.size()), kExtension,
                              [](char a, char b) { return small_letter(a) == b; });
}

Status write_graph(const Graph& graph, const std::string& path) {
    if (is_onnx_file(path))
        return invalid(
            "'{}': this would write a graph file, which is no ONNX model; give it a name that ends in .hrg",
            path);
    NewFiles files;
    HR_TRY(files.write(path, [&](std::ostream& stream) {
        return write_content(graph, false, [&](const std::byte* data, std::size_t size) {
            stream.write(reinterpret_cast<const char*>(data), static_cast<std::streamsize>(size));
        });
    }));
    return files.finish();
}

Result<Graph> read_graph(const std::string& path, const OpLookup& find_op) {
    HR_ASSIGN(auto file, MappedFile::open(path));
    auto graph = read_content(file->bytes(), file, file->is_mapped(), find_op, {});
    if (!graph.ok()) return graph.error().within(fmt::format("'{}'", path));
    return graph;
}

Result<std::vector<std::byte>> graph_bytes(const Graph& graph, bool by_key) {
    std::vector<std::byte> bytes;
    HR_TRY(write_content(graph, by_key, [&](const std::byte* data, std::size_t size) {
        bytes.insert(bytes.end(), data, data + size);
    }));
    return bytes;
}

Result<Graph> graph_from_bytes(std::shared_ptr<const void> owner, std::span<const std::byte> bytes,
                               const OpLookup& find_op, const FindWeight& find_weight) {
    if (is_constant_aligned(bytes)) return read_content(bytes, std::move(owner), false, find_op, find_weight);
    HR_ASSIGN(const auto copy, copy_constant(bytes, "an aligned copy of a graph"));
    return read_content(copy->bytes, copy, false, find_op, find_weight);
}

}  // namespace headrace
