#include "fuzz/guest_calls_target.h"

#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <set>
#include <stdexcept>

#include "checkout.h"
#include "doors/onnx/model_bytes.h"
#include "fuzz/mutate.h"

namespace headrace::fuzz {
namespace {

constexpr std::size_t kSize = 65536;
constexpr std::string_view kConfig =
    R"({"n_threads": 1, "log_level": "none", "max_graphs": 8, "max_contexts": 8, "max_compute_ms": 1000,
        "max_graph_bytes": 100000000})";
/// In the guest's memory: a model's bytes and size, what calls give, two tensors, and what these point to.
enum Place : std::uint32_t {
    kPart = 0,
    kGraph = 16,
    kContext = 20,
    kWritten = 24,
    kX = 32,
    kW = 64,
    kShapes = 96,
    kValues = 128,
    kName = 256,
    kOutput = 512,
    kModel = 4096
};
/// Numbers of the imports, in the order of headrace/wasi_nn_guests.h.
enum Import : std::uint32_t {
    kLoad = 0,
    kLoadByName = 1,
    kUnload = 3,
    kOpen = 4,
    kClose = 6,
    kSetInput = 7,
    kCompute = 8,
    kGetOutput = 9,
    kImports = 13
};

/// Bit i of `indirect`: parameter i is the word at that address when the call is made.
struct GuestCall {
    std::uint32_t import, indirect;
    std::array<std::uint32_t, 5> parameters;
};

class Library {
public:
    Library() {
        if (wasi_nn_folder().empty()) return;
        void* handle = dlopen((wasi_nn_folder() + "/libwasi_nn_llamacpp.so").c_str(), RTLD_NOW | RTLD_LOCAL);
        if (!handle) throw std::runtime_error(dlerror());
        find(handle, "init_backend_with_config", init);
        find(handle, "deinit_backend", deinit);
        find(handle, "headrace_guest_call", call);
    }
    bool is_built() const { return call != nullptr; }

    int (*init)(void** backend, const char* config, std::uint32_t size) = nullptr;
    int (*deinit)(void* backend) = nullptr;
    std::uint32_t (*call)(void* backend, std::uint32_t import, std::uint8_t* memory, std::uint64_t size,
                          const std::uint32_t* parameters) = nullptr;

private:
    template <class Function>
    static void find(void* handle, const char* name, Function& function) {
        function = reinterpret_cast<Function>(dlsym(handle, name));
        if (!function) throw std::runtime_error(dlerror());
    }
};

const Library& library() {
    static const Library library;
    return library;
}

/// Memory that ends where a page begins that nobody may read.
class GuestMemory {
public:
    explicit GuestMemory(std::string_view content) {
        void* pages =
            mmap(nullptr, kSize + page(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (pages == MAP_FAILED || mprotect(static_cast<char*>(pages) + kSize, page(), PROT_NONE) != 0)
            throw std::runtime_error("no memory for a guest");
        bytes_ = static_cast<std::uint8_t*>(pages);
        std::copy_n(content.data(), std::min(content.size(), kSize), bytes_);
    }
    ~GuestMemory() { munmap(bytes_, kSize + page()); }
    GuestMemory(const GuestMemory&) = delete;
    GuestMemory& operator=(const GuestMemory&) = delete;

    std::uint8_t* bytes() { return bytes_; }
    std::uint32_t word(std::uint32_t at) const {
        std::uint32_t value = 0;
        if (at + std::uint64_t{4} <= kSize) std::memcpy(&value, bytes_ + at, sizeof value);
        return value;
    }

private:
    static std::size_t page() { return static_cast<std::size_t>(sysconf(_SC_PAGESIZE)); }
    std::uint8_t* bytes_ = nullptr;
};

/// Whether every call succeeded.
bool make_calls(const Parts& parts) {
    static const std::set<std::uint32_t> known{0, 1, 2, 3, 4, 5, 6, 7, 8, 100, 101, 102, 103};
    GuestMemory memory(parts[0]);
    void* backend = nullptr;
    if (library().init(&backend, kConfig.data(), static_cast<std::uint32_t>(kConfig.size())) != 0)
        throw std::logic_error("the configuration is refused");
    bool all = true;
    for (std::size_t at = 0; at + sizeof(GuestCall) <= parts[1].size(); at += sizeof(GuestCall)) {
        GuestCall made{};
        std::memcpy(&made, parts[1].data() + at, sizeof made);
        for (std::size_t i = 0; i < made.parameters.size(); ++i)
            if (made.indirect >> i & 1) made.parameters[i] = memory.word(made.parameters[i]);
        const std::uint32_t error =
            library().call(backend, made.import, memory.bytes(), kSize, made.parameters.data());
        if (!known.contains(error)) throw std::logic_error("a call gives " + std::to_string(error));
        all = all && error == 0;
    }
    library().deinit(backend);
    return all;
}

template <class T>
std::string bytes_of(const std::vector<T>& values) {
    return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

Parts sound_program() {
    using namespace onnx;
    const std::string model =
        model_of({node("Add", {"x", "w"}, "sum")}, {float_value("x", {"n", "2"}), float_value("w", {"2"})},
                 {float_value("sum", {"n", "2"})});
    std::string memory(kModel, '\0');
    const auto put = [&](std::uint32_t at, const std::string& bytes) {
        memory.replace(at, bytes.size(), bytes);
    };
    const auto put_words = [&](std::uint32_t at, const std::vector<std::uint32_t>& words) {
        put(at, bytes_of(words));
    };
    put_words(kPart, {kModel, static_cast<std::uint32_t>(model.size())});
    put_words(kShapes, {2, 2});
    put_words(kX, {kShapes, 2, 1, kValues, 16});
    put_words(kW, {kShapes, 1, 1, kValues, 8});
    put(kValues, bytes_of(std::vector<float>{1, 2, 3, 4}));
    put(kName, "missing.onnx");
    memory += model;
    const std::vector<GuestCall> calls{
        {kLoad, 0, {kPart, 1, 1, 0, kGraph}},
        {kOpen, 1, {kGraph, kContext}},
        {kSetInput, 1, {kContext, 0, kX}},
        {kSetInput, 1, {kContext, 1, kW}},
        {kCompute, 1, {kContext}},
        {kGetOutput, 1, {kContext, 0, kOutput, 64, kWritten}},
        {kGetOutput, 1, {kContext, UINT32_MAX, kOutput, 2048, kWritten}},
        {kClose, 1, {kContext}},
        {kUnload, 1, {kGraph}},
    };
    return {memory, bytes_of(calls)};
}

std::uint32_t any_number(Mutator& mutator) {
    static constexpr std::array<std::uint32_t, 16> kNumbers{
        0,     1,     2,     4,        7,          64,         256,        65532,
        65535, 65536, 65537, 1u << 30, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFC, 0xFFFFFFFF};
    return kNumbers[mutator.below(kNumbers.size())];
}

Parts changed(const Parts& parts, Mutator& mutator) {
    std::string memory = parts[0], calls = parts[1];
    const std::size_t count = calls.size() / sizeof(GuestCall);
    for (std::size_t i = mutator.below(3); i > 0; --i) {
        const std::size_t at = mutator.below(count) * sizeof(GuestCall) + 4 * mutator.below(7);
        const std::uint32_t number =
            mutator.below(3) == 0 ? static_cast<std::uint32_t>(mutator.below(kImports)) : any_number(mutator);
        std::memcpy(calls.data() + at, &number, sizeof number);
    }
    for (std::size_t i = mutator.below(3); i > 0; --i) {  // tensors, shapes and the model's place
        const std::uint32_t number = any_number(mutator);
        std::memcpy(memory.data() + 4 * mutator.below(kName / 4), &number, sizeof number);
    }
    if (mutator.below(3) == 0) {
        const std::string model = mutator.mutate(memory.substr(kModel), parts[1], {});
        memory = memory.substr(0, kModel) + model;
    }
    if (mutator.below(4) == 0) {  // a call again, at another time
        const std::string again = calls.substr(mutator.below(count) * sizeof(GuestCall), sizeof(GuestCall));
        calls.insert(mutator.below(count) * sizeof(GuestCall), again);
    }
    return {std::move(memory), std::move(calls)};
}

}  // namespace

Target guest_calls_target() {
    Target target{"guest_calls", {}, {}, make_calls, changed};
    if (library().is_built()) target.corpus = {sound_program()};
    return target;
}

}  // namespace headrace::fuzz
