#include "llm/grammar/token_trie.h"

#include <common/common.h>

#include <algorithm>
#include <string>
#include <utility>

namespace headrace::llm {

std::string token_text(const llama_vocab* vocab, llama_token token) {
    std::string text = common_token_to_piece(vocab, token, true);
    text.resize(std::min(text.size(), text.find('\0')));
    return text;
}

TokenTrie::TokenTrie(const llama_vocab* vocab)
    : size_(static_cast<std::size_t>(llama_vocab_n_tokens(vocab))) {
    std::vector<std::pair<std::string, llama_token>> texts;
    for (llama_token token = 0; token < static_cast<llama_token>(size_); ++token) {
        if (llama_vocab_is_eog(vocab, token)) {
            ends_.push_back(token);
            continue;
        }
        std::string text = token_text(vocab, token);
        if (!text.empty() && text.size() < UINT16_MAX) texts.emplace_back(std::move(text), token);
    }
    std::sort(texts.begin(), texts.end());
    std::vector<std::uint32_t> path;  // the nodes of the text before
    const auto close = [&](std::size_t depth) {
        for (; path.size() > depth; path.pop_back())
            nodes_[path.back()].after = static_cast<std::uint32_t>(nodes_.size());
    };
    const std::string* before = nullptr;
    for (const auto& [text, token] : texts) {
        std::size_t same = 0;
        if (before != nullptr)
            same = static_cast<std::size_t>(
                std::mismatch(before->begin(), before->end(), text.begin(), text.end()).second -
                text.begin());
        close(same);
        for (std::size_t depth = same; depth < text.size(); ++depth) {
            path.push_back(static_cast<std::uint32_t>(nodes_.size()));
            nodes_.push_back({0, static_cast<std::uint32_t>(tokens_.size()),
                              static_cast<std::uint16_t>(depth), static_cast<std::uint8_t>(text[depth])});
        }
        tokens_.push_back(token);
        deepest_ = std::max(deepest_, text.size());
        before = &text;
    }
    close(0);
    nodes_.push_back({0, static_cast<std::uint32_t>(tokens_.size()), 0, 0});
}

}  // namespace headrace::llm
