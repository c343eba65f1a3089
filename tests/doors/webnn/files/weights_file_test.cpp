#include "doors/webnn/files/weights_file.h"

#include <gmock/gmock.h>

#include "base/aligned_buffer.h"
#include "engine/test_graph.h"

namespace headrace::webnn {
namespace {

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

std::string with(std::string_view piece, std::string_view other) {
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
    const auto file = must(weights.open(with("\"byteOffset\": 8", "\"byteOffset\": 0")));
    EXPECT_EQ(must(file->find("near", {DType::f32, {2}}))->bytes.data(), weights.buffer.data());
}

TEST(WeightsFile, ErrorsOfTheManifestSayWhere) {
    EXPECT_THAT(open_error("{"), HasSubstr("this is not JSON"));
    EXPECT_EQ(open_error(with("wg-weights-manifest", "x")), "format: 'x' is not 'wg-weights-manifest'");
    EXPECT_EQ(open_error(with("\"version\": 1", "\"version\": 2")),
              "version: version 2; this build reads 1 to 1");
    EXPECT_EQ(open_error(with("little", "big")), "endianness: 'big'; this build reads little-endian weights");
    EXPECT_EQ(open_error(with("\"byteOffset\": 8, ", "")), "tensors.near: the key 'byteOffset' is missing");
    EXPECT_EQ(open_error(with("\"byteOffset\": 8", "\"byteOffset\": -8")),
              "tensors.near.byteOffset: expected an integer from 0, found -8");
    EXPECT_EQ(open_error(with("[2]", "[2.5]")),
              "tensors.near.shape[0]: expected an integer from 0, found 2.5");
    EXPECT_EQ(open_error(with("\"far too\"", "\"far\"")), "tensors: the key 'far' is there twice");
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
    EXPECT_EQ(find_error(with("\"byteLength\": 8", "\"byteLength\": 9"), "near", pair),
              "weights 'near': byteLength is 9, f32[2] needs 8");
    for (const char* offset : {"0", "4", "28", "18446744073709551615"})
        EXPECT_THAT(
            find_error(with("\"byteOffset\": 8", std::string("\"byteOffset\": ") + offset), "near", pair),
            HasSubstr(std::string("8 bytes from offset ") + offset +
                      " are not within the weights, bytes 8 to 32 of their file"));
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
