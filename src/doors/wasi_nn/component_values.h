#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

/// Values of WebAssembly components as wasmtime's C interface lays them out, so that no header of its is
/// needed here. _component.py compares its layout with this one.
namespace headrace::wasi_nn::component {

struct Value;

enum class Kind : std::uint8_t {
    boolean = 0,
    u8 = 2,
    u32 = 6,
    u64 = 8,
    string = 12,
    list = 13,
    tuple = 15,
    enumeration = 17,
    option = 18,
    result = 19,
    resource = 21,
};
struct Text {
    std::size_t size;
    const char* data;
};
struct Values {
    std::size_t size;
    Value* data;
};
struct Outcome {
    bool is_ok;
    Value* value;
};
union Content {
    bool boolean;
    std::uint8_t u8;
    std::uint32_t u32;
    std::uint64_t u64;
    Text text;      // of strings and enumerations
    Values values;  // of lists and tuples
    Value* option;
    Outcome result;
    void* resource;
    std::array<std::byte, 24> room;  // of kinds that are not used here
};
struct Value {
    Kind kind = Kind::boolean;
    Content of{};
};
static_assert(sizeof(Value) == 32 && offsetof(Value, of) == 8 && offsetof(Outcome, value) == 8);

/// Thrown through an import to end its guest.
struct GuestEnded : std::runtime_error {
    using std::runtime_error::runtime_error;
};

using Callback = void* (*)(void* data, void* store, const void* type, Value* given, std::size_t count,
                           Value* results, std::size_t wanted);
using Destructor = void* (*)(void* data, void* store, std::uint32_t number);
using Finalizer = void (*)(void* data);

/// The functions of wasmtime's C interface; errors are wasmtime_error_t, whoever gets them owns them.
struct Wasmtime {
    void* (*error_new)(const char* message);
    void (*error_message)(const void* error, Text* message);
    void (*error_delete)(void* error);
    void (*byte_vec_new)(Text* made, std::size_t size, const char* data);
    void (*byte_vec_delete)(Text* bytes);
    Value* (*val_new)(Value* moved);
    void (*val_delete)(Value* value);
    void (*list_new)(Values* made, std::size_t size);
    void (*tuple_new)(Values* made, std::size_t size);
    void* (*any_to_host)(void* store, const void* any, void** host);
    void* (*host_to_any)(void* store, const void* host, void** any);
    void* (*host_new)(bool is_owned, std::uint32_t number, std::uint32_t type);
    std::uint32_t (*host_number)(const void* host);
    void (*host_delete)(void* host);
    void* (*type_new)(std::uint32_t type);
    void (*type_delete)(void* type);
    void* (*linker_root)(void* linker);
    void* (*add_instance)(void* instance, const char* name, std::size_t size, void** made);
    void* (*add_function)(void* instance, const char* name, std::size_t size, Callback call, void* data,
                          Finalizer finalizer);
    void* (*add_resource)(void* instance, const char* name, std::size_t size, const void* type,
                          Destructor destroy, void* data, Finalizer finalizer);
    void (*instance_delete)(void* instance);

    /// wasmtime's functions, or nothing where it lacks one of them.
    static std::optional<Wasmtime> found_by(void* (*function_of)(const char* name));
};

// What guests pass. A component states the types of its imports itself, and wasmtime passes what they are:
// each of these throws GuestEnded where that is not the interface's.

/// The text of a string or an enumeration.
std::string_view text_of(const Value& value);
/// The items of a list or a tuple, at least that many.
std::span<const Value> items_of(const Value& value, std::size_t least = 0);
/// Null where there is none.
const Value* option_of(const Value& value);
std::uint32_t word_of(const Value& value);
std::uint64_t long_word_of(const Value& value);
std::string bytes_of(const Value& list);
std::vector<std::uint32_t> words_of(const Value& list);

/// A value that nobody has taken over.
class Made {
public:
    explicit Made(const Wasmtime& wasmtime, const Value& value = {}) : wasmtime_(&wasmtime), value_(value) {}
    Made(Made&& other) noexcept : wasmtime_(other.wasmtime_), value_(other.release()) {}
    Made& operator=(Made&&) = delete;
    ~Made() { wasmtime_->val_delete(&value_); }

    Value release() noexcept {
        const Value value = value_;
        value_ = {};
        return value;
    }

private:
    const Wasmtime* wasmtime_;
    Value value_;
};

/// Makes values that guests get, and numbers of resources that they lend, in the store of a call.
class Store {
public:
    Store(const Wasmtime& wasmtime, void* context) : wasmtime_(wasmtime), context_(context) {}

    /// The host's number for a resource of its own.
    std::uint32_t number_of(const Value& resource) const;
    /// A resource of the host, which the guest will own.
    Made resource(std::uint32_t number, std::uint32_t type) const;
    /// Bytes that are not UTF-8 are replaced.
    Made text(std::string_view text) const;
    /// An enumeration's case.
    Made name(std::string_view name) const;
    Made bytes(std::string_view bytes) const;
    Made word(std::uint32_t word) const { return Made(wasmtime_, {Kind::u32, {.u32 = word}}); }
    Made words(std::span<const std::uint32_t> words) const;
    Made list(std::vector<Made> items) const;
    Made tuple(Made first, Made second) const;
    Made option(std::optional<Made> content) const;
    Made result(bool is_ok, Made content) const;
    /// The result of a function that returns nothing.
    Made nothing() const { return Made(wasmtime_); }

private:
    void check(void* error) const;
    Made texts(Kind kind, std::string_view text) const;
    Value* boxed(Made content) const;

    const Wasmtime& wasmtime_;
    void* context_;
};

}  // namespace headrace::wasi_nn::component
