#include "ir/constant.h"

#include <algorithm>

namespace headrace {

std::shared_ptr<const std::byte> shared_bytes(AlignedBuffer buffer) {
    const auto owner = std::make_shared<const AlignedBuffer>(std::move(buffer));
    return {owner, owner->data()};
}

std::shared_ptr<const Constant> own_constant(AlignedBuffer bytes, std::string key) {
    const auto owner = std::make_shared<const AlignedBuffer>(std::move(bytes));
    return std::make_shared<const Constant>(
        Constant{.bytes = {owner->data(), owner->bytes()}, .owner = owner, .key = std::move(key)});
}

std::shared_ptr<const Constant> own_constant(std::shared_ptr<const std::byte> form, std::size_t bytes) {
    const std::span all(form.get(), bytes);
    return std::make_shared<const Constant>(Constant{.bytes = all, .owner = std::move(form), .key = ""});
}

Result<std::shared_ptr<const Constant>> copy_constant(std::span<const std::byte> bytes,
                                                      std::string_view purpose, std::string key) {
    HR_ASSIGN(auto copy, AlignedBuffer::allocate(bytes.size(), purpose));
    std::copy(bytes.begin(), bytes.end(), copy.data());
    return own_constant(std::move(copy), std::move(key));
}

}  // namespace headrace
