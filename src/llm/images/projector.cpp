#include "llm/images/projector.h"

#include <hash/hash.h>
#include <llama.h>
#include <mtmd-helper.h>
#include <mtmd.h>
#include <stb/stb_image.h>

#include <algorithm>
#include <filesystem>
#include <mutex>
#include <random>
#include <utility>

#include "base/cpu_count.h"
#include "llm/log/llama_log.h"

namespace headrace::llm {
namespace {

constexpr std::size_t kMostImages = 64;            // of a prompt
constexpr std::size_t kMostImageBytes = 32 << 20;  // of a file
constexpr std::size_t kMostPixels = 1 << 25;
constexpr int kLongestSide = 200;  // times the shorter one: what is thinner shows nothing
constexpr std::size_t kThreadsFromFileBytes =
    32 << 20;                       // of a file: threads of smaller ones wait for each other
constexpr double kPieceCost = 2e9;  // multiplications, until others may compute

bool begins_with(std::string_view file, std::initializer_list<std::string_view> marks) {
    return std::any_of(marks.begin(), marks.end(), [&](std::string_view m) { return file.starts_with(m); });
}

Error wrong_image(const Image& image, std::string what) {
    return invalid("{}: {}", image.name.empty() ? "the image" : image.name, what).of_parameter(image.name);
}

/// What stb says in two words of its own, if it says anything.
std::string why_damaged() {
    const char* given = stbi_failure_reason();
    const std::string_view reason = given ? given : "";
    for (std::string_view end : {"outofdata", "unexpected end", "unexpected eof", "too short"})
        if (reason.find(end) != std::string_view::npos) return "it is damaged: it ends before its pixels do";
    if (reason.empty()) return "it is damaged: its pixels cannot be read";
    return fmt::format("it is damaged: its pixels cannot be read ({})", reason);
}

/// Its width and height, as the file says.
Status check_size(const Image& image) {
    const std::string_view file = *image.file;
    if (file.size() > kMostImageBytes)
        return wrong_image(image,
                           fmt::format("it has {} bytes; at most {} are read", file.size(), kMostImageBytes));
    if (file.starts_with("RIFF") && file.substr(0, 12).ends_with("WEBP"))
        return wrong_image(image, "it is WebP, which is not read; send PNG or JPEG");
    if (!begins_with(file, {"\x89PNG", "\xFF\xD8\xFF", "GIF8", "BM"}))
        return wrong_image(image, "it is no PNG, JPEG, GIF or BMP");
    int width = 0, height = 0, channels = 0;
    if (!stbi_info_from_memory(reinterpret_cast<const stbi_uc*>(file.data()), static_cast<int>(file.size()),
                               &width, &height, &channels) ||
        width < 1 || height < 1)
        return wrong_image(image, "it is damaged: its first bytes tell no width and height that can be read");
    if (static_cast<std::size_t>(width) * static_cast<std::size_t>(height) > kMostPixels)
        return wrong_image(image, fmt::format("it has {} x {} pixels; at most {} together are read", width,
                                              height, kMostPixels));
    if (std::max(width, height) > kLongestSide * std::min(width, height))
        return wrong_image(image, fmt::format("it has {} x {} pixels; a side may be {} times the other one",
                                              width, height, kLongestSide));
    return success();
}

Result<mtmd::bitmap_ptr> decode(const Image& image) {
    HR_TRY(check_size(image));
    const std::string& file = *image.file;
    int width = 0, height = 0, channels = 0;
    const std::unique_ptr<stbi_uc, decltype(&stbi_image_free)> pixels(
        stbi_load_from_memory(reinterpret_cast<const stbi_uc*>(file.data()), static_cast<int>(file.size()),
                              &width, &height, &channels, 3),
        &stbi_image_free);
    if (!pixels) return wrong_image(image, why_damaged());
    mtmd::bitmap_ptr bitmap(mtmd_bitmap_init(static_cast<std::uint32_t>(width),
                                             static_cast<std::uint32_t>(height), pixels.get()));
    mtmd_bitmap_set_id(bitmap.get(), hash_sha256_hex(file.data(), file.size()).c_str());
    return bitmap;
}

std::string random_mark() {
    std::random_device random;
    std::string mark = "<__image_";
    for (int i = 0; i < 4; ++i) mark += fmt::format("{:08x}", random());
    return mark + "__>";
}

std::vector<std::string_view> split_at(std::string_view text, std::string_view mark) {
    std::vector<std::string_view> parts;
    for (std::size_t at; (at = text.find(mark)) != std::string_view::npos;
         text.remove_prefix(at + mark.size()))
        parts.push_back(text.substr(0, at));
    parts.push_back(text);
    return parts;
}

double cost_of(const ggml_tensor* node) {
    const auto elements = static_cast<double>(ggml_nelements(node));
    return node->op == GGML_OP_MUL_MAT ? elements * static_cast<double>(node->src[0]->ne[0]) : elements;
}

}  // namespace

struct Projector::Impl {
    mtmd::context_ptr context;
    std::size_t bytes = 0, width = 0;  // width: of an embedding
    // What the encoding that runs asks; with `encoding` held.
    std::mutex encoding;
    const std::function<bool()>* goes_on = nullptr;
    double cost = 0;
    bool is_stopped = false;

    /// ggml asks before each node whether it should stop behind it, and there, whether it should go on.
    static bool see_node(ggml_tensor* node, bool is_before, void* user) {
        Impl& self = *static_cast<Impl*>(user);
        if (!self.goes_on) return false;  // a trial while it is loaded
        if (is_before) {
            self.cost += cost_of(node);
            return self.is_stopped || self.cost >= kPieceCost;
        }
        self.cost = 0;
        if (!self.is_stopped) self.is_stopped = !(*self.goes_on)();
        return !self.is_stopped;
    }
};

namespace {

mtmd_context_params params_of(const ModelSettings& settings) {
    mtmd_context_params params = mtmd_context_params_default();
    params.use_gpu = settings.mmproj_offload;
    params.print_timings = false;
    params.media_marker = Projector::marker().c_str();
    params.image_min_tokens = settings.image_min_tokens;
    params.image_max_tokens = settings.image_max_tokens;
    return params;
}

}  // namespace

Projector::Projector(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Projector::~Projector() = default;

bool has_projectors() { return true; }

const std::string& Projector::marker() {
    static const std::string mark = random_mark();
    return mark;
}

std::size_t Projector::bytes() const { return impl_->bytes; }

std::uint64_t Projector::needed_bytes(const ModelSettings& settings) {
    std::error_code error;
    const std::uint64_t of_file = std::filesystem::file_size(settings.mmproj, error);
    if (error) return 0;
    std::uint64_t laid_out = 0;
    for (const auto& [device, bytes] : mtmd_get_memory_usage(settings.mmproj.c_str(), params_of(settings)))
        laid_out += bytes;
    return std::max(of_file, laid_out);
}

Result<std::unique_ptr<Projector>> Projector::load(const ModelSettings& settings, const llama_model* model) {
    const std::string& path = settings.mmproj;
    std::error_code error;
    auto impl = std::make_unique<Impl>();
    impl->bytes = std::filesystem::file_size(path, error);
    if (error) return failure(Code::not_found, "{}: there is no such file", path);
    mtmd_helper_log_set(llama_log_callback(), nullptr);
    mtmd_context_params params = params_of(settings);
    params.n_threads = impl->bytes < kThreadsFromFileBytes ? 1 : usable_cpus();
    params.cb_eval = &Impl::see_node;
    params.cb_eval_user_data = impl.get();
    take_llama_errors();
    impl->context.reset(mtmd_init_from_file(path.c_str(), model, params));
    if (!impl->context)
        return invalid("{}: llama.cpp cannot read images with it: {}. Is it this model's projector?", path,
                       take_llama_errors());
    if (!mtmd_support_vision(impl->context.get()))
        return unsupported("{}: it reads sounds, and images alone are read here", path);
    impl->width = static_cast<std::size_t>(llama_model_n_embd_inp(model));
    return std::unique_ptr<Projector>(new Projector(std::move(impl)));
}

Result<ImagePrompt> Projector::tokenize(std::string_view text,
                                        const std::vector<const Image*>& images) const {
    if (images.size() > kMostImages)
        return invalid("the request has {} images; at most {} are read", images.size(), kMostImages);
    const std::vector<std::string_view> texts = split_at(text, marker());
    if (texts.size() != images.size() + 1)
        return invalid("the model's chat template writes {} of {} images", texts.size() - 1, images.size());
    std::vector<mtmd::bitmap_ptr> bitmaps;
    for (const Image* image : images) {
        HR_ASSIGN(mtmd::bitmap_ptr bitmap, decode(*image));
        bitmaps.push_back(std::move(bitmap));
    }
    std::vector<mtmd_input_text> inputs;
    for (std::string_view part : texts) inputs.push_back({part.data(), part.size(), false, true});
    std::vector<mtmd_input_part> parts;
    for (std::size_t i = 0; i < texts.size(); ++i) {
        parts.push_back({&inputs[i], nullptr});
        if (i < bitmaps.size()) parts.push_back({nullptr, bitmaps[i].get()});
    }
    std::vector<const mtmd_input_part*> pointers;
    for (const mtmd_input_part& part : parts) pointers.push_back(&part);
    const mtmd::input_chunks_ptr chunks(mtmd_input_chunks_init());
    take_llama_errors();
    if (mtmd_tokenize_from_parts(impl_->context.get(), chunks.get(), pointers.data(), pointers.size(), true))
        return invalid("an image cannot be prepared for the model: {}", take_llama_errors());
    ImagePrompt prompt;
    for (std::size_t i = 0; i < mtmd_input_chunks_size(chunks.get()); ++i)
        HR_TRY(add_chunk(prompt, mtmd_input_chunks_get(chunks.get(), i)));
    return prompt;
}

Status Projector::add_chunk(ImagePrompt& prompt, const mtmd_input_chunk* chunk) const {
    std::size_t count = 0;
    if (mtmd_input_chunk_get_type(chunk) == MTMD_INPUT_CHUNK_TYPE_TEXT) {
        const llama_token* tokens = mtmd_input_chunk_get_tokens_text(chunk, &count);
        prompt.tokens.insert(prompt.tokens.end(), tokens, tokens + count);
        return success();
    }
    count = mtmd_input_chunk_get_n_tokens(chunk);
    const auto positions = static_cast<std::size_t>(mtmd_input_chunk_get_n_pos(chunk));
    if (count == 0 || positions == 0 || positions > count)
        return unsupported("llama.cpp makes {} tokens at {} positions of an image, which is not covered",
                           count, positions);
    const char* of = mtmd_input_chunk_get_id(chunk);
    // One image may be cut into pieces, which all bear its name.
    const auto before = std::count_if(prompt.pieces.begin(), prompt.pieces.end(), [&](const ImagePiece& p) {
        return mtmd_input_chunk_get_id(p.chunk.get()) == std::string_view(of);
    });
    const std::string name = fmt::format("{} {} {} {}", of, before, count, positions);
    ImagePiece piece{.begin = prompt.tokens.size(),
                     .count = count,
                     .id = hash_sha256_hex(name.data(), name.size()),
                     .looks_ahead = mtmd_decode_use_non_causal(impl_->context.get(), chunk),
                     .chunk = {mtmd_input_chunk_copy(chunk), mtmd_input_chunk_free}};
    const Tokens tokens = image_tokens(piece.id, count, positions);
    prompt.tokens.insert(prompt.tokens.end(), tokens.begin(), tokens.end());
    prompt.pieces.push_back(std::move(piece));
    return success();
}

Result<std::vector<float>> Projector::encode(const ImagePiece& piece,
                                             const std::function<bool()>& goes_on) const {
    Impl& impl = *impl_;
    const std::lock_guard lock(impl.encoding);
    impl.cost = 0;
    impl.is_stopped = !goes_on();
    int status = 0;
    take_llama_errors();
    if (!impl.is_stopped) {
        impl.goes_on = &goes_on;
        status = mtmd_encode_chunk(impl.context.get(), piece.chunk.get());
        impl.goes_on = nullptr;
    }
    if (impl.is_stopped) return failure(Code::cancelled, "nobody waits for the image any more");
    if (status != 0)
        return failure(Code::backend_failure, "the image cannot be computed: {}", take_llama_errors());
    const float* rows = mtmd_get_output_embd(impl.context.get());
    return std::vector<float>(rows, rows + piece.count * impl.width);
}

void Projector::add_rows(llama_batch_ext* batch, const ImagePiece& piece, const std::vector<float>& rows,
                         std::size_t first, std::size_t count, std::size_t position,
                         llama_seq_id sequence) const {
    const bool is_wide = mtmd_decode_use_mrope(impl_->context.get());
    const mtmd_image_tokens* image = mtmd_input_chunk_get_tokens_image(piece.chunk.get());
    for (std::size_t i = first; i < first + count; ++i) {
        const std::int32_t entry =
            llama_batch_ext_add_embd(batch, sequence, {rows.data() + i * impl_->width, 1, impl_->width});
        llama_pos at[4] = {static_cast<llama_pos>(position + i), 0, 0, 0};
        if (is_wide) {
            const mtmd_decoder_pos p =
                mtmd_image_tokens_get_decoder_pos(image, static_cast<llama_pos>(position), i);
            at[0] = static_cast<llama_pos>(p.t);
            at[1] = static_cast<llama_pos>(p.y);
            at[2] = static_cast<llama_pos>(p.x);
            at[3] = static_cast<llama_pos>(p.z);
        }
        llama_batch_ext_set_pos(batch, entry, at);
    }
}

}  // namespace headrace::llm
