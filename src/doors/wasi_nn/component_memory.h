#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <span>

/// The memories of one guest under wasmtime, which asks us for them: so that all of them together stay within
/// a limit, and that what a component's imports point to can be read and written where it is.
namespace headrace::wasi_nn::component {

// As wasmtime's C interface lays them out; _component.py compares the sizes.

struct LinearMemory {
    void* env;
    std::uint8_t* (*get)(void* env, std::size_t* bytes, std::size_t* capacity);
    void* (*grow)(void* env, std::size_t bytes);
    void (*finalize)(void* env);
};
struct MemoryCreator {
    void* env;
    void* (*create)(void* env, const void* type, std::size_t least, std::size_t most, std::size_t reserved,
                    std::size_t guard, LinearMemory* made);
    void (*finalize)(void* env);
};
static_assert(sizeof(LinearMemory) == 32 && sizeof(MemoryCreator) == 24);

class Memories {
public:
    using MakeError = void* (*)(const char* message);
    using SetCreator = void (*)(void* config, const MemoryCreator* creator);

    /// most_bytes: of all memories together; 0: any.
    Memories(MakeError make_error, std::uint64_t most_bytes)
        : make_error_(make_error), most_bytes_(most_bytes) {}
    Memories(const Memories&) = delete;

    /// Lets a configuration of wasmtime make its memories here, which live as long as its engine.
    static void define(const std::shared_ptr<Memories>& memories, void* config, SetCreator set);

    /// The guest's only memory. Throws GuestEnded where it has none, or several.
    std::span<std::byte> only() const;

private:
    class Memory;
    static void* create(void* env, const void* type, std::size_t least, std::size_t most,
                        std::size_t reserved, std::size_t guard, LinearMemory* made) noexcept;
    bool charge(std::size_t bytes);
    void give_back(std::size_t bytes);

    const MakeError make_error_;
    const std::uint64_t most_bytes_;
    mutable std::mutex mutex_;  // of what follows
    std::uint64_t bytes_ = 0;
    std::set<const Memory*> living_;
};

}  // namespace headrace::wasi_nn::component
