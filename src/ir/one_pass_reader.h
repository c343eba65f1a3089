#pragma once
#include <algorithm>
#include <cstddef>
#include <cstring>
#include <span>
#include <vector>

#include "base/file_pages.h"
#include "ir/constant.h"
#include "ir/tensor_type.h"

namespace headrace {

/// The elements of a constant from first to last, each once, where kernels can read them. What was read is
/// given back to the file that has it, so that no large constant is in memory beside what is made of it.
class OnePassReader {
public:
    explicit OnePassReader(const ConstView& of) : next_(of.data), pages_(of.pages), factors_(of.factors) {}
    ~OnePassReader() { give_back(); }
    OnePassReader(const OnePassReader&) = delete;
    OnePassReader& operator=(const OnePassReader&) = delete;
    OnePassReader(OnePassReader&&) = delete;
    OnePassReader& operator=(OnePassReader&&) = delete;

    /// So many elements, until the next call. Throws std::bad_alloc.
    template <class T>
    const T* next(std::size_t count) {
        give_back();
        read_ = {next_, count * sizeof(T)};
        next_ += read_.size();
        if (!factors_ && is_constant_aligned(read_)) return reinterpret_cast<const T*>(read_.data());
        copy_.resize(std::max(copy_.size(), read_.size()));
        std::memcpy(copy_.data(), read_.data(), read_.size());
        give_back();
        if (factors_) multiply(count);
        return reinterpret_cast<const T*>(copy_.data());
    }
    /// How many rows of so many bytes are read at a time: at least `least`, of which they are a multiple.
    static std::size_t rows_at_once(std::size_t row_bytes, std::size_t least) {
        constexpr std::size_t kPart = std::size_t{4} << 20;
        const std::size_t rows = kPart / std::max<std::size_t>(row_bytes, 1);
        return std::max(rows / least * least, least);
    }

private:
    void multiply(std::size_t count) {
        factors_->multiply(multiplied_, {reinterpret_cast<float*>(copy_.data()), count});
        multiplied_ += count;
    }

    void give_back() {
        if (pages_ && !read_.empty()) pages_->give_back(read_);
        read_ = {};
    }

    const std::byte* next_;
    const FilePages* pages_;
    const ElementFactors* factors_;
    std::size_t multiplied_ = 0;  // elements
    std::span<const std::byte> read_;
    std::vector<std::byte> copy_;  // its memory is aligned as operator new aligns
};

}  // namespace headrace
