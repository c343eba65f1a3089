#include "doors/webnn/files/weights_file.h"

#include <cstring>
#include <ostream>

#include "base/content_hash.h"
#include "base/mapped_file.h"
#include "doors/webnn/files/json_document.h"
#include "doors/webnn/state.h"
#include "ir/constant.h"
#include "ops/nibbles.h"

namespace headrace::webnn {
namespace {

constexpr std::string_view kMagic = "WGWT";
constexpr std::uint32_t kVersion = 1;
constexpr std::uint64_t kHeaderBytes = 8;
constexpr std::uint64_t kFileAlignment = 64;

std::string_view as_text(std::span<const std::byte> bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// 4-bit types take a byte an element in the files.
std::uint64_t file_bytes(const TensorType& type) {
    return bits_of(type.dtype) == 4 ? static_cast<std::uint64_t>(type.elements()) : type.bytes();
}

std::string checksum_of(std::string_view bytes) {
    const ContentHash hash = content_hash(bytes.data(), bytes.size());
    return fmt::format("{:016x}{:016x}", hash.high, hash.low);
}

/// 4-bit elements as the file has them.
std::string spread_nibbles(const NamedWeight& weight) {
    const std::int64_t n = weight.type.elements();
    std::string bytes;
    bytes.reserve(static_cast<std::size_t>(n));
    for (std::int64_t i = 0; i < n; ++i) {
        const auto pair = std::to_integer<unsigned>(weight.constant->bytes[static_cast<std::size_t>(i / 2)]);
        const unsigned nibble = i % 2 ? pair >> 4 : pair & 0xF;
        const bool negative = weight.type.dtype == DType::i4 && nibble > 7;
        bytes += static_cast<char>(negative ? nibble | 0xF0 : nibble);
    }
    return bytes;
}

/// Calls use(bytes) with what the file has of the tensor.
template <class Use>
void with_file_bytes(const NamedWeight& weight, Use&& use) {
    if (bits_of(weight.type.dtype) == 4)
        use(std::string_view(spread_nibbles(weight)));
    else
        use(as_text(weight.constant->bytes));
}

/// Calls place(weight, offset, is_first) in file order; the offset of a shared constant is that of its first.
template <class Place>
std::uint64_t lay_out(std::span<const NamedWeight> weights, Place&& place) {
    std::unordered_map<const Constant*, std::uint64_t> offsets;
    std::uint64_t end = kHeaderBytes;
    for (const NamedWeight& weight : weights) {
        const std::uint64_t start = (end + kFileAlignment - 1) / kFileAlignment * kFileAlignment;
        const bool unpacks = bits_of(weight.type.dtype) == 4;  // its bytes in the file are not the constant's
        const auto [it, is_new] = offsets.emplace(weight.constant.get(), start);
        const bool is_first = is_new || unpacks;
        place(weight, is_first ? start : it->second, is_first);
        if (is_first) end = start + file_bytes(weight.type);
    }
    return end;
}

}  // namespace

Result<std::unique_ptr<WeightsFile>> WeightsFile::open(const std::string& manifest_path,
                                                       const std::string& weights_path) {
    const auto opened = [](std::string_view what, std::string_view parameter, const std::string& path) {
        auto file = MappedFile::open(path);
        if (file.ok()) return file;
        return Result<std::shared_ptr<const MappedFile>>(
            Error{file.error().code, fmt::format("{}: {}; pass another {} if it has another name", what,
                                                 file.error().message, parameter)});
    };
    HR_ASSIGN(const auto manifest, opened("the weights' manifest", "manifest_path", manifest_path));
    HR_ASSIGN(const auto weights, opened("the weights", "weights_path", weights_path));
    auto file = parse(as_text(manifest->bytes()), weights->bytes(), weights, weights->is_mapped());
    if (!file.ok()) return file.error().within(fmt::format("'{}'", manifest_path));
    return file;
}

Result<std::unique_ptr<WeightsFile>> WeightsFile::parse(std::string_view manifest,
                                                        std::span<const std::byte> weights,
                                                        std::shared_ptr<const void> owner, bool mapped) {
    auto file = std::make_unique<WeightsFile>();
    file->bytes_ = weights;
    file->owner_ = std::move(owner);
    file->mapped_ = mapped;
    if (as_text(weights).starts_with(kMagic)) {
        std::uint32_t version = 0;
        if (weights.size() >= kHeaderBytes)
            std::memcpy(&version, weights.data() + kMagic.size(), sizeof(version));
        if (version != kVersion)
            return invalid("the weights file has version {}; this build reads version {}", version, kVersion);
        file->first_ = kHeaderBytes;
    }
    HR_TRY(file->read_manifest(manifest));
    return file;
}

Status WeightsFile::read_manifest(std::string_view text) {
    HR_ASSIGN(const FileValue tree, parse_json_document(text));
    const JsonValue document(tree, "");
    HR_TRY(check_format(document, "wg-weights-manifest", 1));
    HR_ASSIGN(const JsonValue endianness, document.at("endianness"));
    HR_ASSIGN(const std::string order, endianness.string());
    if (order != "little")
        return endianness.error(
            unsupported("'{}'; this build reads little-endian weights", excerpt(std::string_view(order))));
    HR_ASSIGN(const JsonValue tensors, document.at("tensors"));
    HR_ASSIGN(const auto* members, tensors.object());
    entries_.reserve(members->size());
    for (const auto& [key, value] : *members) {
        const JsonValue object = tensors.member(key, value);
        Entry entry{};
        HR_ASSIGN(const JsonValue type, object.at("dataType"));
        HR_ASSIGN(const std::string name, type.string());
        const auto dtype = find_data_type(name);
        if (!dtype.ok()) return type.error(dtype.error());
        entry.dtype = dtype.value();
        HR_ASSIGN(const JsonValue shape, object.at("shape"));
        HR_TRY(shape.each([&](const JsonValue& extent) -> Status {
            HR_ASSIGN(const std::uint64_t size, extent.size());
            entry.shape.emplace_back(static_cast<std::int64_t>(std::min<std::uint64_t>(size, INT64_MAX)));
            return success();
        }));
        HR_ASSIGN(const JsonValue offset, object.at("byteOffset"));
        HR_ASSIGN(entry.offset, offset.size());
        HR_ASSIGN(const JsonValue length, object.at("byteLength"));
        HR_ASSIGN(entry.length, length.size());
        HR_ASSIGN(const auto* checksum, object.find("xxh3"));
        if (checksum) {
            HR_ASSIGN(entry.checksum, object.member("xxh3", *checksum).string());
        }
        if (!entries_.emplace(key, std::move(entry)).second)
            return tensors.error(invalid("the key '{}' is there twice", excerpt(std::string_view(key))));
    }
    return success();
}

Status WeightsFile::check(const std::string& key, const Entry& entry, const TensorType& type) const {
    const auto where = fmt::format("weights '{}'", excerpt(std::string_view(key)));
    if (entry.dtype != type.dtype || entry.shape != type.shape)
        return invalid("{}: the manifest has {}, the graph declares {}", where,
                       excerpt(std::string_view(TensorType{entry.dtype, entry.shape}.str())), type.str());
    const bool packed = bits_of(type.dtype) == 4 && entry.length == type.bytes();
    if (!packed && entry.length != file_bytes(type))
        return invalid("{}: byteLength is {}, {} needs {}", where, entry.length, type.str(),
                       file_bytes(type));
    if (entry.offset < first_ || entry.offset > bytes_.size() || entry.length > bytes_.size() - entry.offset)
        return invalid("{}: {} bytes from offset {} are not within the weights, bytes {} to {} of their file",
                       where, entry.length, entry.offset, first_, bytes_.size());
    return success();
}

Status WeightsFile::check_content(const std::string& key, const Entry& entry) {
    if (entry.checksum.empty()) return success();
    std::string& found = checksums_[{entry.offset, entry.length}];
    if (found.empty()) {
        // As with copies: overlapping tensors could take any time.
        hashed_ += entry.length;
        if (hashed_ > bytes_.size()) return invalid("the weights that have an xxh3 overlap");
        found = checksum_of(as_text(bytes_.subspan(entry.offset, entry.length)));
    }
    if (found == entry.checksum) return success();
    return invalid(
        "weights '{}': the file is damaged or another graph's: the xxh3 of {} bytes from offset {} is {}, "
        "the manifest has {}; save the graph anew",
        excerpt(std::string_view(key)), entry.length, entry.offset, found,
        excerpt(std::string_view(entry.checksum)));
}

Result<std::shared_ptr<const Constant>> WeightsFile::load(const Entry& entry, const TensorType& type) {
    const auto bytes = bytes_.subspan(entry.offset, entry.length);
    const bool unpacked = entry.length != type.bytes();
    if (is_constant_aligned(bytes) && !unpacked)
        return std::make_shared<const Constant>(Constant{.bytes = bytes, .owner = owner_, .mapped = mapped_});
    // Tensors lie side by side in a sound file; overlapping ones could make copies of any size.
    copied_ += entry.length;
    if (copied_ > bytes_.size())
        return invalid("the weights that start at bytes which are no multiple of {} overlap",
                       kConstantAlignment);
    if (unpacked) return pack_elements(bytes, type);
    return copy_constant(bytes, "an aligned copy of weights");
}

Result<std::shared_ptr<const Constant>> pack_elements(std::span<const std::byte> bytes,
                                                      const TensorType& type) {
    if (bytes.size() != file_bytes(type))
        return invalid("{} bytes given, {} needs {}", bytes.size(), type.str(), file_bytes(type));
    HR_ASSIGN(auto packed, AlignedBuffer::allocate(type.bytes(), "packed weights"));
    ops::pack_nibbles(bytes, packed.data());
    return own_constant(std::move(packed));
}

Result<std::shared_ptr<const Constant>> WeightsFile::find(const std::string& key, const TensorType& type) {
    const auto it = entries_.find(key);
    if (it == entries_.end())
        return invalid("the weights' manifest has no key '{}'; it has {} others",
                       excerpt(std::string_view(key)), entries_.size());
    HR_TRY(check(key, it->second, type));
    Entry& entry = it->second;
    if (entry.constant) return entry.constant;
    HR_TRY(check_content(key, entry));
    const std::uint64_t length = entry.length == type.bytes() ? entry.length : ~entry.length;
    auto& shared = shared_[{entry.offset, length}];
    if (!shared) {
        HR_ASSIGN(shared, load(entry, type));
    }
    entry.constant = shared;
    return entry.constant;
}

Result<std::string> write_weights(std::span<const NamedWeight> weights, std::ostream& stream) {
    stream.write(kMagic.data(), static_cast<std::streamsize>(kMagic.size()));
    stream.write(reinterpret_cast<const char*>(&kVersion), sizeof(kVersion));
    std::string manifest =
        "{\n  \"format\": \"wg-weights-manifest\",\n  \"version\": 1,\n  \"endianness\": \"little\",\n"
        "  \"tensors\": {";
    std::uint64_t position = kHeaderBytes;
    std::unordered_map<std::uint64_t, std::string> checksums;  // by offset
    const char* separator = "\n    ";
    lay_out(weights, [&](const NamedWeight& weight, std::uint64_t offset, bool is_first) {
        std::string& checksum = checksums[offset];
        if (is_first) {
            static constexpr char kZeros[kFileAlignment] = {};
            stream.write(kZeros, static_cast<std::streamsize>(offset - position));
            with_file_bytes(weight, [&](std::string_view bytes) {
                stream.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
                checksum = checksum_of(bytes);
            });
            position = offset + file_bytes(weight.type);
        }
        manifest += std::exchange(separator, ",\n    ");
        append_quoted(manifest, weight.key, Syntax::json);
        fmt::format_to(std::back_inserter(manifest),
                       ": {{\"dataType\": \"{}\", \"shape\": {}, \"byteOffset\": {}, \"byteLength\": {}, "
                       "\"layout\": \"row-major\", \"xxh3\": \"{}\"}}",
                       data_type_name(weight.type.dtype), str(weight.type.shape), offset,
                       file_bytes(weight.type), checksum);
    });
    if (!stream) return failure(Code::io, "cannot write the weights; is the disk full?");
    return manifest + "\n  }\n}\n";
}

}  // namespace headrace::webnn
