#include "doors/webnn/files/weights_file.h"

#include <gmock/gmock.h>

#include <array>
#include <sstream>

#include "base/aligned_buffer.h"
#include "engine/test_graph.h"
#include "ir/constant.h"

namespace headrace::webnn {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using namespace headrace::testing;

constexpr std::string_view kManifest = R"({
  "format": "wg-weights-manifest", "version": 1, "endianness": "little",
  "tensors": {
    "near": {"dataType": "float32", "shape": [2], "byteOffset": 8, "byteLength": 8, "layout": "row-major"},
    "far": {"dataType": "float32", "shape": [2, 1], "byteOffset": 16, "byteLength": 8},
    "far too": {"dataType": "int32", "shape": [2], "byteOffset": 16, "byteLength": 8},
    "nibbles": {"dataType": "int4", "shape": [3], "byteOffset": 24, "byteLength": 3},
    "packed": {"dataType": "uint4", "shape": [3], "byteOffset": 24, "byteLength": 2}
  }
})";

/// A header, then the bytes 8, 9, 10 ... 31, at a 64-byte boundary.
struct Weights {
    explicit Weights(std::size_t size = 32) : buffer(must(AlignedBuffer::allocate(size, "a test"))) {
        for (std::size_t i = 0; i < size; ++i) buffer.data()[i] = static_cast<std::byte>(i);
        if (size >= 8) std::memcpy(buffer.data(), "WGWT\1\0\0\0", 8);
    }
    AlignedBuffer buffer;

    Result<std::unique_ptr<WeightsFile>> open(std::string_view manifest) const {
        return WeightsFile::parse(manifest, {buffer.data(), buffer.bytes()}, nullptr, true);
    }
};

std::string manifest_with(std::string_view piece, std::string_view other) {
    std::string text(kManifest);
    text.replace(text.find(piece), piece.size(), other);
    return text;
}
std::string open_error(const std::string& manifest) {
    const auto file = Weights().open(manifest);
    return file.ok() ? "" : file.error().message;
}
std::string find_error(const std::string& manifest, const std::string& key, const TensorType& type) {
    const Weights weights;
    const auto found = must(weights.open(manifest))->find(key, type);
    return found.ok() ? "" : found.error().message;
}

TEST(WeightsFile, MapsWhatIsAlignedAndCopiesTheRest) {
    const Weights weights;
    const auto file = must(weights.open(kManifest));
    const auto far = must(file->find("far", {DType::f32, {2, 1}}));
    EXPECT_TRUE(far->mapped);
    EXPECT_EQ(far->bytes.data(), weights.buffer.data() + 16);
    EXPECT_EQ(must(file->find("far too", {DType::i32, {2}})), far);
    const auto near = must(file->find("near", {DType::f32, {2}}));
    EXPECT_FALSE(near->mapped);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(near->bytes.data()) % 16, 0u);
    EXPECT_EQ(near->bytes[0], std::byte{8});
}

TEST(WeightsFile, FourBitElementsComeAByteEachOrPacked) {
    const Weights weights;
    const auto file = must(weights.open(kManifest));
    const auto nibbles = must(file->find("nibbles", {DType::i4, {3}}));  // 24, 25, 26
    EXPECT_EQ(nibbles->bytes[0], std::byte{0x98});
    EXPECT_EQ(nibbles->bytes[1], std::byte{0x0A});
    const auto packed = must(file->find("packed", {DType::u4, {3}}));
    EXPECT_EQ(packed->bytes[0], std::byte{24});
}

TEST(WeightsFile, ABareFileHasNoHeader) {
    Weights weights;
    std::memset(weights.buffer.data(), 1, 8);
    const auto file = must(weights.open(manifest_with("\"byteOffset\": 8", "\"byteOffset\": 0")));
    EXPECT_EQ(must(file->find("near", {DType::f32, {2}}))->bytes.data(), weights.buffer.data());
}

TEST(WeightsFile, ErrorsOfTheManifestSayWhere) {
    EXPECT_THAT(open_error("{"), HasSubstr("this is not JSON"));
    EXPECT_EQ(open_error(manifest_with("wg-weights-manifest", "x")),
              "format: 'x' is not 'wg-weights-manifest'");
    EXPECT_EQ(open_error(manifest_with("\"version\": 1", "\"version\": 2")),
              "version: version 2; this build reads 1 to 1");
    EXPECT_EQ(open_error(manifest_with("little", "big")),
              "endianness: 'big'; this build reads little-endian weights");
    EXPECT_EQ(open_error(manifest_with("\"byteOffset\": 8, ", "")),
              "tensors.near: the key 'byteOffset' is missing");
    EXPECT_EQ(open_error(manifest_with("\"byteOffset\": 8", "\"byteOffset\": -8")),
              "tensors.near.byteOffset: expected an integer from 0, found -8");
    EXPECT_EQ(open_error(manifest_with("[2]", "[2.5]")),
              "tensors.near.shape[0]: expected an integer from 0, found 2.5");
    EXPECT_EQ(open_error(manifest_with("\"far too\"", "\"far\"")), "tensors: the key 'far' is there twice");
    Weights weights;
    weights.buffer.data()[4] = std::byte{2};
    EXPECT_EQ(weights.open(kManifest).error().message,
              "the weights file has version 2; this build reads version 1");
}

TEST(WeightsFile, ErrorsOfATensorSayWhatTheFileHas) {
    const std::string manifest(kManifest);
    const TensorType pair{DType::f32, {2}};
    EXPECT_EQ(find_error(manifest, "none", pair), "the weights' manifest has no key 'none'; it has 5 others");
    EXPECT_EQ(find_error(manifest, "near", {DType::f32, {1, 2}}),
              "weights 'near': the manifest has f32[2], the graph declares f32[1, 2]");
    EXPECT_EQ(find_error(manifest, "near", {DType::i32, {2}}),
              "weights 'near': the manifest has f32[2], the graph declares i32[2]");
    EXPECT_EQ(find_error(manifest_with("\"byteLength\": 8", "\"byteLength\": 9"), "near", pair),
              "weights 'near': byteLength is 9, f32[2] needs 8");
    for (const char* offset : {"0", "4", "28", "18446744073709551615"})
        EXPECT_THAT(find_error(manifest_with("\"byteOffset\": 8", std::string("\"byteOffset\": ") + offset),
                               "near", pair),
                    HasSubstr(std::string("8 bytes from offset ") + offset +
                              " are not within the weights, bytes 8 to 32 of their file"));
}

/// A pair of f32, which shares its bytes with another, and three nibbles, as they are written.
struct Written {
    std::string manifest, bytes;

    Written() {
        const auto numbers = own_constant(std::array{1.5F, -2.0F});
        const std::vector<NamedWeight> weights = {
            {"numbers", {DType::f32, {2}}, numbers},
            {"again", {DType::f32, {2}}, numbers},
            {"nibbles", {DType::i4, {3}}, own_constant(std::array{std::uint8_t{0x98}, std::uint8_t{0x0A}})}};
        std::ostringstream stream;
        manifest = must(write_weights(weights, stream));
        bytes = stream.str();
    }

    /// "", or the error of reading a tensor.
    std::string error_of(const std::string& key, const TensorType& type) const {
        auto read = must(AlignedBuffer::allocate(bytes.size(), "a test"));
        std::memcpy(read.data(), bytes.data(), bytes.size());
        const auto file = WeightsFile::parse(manifest, {read.data(), bytes.size()}, nullptr, true);
        if (!file.ok()) return file.error().message;
        const auto found = file.value()->find(key, type);
        return found.ok() ? "" : found.error().message;
    }

private:
    template <class T, std::size_t N>
    static std::shared_ptr<const Constant> own_constant(const std::array<T, N>& elements) {
        auto buffer = must(AlignedBuffer::allocate(sizeof elements, "a test"));
        std::memcpy(buffer.data(), elements.data(), sizeof elements);
        return headrace::own_constant(std::move(buffer));
    }
};

TEST(WeightsFile, ADamagedTensorIsAnErrorAndTheOthersAreRead) {
    const TensorType pair{DType::f32, {2}}, nibbles{DType::i4, {3}};
    Written files;
    for (const char* key : {"numbers", "again"}) EXPECT_EQ(files.error_of(key, pair), "");
    EXPECT_EQ(files.error_of("nibbles", nibbles), "");
    files.bytes[67] ^= 1;  // of the numbers, which start at 64
    for (const char* key : {"numbers", "again"})
        EXPECT_THAT(files.error_of(key, pair),
                    AllOf(HasSubstr(std::string("weights '") + key + "': the file is damaged"),
                          HasSubstr("8 bytes from offset 64"), HasSubstr("save the graph anew")));
    EXPECT_EQ(files.error_of("nibbles", nibbles), "");
    files.bytes[128] ^= 1;
    EXPECT_THAT(files.error_of("nibbles", nibbles), HasSubstr("'nibbles': the file is damaged"));
}

TEST(WeightsFile, AChecksumIsAText) {
    EXPECT_EQ(open_error(manifest_with("\"layout\": \"row-major\"", "\"xxh3\": 3")),
              "tensors.near.xxh3: expected a string, found 3");
}

TEST(WeightsFile, OverlappingTensorsAreNotHashedMoreOftenThanTheFileIsLong) {
    std::string manifest =
        R"({"format": "wg-weights-manifest", "version": 1, "endianness": "little", "tensors": {)";
    for (int i = 1; i <= 4; ++i)
        manifest += fmt::format(
            R"({}"t{}": {{"dataType": "uint8", "shape": [500], "byteOffset": {}, "byteLength": 500, "xxh3": "0"}})",
            i > 1 ? ", " : "", i, 16 * i);
    const Weights weights(1000);
    const auto file = must(weights.open(manifest + "}}"));
    const TensorType bytes{DType::u8, {500}};
    for (const char* key : {"t1", "t2", "t1"})
        EXPECT_THAT(file->find(key, bytes).error().message, HasSubstr("the file is damaged"));
    EXPECT_EQ(file->find("t3", bytes).error().message, "the weights that have an xxh3 overlap");
}

TEST(WeightsFile, OverlappingTensorsCannotTakeMoreMemoryThanTheFile) {
    std::string manifest =
        R"({"format": "wg-weights-manifest", "version": 1, "endianness": "little", "tensors": {)";
    for (int i = 0; i < 100; ++i)
        manifest += fmt::format(
            R"({}"t{}": {{"dataType": "uint8", "shape": [500], "byteOffset": {}, "byteLength": 500}})",
            i ? ", " : "", i, 9 + i);
    const Weights weights(1000);
    const auto file = must(weights.open(manifest + "}}"));
    int found = 0;
    for (int i = 0; i < 100; ++i) found += file->find(fmt::format("t{}", i), {DType::u8, {500}}).ok();
    EXPECT_LT(found, 12);  // six of them start at a multiple of 16
}

}  // namespace
}  // namespace headrace::webnn
