#include "fuzz/model_file_target.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <ggml.h>
#include <gguf.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <bit>
#include <cstring>
#include <fstream>
#include <limits>
#include <stdexcept>

#include "fuzz/gguf_image.h"
#include "fuzz/mutate.h"
#include "llm/checks/model_file.h"
#include "llm/engine/registry.h"
#include "llm/service/conversation.h"

namespace headrace::fuzz {
namespace {

constexpr unsigned kMostSeconds = 20;            // of a child
constexpr rlim_t kMostMemory = rlim_t{8} << 30;  // of a child's address space

constexpr std::string_view kArchitectures[] = {
    "llama", "qwen2",      "qwen3", "gpt2",   "bert",  "gemma2",  "phi3",       "falcon",   "mamba",
    "rwkv6", "t5",         "bloom", "clip",   "mpt",   "gptneox", "nomic-bert", "deci",     "olmo",
    "jamba", "starcoder2", "lfm2",  "gemma3", "plamo", "dream",   "glm4",       "stablelm", "command-r",
};
constexpr std::string_view kVocabularies[] = {"llama", "bert", "t5",       "rwkv", "plamo2",
                                              "none",  "gpt2", "no_vocab", "test"};
/// Keys that follow an architecture's name.
constexpr std::string_view kMoreKeys[] = {"attention.causal",
                                          "pooling_type",
                                          "expert_count",
                                          "expert_used_count",
                                          "expert_group_count",
                                          "nextn_predict_layers",
                                          "attention.sliding_window",
                                          "attention.key_length",
                                          "attention.value_length",
                                          "rope.dimension_count",
                                          "rope.scaling.type",
                                          "rope.scaling.factor",
                                          "attention.head_count_kv",
                                          "vocab_size",
                                          "attention.layer_norm_epsilon",
                                          "attention.layer_norm_rms_epsilon",
                                          "ssm.conv_kernel",
                                          "ssm.inner_size",
                                          "ssm.state_size",
                                          "ssm.time_step_rank",
                                          "ssm.group_count",
                                          "wkv.head_size",
                                          "attn_logit_softcapping",
                                          "embedding_length_out",
                                          "attention.max_alibi_bias",
                                          "attention.clamp_kqv",
                                          "logit_scale"};
constexpr std::string_view kTemplates[] = {"{% for a in range(3) %}{{ a }}{% endfor %}",
                                           "{{ raise_exception('no') }}",
                                           "{{ messages[9].content }}",
                                           "{% if %}",
                                           "{{ messages | tojson | length // 0 }}",
                                           "{{ '%s' % 3 }}",
                                           "{% set x = x %}{{ x.y.z }}"};

constexpr std::int64_t kIntegers[] = {
    0,          1, 2, 3, 5, 7, 8, 31, 64, 96, 511, 513, 1024, 4097, 65536, INT32_MAX, INT64_C(0x80000000),
    UINT32_MAX, -1};
constexpr float kFloats[] = {0.0f,
                             -1.0f,
                             1e-30f,
                             1e30f,
                             0.5f,
                             std::numeric_limits<float>::infinity(),
                             std::numeric_limits<float>::quiet_NaN()};

template <class T, std::size_t N>
const T& one_of(const T (&values)[N], Mutator& mutator) {
    return values[mutator.below(N)];
}

std::string text_value(std::string_view text) {
    GgufImage image;
    image.add("", text);
    return image.keys.front().value;
}

/// An array of a scalar's value, or its first element alone.
void change_rank(GgufImage::Key& key, Mutator& mutator) {
    if (key.type == GGUF_TYPE_ARRAY) {
        std::memcpy(&key.type, key.value.data(), sizeof(key.type));
        key.value.erase(0, 12);
        return;
    }
    const std::uint64_t count = mutator.below(4);
    std::string array(12, '\0');
    std::memcpy(array.data(), &key.type, 4);
    std::memcpy(array.data() + 4, &count, 8);
    for (std::uint64_t i = 0; i < count; ++i) array += key.value;
    key = {key.name, GGUF_TYPE_ARRAY, array};
}

void change_value(GgufImage::Key& key, Mutator& mutator) {
    if (key.type == GGUF_TYPE_STRING) {
        key.value = text_value(key.name == "tokenizer.ggml.model" ? one_of(kVocabularies, mutator)
                               : mutator.below(2)                 ? one_of(kTemplates, mutator)
                                                                  : std::string(mutator.below(70000), 'x'));
    } else if (key.type == GGUF_TYPE_ARRAY) {
        std::uint64_t count;
        std::memcpy(&count, key.value.data() + 4, 8);
        if (mutator.below(3) == 0) {
            count = mutator.below(2) ? count - 1 : static_cast<std::uint64_t>(one_of(kIntegers, mutator));
            std::memcpy(key.value.data() + 4, &count, 8);
        } else if (key.value.size() > 20) {
            const std::int64_t value = one_of(kIntegers, mutator);
            std::memcpy(key.value.data() + 12 + mutator.below((key.value.size() - 16) / 4) * 4, &value, 4);
        }
    } else if (key.type == GGUF_TYPE_FLOAT32) {
        std::memcpy(key.value.data(), &one_of(kFloats, mutator), 4);
    } else {
        const std::int64_t value = one_of(kIntegers, mutator);
        std::memcpy(key.value.data(), &value, key.value.size());
    }
}

void rename_architecture(GgufImage& image, Mutator& mutator) {
    GgufImage::Key* key = image.find("general.architecture");
    if (!key) return;
    const std::string before = key->value.substr(8) + ".", after(one_of(kArchitectures, mutator));
    key->value = text_value(after);
    for (GgufImage::Key& other : image.keys)
        if (other.name.starts_with(before)) other.name = after + "." + other.name.substr(before.size());
}

void add_key(GgufImage& image, Mutator& mutator) {
    const GgufImage::Key* architecture = image.find("general.architecture");
    if (!architecture || architecture->value.size() < 8) return;
    const std::string name = fmt::format("{}.{}", architecture->value.substr(8), one_of(kMoreKeys, mutator));
    if (image.find(name)) return;
    switch (mutator.below(5)) {
        case 0: image.add(name, one_of(kFloats, mutator)); break;
        case 1: image.add(name, mutator.below(2) == 1); break;
        case 2: image.add(name, std::string_view("yarn")); break;
        default: image.add(name, static_cast<std::uint32_t>(one_of(kIntegers, mutator))); break;
    }
}

void change_tensor(GgufImage& image, Mutator& mutator) {
    if (image.tensors.empty()) return;
    const std::size_t which = mutator.below(image.tensors.size());
    GgufImage::Tensor& tensor = image.tensors[which];
    switch (mutator.below(7)) {
        case 0: tensor.type = static_cast<std::uint32_t>(mutator.below(48)); break;
        case 1: image.tensors.erase(image.tensors.begin() + static_cast<std::ptrdiff_t>(which)); break;
        case 2: tensor.offset = static_cast<std::uint64_t>(one_of(kIntegers, mutator)); break;
        case 3: tensor.shape.push_back(mutator.below(3)); break;
        case 4: std::swap(tensor.name, image.tensors[mutator.below(image.tensors.size())].name); break;
        case 5: image.tensors.push_back(tensor); break;
        default:
            if (!tensor.shape.empty())
                tensor.shape[mutator.below(tensor.shape.size())] =
                    static_cast<std::uint64_t>(one_of(kIntegers, mutator));
    }
}

/// The same change in everything that depends on a size, so that the file is consistent with itself.
void change_size(GgufImage& image, Mutator& mutator) {
    if (image.tensors.empty() || image.tensors.front().shape.empty()) return;
    const std::uint64_t before = image.tensors[mutator.below(image.tensors.size())].shape.front();
    const auto after = static_cast<std::uint64_t>(kIntegers[mutator.below(10)]);
    for (GgufImage::Tensor& tensor : image.tensors)
        for (std::uint64_t& size : tensor.shape)
            if (size == before) size = after;
    for (GgufImage::Key& key : image.keys)
        if (key.type == GGUF_TYPE_UINT32 && key.name.find("length") != std::string::npos) {
            std::uint32_t value;
            std::memcpy(&value, key.value.data(), 4);
            if (value == before) std::memcpy(key.value.data(), &after, 4);
        }
}

void damage(GgufImage& image, Mutator& mutator) {
    const std::size_t which = mutator.below(std::max<std::size_t>(1, image.keys.size()));
    GgufImage::Key* key = image.keys.empty() ? nullptr : &image.keys[which];
    switch (mutator.below(12)) {
        case 0:
            if (key) image.keys.erase(image.keys.begin() + static_cast<std::ptrdiff_t>(which));
            break;
        case 1:
            if (key) change_rank(*key, mutator);
            break;
        case 2:
            if (key) key->type = static_cast<std::uint32_t>(mutator.below(14));
            break;
        case 3: rename_architecture(image, mutator); break;
        case 4:
        case 5: add_key(image, mutator); break;
        case 6:
        case 7: change_tensor(image, mutator); break;
        case 8: change_size(image, mutator); break;
        default:
            if (key) change_value(*key, mutator);
    }
}

/// Part 0 is a header, part 1 the data's size.
Parts damaged(const Parts& parts, Mutator& mutator) {
    if (mutator.below(8) == 0) return {parts[0].substr(0, mutator.below(parts[0].size())), parts[1]};
    if (mutator.below(8) == 0) return {mutator.mutate(parts[0], parts[0], {}), parts[1]};
    GgufImage image = GgufImage::read(parts[0]);
    for (std::size_t i = mutator.below(3) + 1; i > 0; --i) damage(image, mutator);
    if (mutator.below(4)) image.place_tensors();
    return {image.header(), std::to_string(image.data_bytes())};
}

/// A file in memory, its data zeros.
class MemoryFile {
public:
    explicit MemoryFile(const Parts& parts) : file_(memfd_create("damaged", MFD_CLOEXEC)) {
        const std::string& header = parts[0];
        const auto bytes = static_cast<off_t>(header.size() + 32 + std::stoull(parts[1]));
        if (file_ < 0 || write(file_, header.data(), header.size()) != static_cast<ssize_t>(header.size()) ||
            (!parts[1].empty() && ftruncate(file_, bytes) != 0))
            throw std::runtime_error("no file in memory");
    }
    ~MemoryFile() { close(file_); }
    MemoryFile(const MemoryFile&) = delete;
    std::string path() const { return fmt::format("/proc/self/fd/{}", file_); }

private:
    int file_;
};

bool answers(const std::string& path) {
    llm::Settings settings;
    settings.context.n_threads = 1;
    settings.context.n_ctx = 128;
    settings.request.n_predict = 2;
    const auto runner = llm::open_runner(path, settings);
    if (!runner.ok()) return false;
    if (runner.value().embedder) {
        return runner.value().embedder->embed({"a b c"}, settings.request).ok();
    }
    llm::Engine& engine = *runner.value().engine;
    llm::RequestSettings request = settings.request;
    request.chat = "on";
    auto prompt = llm::make_prompt(engine.model(), {}, "a b\n", engine.context_size(), request);
    if (!prompt.ok()) return false;
    auto generation = engine.submit({.prompt = prompt.value().tokens, .settings = request});
    return generation.ok() && !generation.value()->wait().failed();
}

[[noreturn]] void be_child(const std::string& path) {
    alarm(kMostSeconds);
    setenv("GGML_NO_BACKTRACE", "1", 1);  // ggml would start a debugger
    const rlimit memory{kMostMemory, kMostMemory};
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    setrlimit(RLIMIT_AS, &memory);
#else
    (void)memory;
#endif
    bool fine = false;
    try {
        fine = answers(path);
    } catch (const std::exception&) {  // a door turns it into an error
    }
    _exit(fine ? 0 : 1);
}

bool load(const Parts& parts) {
    const MemoryFile file(parts);
    if (!llm::inspect_model_file(file.path()).ok()) return false;
    const pid_t child = fork();
    if (child < 0) throw std::runtime_error("no child process");
    if (child == 0) be_child(file.path());
    int status = 0;
    while (waitpid(child, &status, 0) < 0)
        if (errno != EINTR) throw std::runtime_error("the child is lost");
    if (WIFSIGNALED(status))
        throw std::logic_error(fmt::format("loading was ended by signal {} ({})", WTERMSIG(status),
                                           strsignal(WTERMSIG(status))));
    return WEXITSTATUS(status) == 0;
}

}  // namespace

Target model_file_target(const std::string& chat_model) {
    llm::start_llama();
    std::ifstream file(chat_model, std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(file), {}};
    Target target{.name = "model", .load = load, .mutate = damaged};
    for (const GgufImage& image : {GgufImage::read(bytes), small_bert()})
        target.corpus.push_back({image.header(), std::to_string(image.data_bytes())});
    return target;
}

}  // namespace headrace::fuzz
