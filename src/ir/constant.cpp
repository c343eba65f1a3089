#include "ir/constant.h"

#include <algorithm>

namespace headrace {

std::shared_ptr<const std::byte> shared_bytes(AlignedBuffer buffer) {
    const auto owner = std::make_shared<const AlignedBuffer>(std::move(buffer));
    return {owner, owner->data()};
}

std::shared_ptr<const std::byte> shared_bytes(const Constant& constant) {
    return {constant.owner, constant.bytes.data()};
}

Result<std::shared_ptr<const std::byte>> aligned_copy(const Constant& constant, const FilePages* pages) {
    HR_ASSIGN(auto aligned, AlignedBytes::of(constant, pages));
    if (pages) pages->give_back(constant.bytes);
    const auto owner = std::make_shared<const AlignedBytes>(std::move(aligned));
    return std::shared_ptr<const std::byte>(owner, owner->data());
}

std::shared_ptr<const Constant> own_constant(AlignedBuffer bytes, std::string key) {
    const std::size_t count = bytes.bytes();
    return own_constant(shared_bytes(std::move(bytes)), count, std::move(key));
}

std::shared_ptr<const Constant> own_constant(std::shared_ptr<const std::byte> form, std::size_t bytes,
                                             std::string key) {
    const std::span all(form.get(), bytes);
    return std::make_shared<const Constant>(
        Constant{.bytes = all, .owner = std::move(form), .key = std::move(key)});
}

Result<std::shared_ptr<const Constant>> copy_constant(std::span<const std::byte> bytes,
                                                      std::string_view purpose, std::string key) {
    HR_ASSIGN(auto copy, AlignedBuffer::allocate(bytes.size(), purpose));
    std::copy(bytes.begin(), bytes.end(), copy.data());
    return own_constant(std::move(copy), std::move(key));
}

}  // namespace headrace
