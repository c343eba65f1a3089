#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>

#include "base/result.h"

namespace headrace::llm {

/// Bytes that the models and texts of a host's guests take together. Thread-safe.
class MemoryBudget {
public:
    /// most: the host's max_memory_bytes; 0 any number.
    explicit MemoryBudget(std::int64_t most)
        : most_(most > 0 ? static_cast<std::uint64_t>(most) : UINT64_MAX) {}

    bool is_limited() const { return most_ != UINT64_MAX; }
    std::uint64_t most() const { return most_; }
    std::uint64_t used() const { return used_; }
    std::uint64_t left() const {
        const std::uint64_t used = used_;
        return used < most_ ? most_ - used : 0;
    }
    /// Code::out_of_memory where it is used up.
    Status check() const;
    /// what: "the prompt". Code::out_of_memory where that many more are not left; nothing is taken then.
    Status take(std::uint64_t bytes, std::string_view what);
    /// Counts what is there already, also beyond the limit.
    void add(std::uint64_t bytes) { used_ += bytes; }
    void give_back(std::uint64_t bytes) { used_ -= bytes; }

private:
    const std::uint64_t most_;
    std::atomic<std::uint64_t> used_ = 0;
};

/// Bytes of a budget, which get them back at its end. Without a budget nothing is counted.
class HeldMemory {
public:
    HeldMemory() = default;
    explicit HeldMemory(std::shared_ptr<MemoryBudget> budget) : budget_(std::move(budget)) {}
    HeldMemory(HeldMemory&& other) noexcept
        : budget_(std::move(other.budget_)), bytes_(std::exchange(other.bytes_, 0)) {}
    HeldMemory& operator=(HeldMemory other) noexcept {
        std::swap(budget_, other.budget_);
        std::swap(bytes_, other.bytes_);
        return *this;
    }
    ~HeldMemory() {
        if (budget_) budget_->give_back(bytes_);
    }

    std::uint64_t bytes() const { return bytes_; }
    /// So many in the place of those before. Code::out_of_memory as MemoryBudget::take; nothing changes then.
    Status become(std::uint64_t bytes, std::string_view what);
    /// The same of what is there already.
    void note(std::uint64_t bytes);

private:
    std::shared_ptr<MemoryBudget> budget_;
    std::uint64_t bytes_ = 0;
};

}  // namespace headrace::llm
