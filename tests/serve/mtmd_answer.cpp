// What llama.cpp's own helpers answer to a prompt with images: mtmd_answer MODEL MMPROJ TOKENS IMAGE... <
// PROMPT, which has <__media__> where the images are. Greedy; prints the text of that many tokens.
#include <mtmd-helper.h>
#include <mtmd.h>

#include <algorithm>
#include <iostream>
#include <iterator>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "loading/backends.h"

namespace {

int fail(const std::string& what) {
    std::cerr << what << "\n";
    return 1;
}

std::string text_of(const llama_vocab* vocab, llama_token token) {
    char piece[256];
    const int size = llama_token_to_piece(vocab, token, piece, sizeof(piece), 0, false);
    return std::string(piece, static_cast<std::size_t>(std::max(size, 0)));
}

/// The likeliest token; none where another one is about as likely: sums in another order may choose that.
std::optional<llama_token> likeliest(llama_context* context, int vocabulary) {
    constexpr float kClear = 0.03f;
    const float* logits = llama_get_logits_ith(context, -1);
    std::vector<llama_token> tokens(static_cast<std::size_t>(vocabulary));
    std::iota(tokens.begin(), tokens.end(), 0);
    std::partial_sort(tokens.begin(), tokens.begin() + 2, tokens.end(),
                      [&](llama_token a, llama_token b) { return logits[a] > logits[b]; });
    if (logits[tokens[0]] - logits[tokens[1]] < kClear) return std::nullopt;
    return tokens[0];
}

}  // namespace

int main(int count, char** arguments) {
    if (count < 4) return fail("mtmd_answer MODEL MMPROJ TOKENS IMAGE... < PROMPT");
    const auto silent = [](ggml_log_level, const char*, void*) {};
    llama_log_set(silent, nullptr);
    mtmd_helper_log_set(silent, nullptr);
    headrace::load_all_backends();
    std::unique_ptr<llama_model, decltype(&llama_model_free)> model(
        llama_model_load_from_file(arguments[1], llama_model_default_params()), llama_model_free);
    if (!model) return fail("no model");
    llama_context_params params = llama_context_default_params();
    params.n_ctx = 1024;
    params.n_threads = params.n_threads_batch = 1;
    std::unique_ptr<llama_context, decltype(&llama_free)> context(llama_init_from_model(model.get(), params),
                                                                  llama_free);
    mtmd_context_params reading = mtmd_context_params_default();
    reading.use_gpu = false;
    reading.n_threads = 1;
    const mtmd::context_ptr projector(mtmd_init_from_file(arguments[2], model.get(), reading));
    if (!context || !projector) return fail("no context");
    std::vector<mtmd::bitmap_ptr> bitmaps;
    std::vector<const mtmd_bitmap*> images;
    for (int i = 4; i < count; ++i) {
        bitmaps.emplace_back(mtmd_helper_bitmap_init_from_file(projector.get(), arguments[i], false,
                                                               mtmd_helper_init_opt_default())
                                 .bitmap);
        if (!bitmaps.back()) return fail("no image");
        images.push_back(bitmaps.back().get());
    }
    const std::string prompt(std::istreambuf_iterator<char>(std::cin), {});
    const mtmd_input_text text{prompt.data(), prompt.size(), true, true};
    const mtmd::input_chunks_ptr chunks(mtmd_input_chunks_init());
    if (mtmd_tokenize(projector.get(), chunks.get(), &text, images.data(), images.size()))
        return fail("no tokens");
    llama_pos position = 0;
    if (mtmd_helper_eval_chunks(projector.get(), context.get(), chunks.get(), 0, 0, 512, true, &position))
        return fail("not read");
    const llama_vocab* vocab = llama_model_get_vocab(model.get());
    for (int left = std::stoi(arguments[3]); left > 0; --left) {
        std::optional<llama_token> token = likeliest(context.get(), llama_vocab_n_tokens(vocab));
        if (!token) break;
        std::cout << text_of(vocab, *token);
        llama_batch batch = llama_batch_get_one(&*token, 1);
        if (llama_decode(context.get(), batch)) return fail("not decoded");
    }
    return 0;
}
