#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/aligned_buffer.h"
#include "base/file_pages.h"
#include "ir/graph.h"

namespace headrace {

/// What a constant's address must be a multiple of for kernels to read any dtype from it in vectors.
inline constexpr std::size_t kConstantAlignment = 16;

inline bool is_constant_aligned(std::span<const std::byte> bytes) {
    return reinterpret_cast<std::uintptr_t>(bytes.data()) % kConstantAlignment == 0;
}

/// Whether kernels can read a constant's elements where its bytes are.
inline bool is_readable_in_place(const Constant& constant) {
    return is_constant_aligned(constant.bytes) && !constant.factors;
}

/// A constant's elements where kernels can read them: its own bytes, or those of a copy; never null, which
/// would mean absent. What a file has elsewhere stays there while a graph is made (stays_in_place), so who
/// reads elements in vectors asks for this.
class AlignedBytes {
public:
    /// pages: what is copied is given back there piece by piece, so that no file is in memory twice.
    static Result<AlignedBytes> of(const Constant& constant, const FilePages* pages = nullptr) {
        constexpr std::size_t kPiece = std::size_t{4} << 20;
        AlignedBytes aligned;
        aligned.data_ = constant.bytes.data();
        if (aligned.data_ && is_readable_in_place(constant)) return aligned;
        HR_ASSIGN(aligned.copy_, AlignedBuffer::allocate(constant.bytes.size(), "an aligned constant"));
        aligned.data_ = aligned.copy_.data();
        for (std::size_t at = 0; at < constant.bytes.size(); at += kPiece) {
            const auto piece = constant.bytes.subspan(at, std::min(kPiece, constant.bytes.size() - at));
            std::ranges::copy(piece, aligned.copy_.data() + at);
            if (constant.factors)
                constant.factors->multiply(
                    at / sizeof(float),
                    {reinterpret_cast<float*>(aligned.copy_.data() + at), piece.size() / sizeof(float)});
            if (pages) pages->give_back(piece);
        }
        return aligned;
    }
    const std::byte* data() const { return data_; }

private:
    const std::byte* data_ = nullptr;
    AlignedBuffer copy_;
};

/// Whether a graph has the constant where it is. Large ones that it keeps alive are, at any place: most are
/// packed, and then a copy of the plain ones would be in memory beside them.
inline bool stays_in_place(const Constant& constant) {
    constexpr std::size_t kLeastBytes = std::size_t{1} << 14;
    const bool is_kept = constant.mapped || constant.owner;
    return is_constant_aligned(constant.bytes) || (is_kept && constant.bytes.size() >= kLeastBytes);
}

/// The bytes of a buffer, or of a constant with an owner, which lives as long as somebody has them.
std::shared_ptr<const std::byte> shared_bytes(AlignedBuffer buffer);
std::shared_ptr<const std::byte> shared_bytes(const Constant& constant);

/// AlignedBytes, shared, of a constant that kernels cannot read in place. All its pages are given back.
Result<std::shared_ptr<const std::byte>> aligned_copy(const Constant& constant, const FilePages* pages);

/// A constant that owns its bytes, or shares them.
std::shared_ptr<const Constant> own_constant(AlignedBuffer bytes, std::string key = "");
std::shared_ptr<const Constant> own_constant(std::shared_ptr<const std::byte> form, std::size_t bytes,
                                             std::string key = "");

/// A copy that owns its bytes; `purpose` completes the message of a failed allocation.
Result<std::shared_ptr<const Constant>> copy_constant(std::span<const std::byte> bytes,
                                                      std::string_view purpose, std::string key = "");

}  // namespace headrace
