#include "llm/checks/model_file.h"

#include <fcntl.h>
#include <gguf.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <limits>

#include "fuzz/fuzz.h"
#include "fuzz/gguf_image.h"
#include "fuzz/model_file_target.h"
#include "llm/checks/model_metadata.h"
#include "llm/split_model.h"
#include "llm/tiny_model.h"

namespace headrace::llm {
namespace {

using fuzz::GgufImage;
using testing::AllOf;
using testing::HasSubstr;

/// A file in memory: a header, and zeros for the tensors.
class ImageFile {
public:
    explicit ImageFile(const std::string& header, std::uint64_t data = 0)
        : file_(memfd_create("image", MFD_CLOEXEC)) {
        EXPECT_EQ(write(file_, header.data(), header.size()), static_cast<ssize_t>(header.size()));
        if (data) {
            EXPECT_EQ(ftruncate(file_, static_cast<off_t>(header.size() + 32 + data)), 0);
        }
    }
    ~ImageFile() { close(file_); }
    std::string path() const { return fmt::format("/proc/self/fd/{}", file_); }

private:
    int file_;
};

GgufImage chat_model() {
    std::ifstream file(tiny_model(), std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(file), {}};
    return GgufImage::read(bytes);
}

std::string message_of(GgufImage image, bool placed = true) {
    if (placed) image.place_tensors();
    const ImageFile file(image.header(), image.data_bytes());
    const auto inspected = inspect_model_file(file.path());
    return inspected.ok() ? "" : inspected.error().message;
}

template <class T>
void set(GgufImage& image, const std::string& name, std::uint32_t type, T value) {
    std::erase_if(image.keys, [&](const GgufImage::Key& key) { return key.name == name; });
    GgufImage::Key& key = image.keys.emplace_back(GgufImage::Key{name, type, std::string(sizeof(T), '\0')});
    std::memcpy(key.value.data(), &value, sizeof(T));
}
void set(GgufImage& image, const std::string& name, std::uint32_t value) {
    set(image, name, GGUF_TYPE_UINT32, value);
}

TEST(ModelFile, AcceptsSoundModels) {
    EXPECT_EQ(message_of(chat_model()), "");
    EXPECT_EQ(message_of(fuzz::small_bert()), "");
    const ImageFile file(fuzz::small_bert().header(), fuzz::small_bert().data_bytes());
    EXPECT_TRUE(inspect_model_file(file.path()).value().embeddings);
}

TEST(ModelFile, RefusesWhatIsNoGguf) {
    EXPECT_EQ(inspect_model_file("/no/such/model.gguf").error().code, Code::not_found);
    EXPECT_THAT(inspect_model_file(ImageFile("GG").path()).error().message, HasSubstr("2 bytes"));
    EXPECT_THAT(inspect_model_file(ImageFile("PNG and so on").path()).error().message, HasSubstr("'GGUF'"));
}

TEST(ModelFile, RefusesAHeaderThatEndsAtAnyOfItsBytes) {
    const std::string header = fuzz::small_bert().header();
    for (std::size_t size = 0; size < header.size(); ++size)
        ASSERT_FALSE(inspect_model_file(ImageFile(header.substr(0, size)).path()).ok()) << size;
}

TEST(ModelFile, RefusesTensorsThatTheFileDoesNotHold) {
    const GgufImage image = fuzz::small_bert();
    EXPECT_THAT(inspect_model_file(ImageFile(image.header(), image.data_bytes() / 2).path()).error().message,
                HasSubstr("not complete"));
    GgufImage moved = image;
    moved.tensors[3].offset += 32;
    EXPECT_THAT(message_of(moved, false), HasSubstr("damaged"));
}

TEST(ModelFile, RefusesSizesThatLlamaCppAssertsOrDividesBy) {
    const struct {
        const char* key;
        std::uint32_t value;
        const char* says;
    } cases[] = {
        {"llama.block_count", 0, "1 to 512"},
        {"llama.block_count", 513, "1 to 512"},
        {"llama.block_count", 0x80000000u, "1 to 512"},
        {"llama.embedding_length", 0, "1 to"},
        {"llama.attention.head_count_kv", 3, "no multiple"},
        {"llama.rope.dimension_count", 2, "rope.dimension_count is 2"},
        {"llama.rope.dimension_count", 3, "pairs"},
        {"llama.attention.value_length", 16, "needs them equal"},
        {"llama.expert_used_count", 2, "expert_count 0"},
        {"llama.expert_count", 4, "expert_used_count is 0"},
        {"llama.expert_count", 4096, "0 to 1024"},
        {"llama.nextn_predict_layers", 9, "block_count"},
        {"llama.pooling_type", 0xFFFFFFFFu, "0 to 4"},
        {"llama.embedding_length_out", 65536, "embedding_length"},
    };
    for (const auto& damage : cases) {
        GgufImage image = chat_model();
        set(image, damage.key, damage.value);
        const std::string message = message_of(image);
        EXPECT_THAT(message, HasSubstr(damage.says)) << damage.key;
        EXPECT_THAT(message, HasSubstr("llama.")) << damage.key;
    }
}

TEST(ModelFile, RefusesMetadataOfWrongTypes) {
    GgufImage image = chat_model();
    set(image, "llama.block_count", GGUF_TYPE_FLOAT32, 2.0f);
    EXPECT_THAT(message_of(image), HasSubstr("llama.block_count is of type f32"));
    image = chat_model();
    set(image, "llama.block_count", GGUF_TYPE_INT32, -1);
    EXPECT_THAT(message_of(image), HasSubstr("llama.block_count is -1"));
    image = chat_model();
    image.find("general.architecture")->name = "general.other";
    EXPECT_THAT(message_of(image), HasSubstr("general.architecture is missing"));
    image = chat_model();
    set(image, "llama.attention.layer_norm_rms_epsilon", GGUF_TYPE_FLOAT32, -1.0f);
    EXPECT_THAT(message_of(image), HasSubstr("layer_norm_rms_epsilon is -1"));
    set(image, "llama.attention.layer_norm_rms_epsilon", GGUF_TYPE_FLOAT32,
        std::numeric_limits<float>::quiet_NaN());
    EXPECT_THAT(message_of(image), HasSubstr("layer_norm_rms_epsilon is nan"));
}

TEST(ModelFile, RefusesVocabulariesThatLlamaCppCannotUse) {
    GgufImage image = fuzz::small_bert();
    std::erase_if(image.keys, [](const auto& key) { return key.name == "tokenizer.ggml.tokens"; });
    EXPECT_THAT(message_of(image), HasSubstr("tokenizer.ggml.tokens"));
    image.add("tokenizer.ggml.tokens", std::vector<std::string>{"a", "b", "a"});
    EXPECT_THAT(message_of(image), HasSubstr("token 2"));
    std::erase_if(image.keys, [](const auto& key) { return key.name == "tokenizer.ggml.model"; });
    image.add("tokenizer.ggml.model", std::string_view("no_vocab"));
    EXPECT_THAT(message_of(image), HasSubstr("no vocabulary"));
}

TEST(ModelFile, RefusesTensorsOfTypesThatGgmlCannotMultiply) {
    GgufImage image = fuzz::small_bert();
    image.tensors[0].type = GGML_TYPE_I32;
    EXPECT_THAT(message_of(image), HasSubstr("token_embd.weight has the type i32"));
    image = fuzz::small_bert();
    image.tensors[3].type = GGML_TYPE_F16;  // a norm
    EXPECT_THAT(message_of(image), HasSubstr("F32 is expected"));
    image = chat_model();
    for (GgufImage::Tensor& tensor : image.tensors)
        if (tensor.name == "blk.0.attn_q.weight") tensor.shape[1] *= 2;
    EXPECT_THAT(message_of(image), HasSubstr("blk.0.attn_q.weight has"));
}

TEST(ModelFile, OfAModelInSeveralFilesKnowsTheLayersOfAll) {
    const SplitModel split(tiny_model());
    const ModelFile whole = inspect_model_file(tiny_model()).value();
    const auto file = inspect_model_file(split.part(0));
    ASSERT_TRUE(file.ok()) << file.error().message;
    EXPECT_EQ(file.value().bytes, whole.bytes);
    EXPECT_EQ(file.value().layers, whole.layers);
    std::filesystem::resize_file(split.part(1), std::filesystem::file_size(split.part(1)) / 2);
    EXPECT_THAT(inspect_model_file(split.part(0)).error().message,
                AllOf(HasSubstr("m-00002-of-00002.gguf"), HasSubstr("it is not complete")));
    std::filesystem::remove(split.part(1));
    EXPECT_THAT(inspect_model_file(split.part(0)).error().message,
                AllOf(HasSubstr("m-00002-of-00002.gguf"), HasSubstr("there is no such file")));
}

TEST(ModelFile, RefusesAModelWhoseTextsWouldGetTokensThatItLacks) {
    GgufImage image = fuzz::small_bert();
    std::erase_if(image.keys, [](const auto& key) { return key.name == "tokenizer.ggml.bos_token_id"; });
    image.place_tensors();
    const ImageFile file(image.header(), image.data_bytes());
    const auto loaded = Model::load(file.path(), {});
    ASSERT_FALSE(loaded.ok());
    EXPECT_THAT(loaded.error().message, HasSubstr("bos_token_id"));
}

std::string repeated(const std::string& text, int times) {
    std::string all;
    for (int i = 0; i < times; ++i) all += text;
    return all;
}

TEST(ModelTemplate, RefusesNestingThatWouldOverflowTheStack) {
    EXPECT_THAT(check_template("{{ " + repeated("(", 100000)).error().message, HasSubstr("brackets"));
    EXPECT_THAT(check_template("{{ 1" + repeated(" + 1", 100000) + " }}").error().message,
                HasSubstr("words"));
    EXPECT_THAT(check_template("{{ " + repeated("not ", 100000) + "x }}").error().message,
                HasSubstr("words"));
    EXPECT_THAT(check_template(repeated("{% if x %}", 1000)).error().message, HasSubstr("blocks"));
    EXPECT_THAT(check_template(repeated("{% set x %}", 1000)).error().message, HasSubstr("blocks"));
    EXPECT_THAT(check_template("{% if x %}" + repeated("{% elif x %}", 1000)).error().message,
                HasSubstr("branches"));
    EXPECT_THAT(check_template(std::string(2 << 20, 'x')).error().message, HasSubstr("bytes"));
}

TEST(ModelTemplate, AcceptsLongAndFlatOnes) {
    EXPECT_TRUE(check_template(repeated("{%- if x -%}{{ a[0](1) }}{% endif %}", 1000)).ok());
    EXPECT_TRUE(check_template(repeated("{% set x = [1, {'a': 2}] %}", 1000)).ok());
    EXPECT_TRUE(check_template("{{ '" + std::string(100000, '(') + "' }}").ok()) << "text, not brackets";
    EXPECT_TRUE(check_template("{# " + std::string(100000, '(') + " #}").ok());
    EXPECT_TRUE(check_template("{{ {'a': {}}|tojson }}}} {").ok());
}

TEST(ModelFileFuzz, NeverEndsTheProcess) {
#if defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "the thread sanitizer ends children that start threads";
#endif
    const fuzz::Target target = fuzz::model_file_target(tiny_model());
    const fuzz::Outcome outcome = fuzz::fuzz_for(target, 1, 3);
    EXPECT_GT(outcome.iterations, 10u);
}

}  // namespace
}  // namespace headrace::llm
