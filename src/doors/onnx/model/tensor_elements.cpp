#include "doors/onnx/model/tensor_elements.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>

#include "doors/onnx/model/small_types.h"
#include "ir/constant.h"
#include "ir/shared_forms.h"

namespace headrace::onnx {
namespace {

constexpr std::int64_t kMostElements = std::int64_t{1} << 56;

/// Bytes of the elements as files have them: several of less than 8 bits share one.
std::size_t file_bytes(ElementType type, std::int64_t count) {
    return (static_cast<std::size_t>(count) * static_cast<std::size_t>(bits_of(type)) + 7) / 8;
}

std::span<const std::byte> span_of(Bytes bytes) {
    return {reinterpret_cast<const std::byte*>(bytes.data()), bytes.size()};
}

std::shared_ptr<const Constant> borrowed(std::span<const std::byte> bytes, const Storage& storage) {
    return std::make_shared<const Constant>(
        Constant{.bytes = bytes, .owner = storage.owner, .mapped = storage.is_mapped});
}

/// The field of TensorProto that has a type's elements when they are not raw bytes.
std::uint32_t typed_field(ElementType type) {
    switch (type) {
        case ElementType::f32: return 4;
        case ElementType::i64: return 7;
        case ElementType::f64: return 10;
        case ElementType::u32:
        case ElementType::u64: return 11;
        default: return 5;  // int32_data, also for the bits of small floats
    }
}

/// Elements of a typed field as raw bytes.
class TypedField {
public:
    TypedField(ElementType type, Bytes message) : type_(type), message_(message) {}

    /// The one packed field that has them all in their own form, if that is so.
    Result<std::optional<Bytes>> packed() const {
        if (type_ != ElementType::f32 && type_ != ElementType::f64) return std::optional<Bytes>();
        std::optional<Bytes> found;
        int fields = 0;
        wire::Message message(message_);
        while (message.next()) {
            if (message.field().key >> 3 != typed_field(type_)) continue;
            ++fields;
            if (message.field().key == wire::bytes_key(typed_field(type_))) found = message.field().bytes;
        }
        HR_TRY(message.status());
        return fields == 1 ? found : std::nullopt;
    }

    Result<std::vector<std::byte>> read() {
        const std::uint32_t field = typed_field(type_);
        wire::Message message(message_);
        while (message.next()) {
            const wire::Field& f = message.field();
            if (f.key == wire::number_key(field)) {
                add(f.bits);
            } else if (f.key == wire::float_key(field) || f.key == wire::double_key(field)) {
                append(&f.bits, f.key == wire::float_key(field) ? 4 : 8);
            } else if (f.key == wire::bytes_key(field)) {
                HR_TRY(add_packed(f.bytes));
            }
        }
        HR_TRY(message.status());
        return std::move(bytes_);
    }

private:
    Status add_packed(Bytes packed) {
        if (type_ == ElementType::f32 || type_ == ElementType::f64) {
            append(packed.data(), packed.size());
            return success();
        }
        wire::Varints numbers(packed);
        for (std::uint64_t value = 0; numbers.next(value);) add(value);
        return numbers.is_damaged() ? Status(invalid("its numbers are damaged")) : success();
    }

    void add(std::uint64_t value) {
        append(&value, static_cast<std::size_t>(std::max(8, bits_of(type_))) / 8);
    }

    void append(const void* data, std::size_t size) {
        const auto* begin = static_cast<const std::byte*>(data);
        bytes_.insert(bytes_.end(), begin, begin + size);
    }

    ElementType type_;
    Bytes message_;
    std::vector<std::byte> bytes_;
};

Result<std::uint64_t> whole_number(const TensorMessage& tensor, std::string_view key,
                                   std::uint64_t otherwise) {
    for (const auto& [name, text] : tensor.external) {
        if (name != key) continue;
        std::uint64_t value = 0;
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
        if (text.empty() || text.size() >= 20 || error != std::errc() || end != text.data() + text.size())
            return invalid("the {} of its external data is '{}', which is no number of bytes", key,
                           text.substr(0, 40));
        otherwise = value;
    }
    return otherwise;
}

Result<std::shared_ptr<const Constant>> external_bytes(const TensorMessage& tensor, Storage& storage,
                                                       std::size_t needed) {
    std::string_view location;
    for (const auto& [name, text] : tensor.external)
        if (name == "location") location = text;
    HR_ASSIGN(const std::uint64_t offset, whole_number(tensor, "offset", 0));
    HR_ASSIGN(const std::uint64_t length, whole_number(tensor, "length", needed));
    if (length != needed)
        return invalid("its shape [{}] needs {} bytes, and {} are said to be in '{}'",
                       fmt::join(tensor.dims, ", "), needed, length, location);
    return storage.files.map(std::string(location), offset, needed);
}

/// The elements of a message's typed field, which all readings of the model share where there are as many as
/// needed.
Result<std::shared_ptr<const Constant>> typed_elements(ElementType type, const Constant& message,
                                                       TypedField& typed, std::size_t needed) {
    std::shared_ptr<const Constant> others;
    const auto read = [&]() -> Result<SharedForms::Form> {
        HR_ASSIGN(const auto bytes, typed.read());
        HR_ASSIGN(auto all, copy_constant(bytes, "a tensor's elements"));
        if (bytes.size() == needed) return shared_bytes(*all);
        others = std::move(all);
        return SharedForms::Form();
    };
    const std::array<const Constant*, 1> sources{&message};
    HR_ASSIGN(auto form, SharedForms::all().get(sources, name_of(type), read));
    return others ? others : own_constant(std::move(form), needed);
}

/// The bytes as files have them.
Result<std::shared_ptr<const Constant>> bytes_of(const TensorMessage& tensor, Storage& storage,
                                                 ElementType type, std::size_t needed) {
    if (tensor.is_external) return external_bytes(tensor, storage, needed);
    if (tensor.raw) return borrowed(span_of(*tensor.raw), storage);
    TypedField typed(type, tensor.message);
    HR_ASSIGN(const auto packed, typed.packed());
    if (packed) return borrowed(span_of(*packed), storage);
    return typed_elements(type, {.bytes = span_of(tensor.message), .owner = storage.owner, .key = ""}, typed,
                          needed);
}

/// Truth values other than 0 and 1 are 1.
Result<std::shared_ptr<const Constant>> as_truth(std::shared_ptr<const Constant> data) {
    if (std::ranges::all_of(data->bytes, [](std::byte b) { return b <= std::byte{1}; })) return data;
    HR_ASSIGN(auto copy, AlignedBuffer::allocate(data->bytes.size(), "truth values"));
    std::ranges::transform(data->bytes, copy.data(),
                           [](std::byte b) { return std::byte{b != std::byte{0}}; });
    return own_constant(std::move(copy));
}

}  // namespace

Result<std::int64_t> count_elements(const std::vector<std::int64_t>& shape) {
    std::int64_t count = 1;
    bool is_empty = false;
    for (std::int64_t extent : shape) {
        if (extent < 0) return invalid("its shape is [{}]; extents are at least 0", fmt::join(shape, ", "));
        is_empty |= extent == 0;
    }
    if (is_empty) return std::int64_t{0};
    for (std::int64_t extent : shape) {
        if (count > kMostElements / extent)
            return invalid("its shape [{}] has more elements than memory can hold", fmt::join(shape, ", "));
        count *= extent;
    }
    return count;
}

Result<TensorElements> elements_of(const TensorMessage& tensor, Storage& storage) {
    const auto type = element_type(tensor.data_type);
    if (!type) return invalid("it is {}; there are {}", onnx_name(tensor.data_type), known_types());
    HR_ASSIGN(const std::int64_t count, count_elements(tensor.dims));
    const std::size_t needed = file_bytes(*type, count);
    HR_ASSIGN(auto data, bytes_of(tensor, storage, *type, needed));
    if (data->bytes.size() != needed)
        return invalid("it has {} bytes; its shape [{}] needs {} of {}", data->bytes.size(),
                       fmt::join(tensor.dims, ", "), needed, onnx_name(tensor.data_type));
    if (*type == ElementType::boolean) {
        HR_ASSIGN(data, as_truth(std::move(data)));
    } else if (is_carried(*type)) {
        HR_ASSIGN(data, carried_elements(*type, data->bytes, count));
    }
    return TensorElements{*type, tensor.dims, std::move(data)};
}

}  // namespace headrace::onnx
