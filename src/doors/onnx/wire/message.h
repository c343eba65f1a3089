#pragma once
#include <bit>
#include <cstdint>
#include <string_view>

#include "base/result.h"

/// Protocol Buffers' wire format, as far as ONNX files have it: nothing is copied, everything is checked.
namespace headrace::onnx::wire {

/// A part of a file. What is read of it shows its memory.
using Bytes = std::string_view;

/// How a field is stored.
enum class Form : std::uint8_t { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };

/// What a field of a schema is told by: its number and form. A field in another form is an unknown one, as
/// Protocol Buffers have it.
constexpr std::uint32_t key(std::uint32_t number, Form form) {
    return number << 3 | static_cast<std::uint32_t>(form);
}
constexpr std::uint32_t number_key(std::uint32_t number) { return key(number, Form::varint); }
constexpr std::uint32_t bytes_key(std::uint32_t number) { return key(number, Form::bytes); }
constexpr std::uint32_t float_key(std::uint32_t number) { return key(number, Form::fixed32); }
constexpr std::uint32_t double_key(std::uint32_t number) { return key(number, Form::fixed64); }

/// One field of a message.
struct Field {
    std::uint32_t key = 0;
    std::uint64_t bits = 0;  ///< of a number
    Bytes bytes;             ///< of a text, message or packed numbers

    std::int64_t integer() const { return static_cast<std::int64_t>(bits); }
    /// The value of an enumeration or int32, which may be written with the sign in 64 bits.
    std::int32_t small() const { return static_cast<std::int32_t>(bits); }
    float real() const { return std::bit_cast<float>(static_cast<std::uint32_t>(bits)); }
};

/// Goes through a message's fields, in the order of the file.
///
///     for (Message message(bytes); message.next();) switch (message.field().key) { ... }
///
/// ends at the end of the message, and where it is damaged: status() tells.
class Message {
public:
    explicit Message(Bytes bytes) : rest_(bytes) {}

    bool next();
    const Field& field() const { return field_; }
    /// The error of a message that is cut off or no message.
    Status status() const;

private:
    bool read_varint(std::uint64_t& value);
    bool read_fixed(std::size_t size);
    bool read_bytes();
    bool skip_group(std::uint32_t number);
    bool read_value(std::uint32_t form);

    Bytes rest_;
    Field field_;
    bool is_damaged_ = false;
};

/// The varints of a packed field, or of any bytes.
class Varints {
public:
    explicit Varints(Bytes bytes) : rest_(bytes) {}
    bool next(std::uint64_t& value);
    bool is_damaged() const { return is_damaged_; }

private:
    Bytes rest_;
    bool is_damaged_ = false;
};

}  // namespace headrace::onnx::wire
