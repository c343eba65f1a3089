#include "doors/wasi_nn/component_memory.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <exception>

#include "doors/wasi_nn/component_values.h"

namespace headrace::wasi_nn::component {
namespace {

std::size_t in_pages(std::size_t bytes) {
    static const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    return (bytes + page - 1) / page * page;
}

}  // namespace

/// Addresses for as much as it may grow to, of which the first bytes are there.
class Memories::Memory {
public:
    Memory(std::shared_ptr<Memories> of, std::size_t capacity, std::size_t guard)
        : of_(std::move(of)), capacity_(capacity), mapped_(capacity + guard) {
        if (mapped_ == 0) return;
        void* made = mmap(nullptr, mapped_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (made == MAP_FAILED) throw std::bad_alloc();
        base_ = static_cast<std::uint8_t*>(made);
    }
    Memory(const Memory&) = delete;
    ~Memory() {
        if (base_) munmap(base_, mapped_);
        of_->give_back(bytes_);
        const std::lock_guard lock(of_->mutex_);
        of_->living_.erase(this);
    }

    /// Why it cannot have as many bytes, or null.
    const char* grow_to(std::size_t bytes) {
        if (bytes > capacity_) return "the memory cannot grow beyond the addresses that it has";
        if (bytes <= bytes_) return nullptr;
        if (!of_->charge(bytes - bytes_)) return "the guest's memories are as large as they may be";
        if (mprotect(base_, in_pages(bytes), PROT_READ | PROT_WRITE) != 0) {
            of_->give_back(bytes - bytes_);
            return "no memory is left";
        }
        bytes_ = bytes;
        return nullptr;
    }
    std::span<std::uint8_t> content() const { return {base_, bytes_}; }
    std::size_t capacity() const { return capacity_; }
    void* error(const char* why) const { return of_->make_error_(why); }

private:
    const std::shared_ptr<Memories> of_;
    const std::size_t capacity_, mapped_;
    std::uint8_t* base_ = nullptr;
    std::size_t bytes_ = 0;
};

void Memories::define(const std::shared_ptr<Memories>& memories, void* config, SetCreator set) {
    const MemoryCreator creator{new std::shared_ptr<Memories>(memories), &create,
                                [](void* env) { delete static_cast<std::shared_ptr<Memories>*>(env); }};
    set(config, &creator);
}

/// Makes a guest's memory for wasmtime, or returns its error: no exception may pass through wasmtime.
void* Memories::create(void* env, const void*, std::size_t least, std::size_t, std::size_t reserved,
                       std::size_t guard, LinearMemory* made) noexcept {
    const auto& memories = *static_cast<const std::shared_ptr<Memories>*>(env);
    try {
        auto memory =
            std::make_unique<Memory>(memories, in_pages(std::max(least, reserved)), in_pages(guard));
        if (const char* why = memory->grow_to(least)) return memories->make_error_(why);
        {
            const std::lock_guard lock(memories->mutex_);
            memories->living_.insert(memory.get());
        }
        *made = {memory.release(),
                 [](void* self, std::size_t* bytes, std::size_t* capacity) {
                     const auto& of = *static_cast<const Memory*>(self);
                     *bytes = of.content().size();
                     *capacity = of.capacity();
                     return of.content().data();
                 },
                 [](void* self, std::size_t bytes) -> void* {
                     auto& of = *static_cast<Memory*>(self);
                     const char* why = of.grow_to(bytes);
                     return why ? of.error(why) : nullptr;
                 },
                 [](void* self) { delete static_cast<Memory*>(self); }};
        return nullptr;
    } catch (const std::exception&) {
        return memories->make_error_("no memory is left");
    }
}

bool Memories::charge(std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    if (most_bytes_ && (bytes > most_bytes_ || bytes_ > most_bytes_ - bytes)) return false;
    bytes_ += bytes;
    return true;
}

void Memories::give_back(std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    bytes_ -= bytes;
}

std::span<std::byte> Memories::only() const {
    const std::lock_guard lock(mutex_);
    if (living_.size() != 1)
        throw GuestEnded(
            fmt::format("the guest has {} memories where it was read to have one", living_.size()));
    return std::as_writable_bytes((*living_.begin())->content());
}

}  // namespace headrace::wasi_nn::component
