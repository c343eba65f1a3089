#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include <llama.h>

namespace headrace::llm {

/// The texts of a vocabulary's tokens as a tree of bytes, in the order in which a walk meets them. Tokens
/// that end an answer and those without a text are not in it.
class TokenTrie {
public:
    explicit TokenTrie(const llama_vocab* vocab);

    struct Node {
        std::uint32_t after;        ///< the node behind all that begin with this one's text
        std::uint32_t first_token;  ///< of tokens(); the next node's is behind this one's last
        std::uint16_t depth;        ///< bytes before this one
        std::uint8_t byte;
    };
    /// The last one stands behind all.
    const std::vector<Node>& nodes() const { return nodes_; }
    const std::vector<llama_token>& tokens() const { return tokens_; }
    const std::vector<llama_token>& ends() const { return ends_; }
    std::size_t deepest() const { return deepest_; }
    std::size_t vocabulary_size() const { return size_; }

private:
    std::vector<Node> nodes_;
    std::vector<llama_token> tokens_, ends_;
    std::size_t deepest_ = 0, size_;
};

/// As llama.cpp's grammar reads it: up to a zero byte.
std::string token_text(const llama_vocab* vocab, llama_token token);

}  // namespace headrace::llm
