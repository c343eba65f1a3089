#include "llm/service/memory_budget.h"

namespace headrace::llm {

Status MemoryBudget::check() const {
    const std::uint64_t used = used_;
    if (used <= most_) return success();
    return failure(Code::out_of_memory,
                   "the guest's models and texts take {} bytes, and the host's max_memory_bytes is {}; close "
                   "a context or a session, or unload a model",
                   used, most_);
}

Status MemoryBudget::take(std::uint64_t bytes, std::string_view what) {
    std::uint64_t used = used_;
    do {
        if (used > most_ || bytes > most_ - used)
            return failure(Code::out_of_memory,
                           "{} takes {} bytes; {} of {}, the host's max_memory_bytes, are in use. Close a "
                           "context, unload a model, or raise it",
                           what, bytes, used, most_);
    } while (!used_.compare_exchange_weak(used, used + bytes));
    return success();
}

Status HeldMemory::become(std::uint64_t bytes, std::string_view what) {
    if (budget_ && bytes > bytes_) HR_TRY(budget_->take(bytes - bytes_, what));
    if (budget_ && bytes < bytes_) budget_->give_back(bytes_ - bytes);
    bytes_ = bytes;
    return success();
}

void HeldMemory::note(std::uint64_t bytes) {
    if (budget_ && bytes > bytes_) budget_->add(bytes - bytes_);
    if (budget_ && bytes < bytes_) budget_->give_back(bytes_ - bytes);
    bytes_ = bytes;
}

}  // namespace headrace::llm
