#pragma once
#include <array>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace headrace::remote {

using Bytes = std::vector<std::uint8_t>;
using ByteView = std::span<const std::uint8_t>;

/// ggml's RPC protocol: a command byte, the size of the request (8 bytes, little-endian), the request; to
/// most commands a size and a reply.
enum class Command : std::uint8_t {
    alloc_buffer,
    get_alignment,
    get_max_size,
    buffer_get_base,
    free_buffer,
    buffer_clear,
    set_tensor,
    set_tensor_hash,
    get_tensor,
    copy_tensor,
    graph_compute,
    get_device_memory,
    init_tensor,
    get_alloc_size,
    hello,
    device_count,
    graph_recompute,
    memset_tensor,
};

inline constexpr std::size_t kHeaderBytes = 9;  ///< of a request
inline constexpr std::size_t kSizeBytes = 8;    ///< in front of a reply
inline constexpr std::size_t kCapabilityBytes = 24;

std::string_view name_of(Command command);
bool is_command(std::uint8_t byte);

/// A request's command and its first bytes, which say what reply belongs to it.
struct Request {
    Command command{};
    std::uint64_t size = 0;
    Bytes head;  ///< all of it, unless it is a long one
};

/// ggml's tensor on the wire; packed.
struct WireTensor {
    std::array<std::uint8_t, 296> bytes{};

    /// A contiguous row of bytes in a buffer of the peer.
    static WireTensor row(std::uint64_t buffer, std::uint64_t data, std::uint32_t size);
};

/// The bytes of the reply; none when the command has no reply.
std::optional<std::uint64_t> reply_bytes(const Request& request);

/// A value of a message.
template <class T>
T read_at(ByteView bytes, std::size_t offset) {
    T value{};
    if (offset + sizeof(T) <= bytes.size()) std::memcpy(&value, bytes.data() + offset, sizeof(T));
    return value;
}
template <class T>
void append(Bytes& bytes, const T& value) {
    const std::size_t end = bytes.size();
    bytes.resize(end + sizeof(T));
    std::memcpy(bytes.data() + end, &value, sizeof(T));
}

/// Header and request in one message.
Bytes message(Command command, ByteView request);

/// What a peer's devices want buffers to be aligned to. ggml asks once, and keeps to it on all connections.
class Alignments {
public:
    void learn(std::uint32_t device, std::uint64_t alignment);
    std::uint64_t of(std::uint32_t device) const;  ///< 1 where it is not known

private:
    mutable std::mutex mutex_;
    std::map<std::uint32_t, std::uint64_t> alignments_;
};

/// What a peer has promised so far on a connection. Its replies are checked against that before ggml sees
/// them: ggml computes addresses with them, and asserts.
class PeerRecord {
public:
    explicit PeerRecord(std::shared_ptr<Alignments> alignments = std::make_shared<Alignments>())
        : alignments_(std::move(alignments)) {}
    /// What is wrong with a reply of the right size.
    Status check(const Request& request, ByteView reply);

private:
    Status check_buffer(const Request& request, ByteView reply);
    Status check_base(const Request& request, ByteView reply) const;

    struct Buffer {
        std::uint64_t bytes = 0, alignment = 1;
    };
    std::shared_ptr<Alignments> alignments_;
    std::map<std::uint64_t, Buffer> buffers_;
};

/// The version in a greeting's reply must be that of this build: ggml numbers its ops anew in patch versions.
Status check_version(ByteView reply);
std::string own_version();

/// A reply that lets ggml's client go on when the peer is lost: requests succeed, and all data are zeros. Of
/// get_tensor, which may be long, nothing.
Bytes stand_in(const Request& request);

}  // namespace headrace::remote
