#include "remote/protocol.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "ggml-rpc.h"
#include "ggml.h"

namespace headrace::remote {
namespace {

constexpr std::uint64_t kTensor = 296;  // bytes of ggml's tensor on the wire
static_assert(GGML_MAX_DIMS == 4 && GGML_MAX_SRC == 10 && GGML_MAX_OP_PARAMS == 64 && GGML_MAX_NAME == 64);

constexpr std::uint64_t kLargest = std::uint64_t{1} << 50;  // no memory has as many bytes

constexpr std::size_t kTypeAt = 8, kBufferAt = 12, kExtentsAt = 20, kStridesAt = 36, kDataAt = 220;

enum Reply : int { none = -1, as_requested = -2 };

struct Row {
    std::string_view name;
    int reply;  ///< bytes
};
constexpr Row kRows[] = {
    {"ALLOC_BUFFER", 16},   {"GET_ALIGNMENT", 8},      {"GET_MAX_SIZE", 8},
    {"BUFFER_GET_BASE", 8}, {"FREE_BUFFER", none},     {"BUFFER_CLEAR", none},
    {"SET_TENSOR", none},   {"SET_TENSOR_HASH", 1},    {"GET_TENSOR", as_requested},
    {"COPY_TENSOR", 1},     {"GRAPH_COMPUTE", none},   {"GET_DEVICE_MEMORY", 16},
    {"INIT_TENSOR", none},  {"GET_ALLOC_SIZE", 8},     {"HELLO", 4 + int{kCapabilityBytes}},
    {"DEVICE_COUNT", 4},    {"GRAPH_RECOMPUTE", none}, {"MEMSET_TENSOR", none},
};

const Row& row_of(Command command) { return kRows[static_cast<std::size_t>(command)]; }

Error nonsense(const Request& request, std::string_view what, std::uint64_t value) {
    return failure(Code::backend_failure, "it answers {} with {} {}", name_of(request.command), what, value);
}

template <class T>
Bytes bytes_of(std::initializer_list<T> values) {
    Bytes bytes;
    for (const T& value : values) append(bytes, value);
    return bytes;
}

}  // namespace

std::string_view name_of(Command command) { return row_of(command).name; }

bool is_command(std::uint8_t byte) { return byte < std::size(kRows); }

WireTensor WireTensor::row(std::uint64_t buffer, std::uint64_t data, std::uint32_t size) {
    WireTensor tensor;
    const auto put = [&](std::size_t offset, auto value) {
        std::memcpy(tensor.bytes.data() + offset, &value, sizeof(value));
    };
    put(0, std::uint64_t{1});
    put(kTypeAt, static_cast<std::uint32_t>(GGML_TYPE_I8));
    put(kBufferAt, buffer);
    for (std::size_t i = 0; i < GGML_MAX_DIMS; ++i) {
        put(kExtentsAt + 4 * i, i == 0 ? size : 1u);
        put(kStridesAt + 4 * i, i == 0 ? 1u : size);
    }
    put(kDataAt, data);
    return tensor;
}

std::optional<std::uint64_t> reply_bytes(const Request& request) {
    const int bytes = row_of(request.command).reply;
    if (bytes == none) return std::nullopt;
    if (bytes == as_requested) return read_at<std::uint64_t>(request.head, kTensor + 8);
    return static_cast<std::uint64_t>(bytes);
}

Bytes message(Command command, ByteView request) {
    const std::uint64_t size = request.size();
    Bytes bytes(1 + sizeof(size) + request.size());
    bytes[0] = static_cast<std::uint8_t>(command);
    std::memcpy(bytes.data() + 1, &size, sizeof(size));
    std::copy(request.begin(), request.end(), bytes.begin() + 1 + sizeof(size));
    return bytes;
}

std::string own_version() {
    return fmt::format("{}.{}.{}", RPC_PROTO_MAJOR_VERSION, RPC_PROTO_MINOR_VERSION, RPC_PROTO_PATCH_VERSION);
}

Status check_version(ByteView reply) {
    const int version[] = {reply[0], reply[1], reply[2]};
    if (version[0] == RPC_PROTO_MAJOR_VERSION && version[1] == RPC_PROTO_MINOR_VERSION &&
        version[2] == RPC_PROTO_PATCH_VERSION)
        return success();
    return failure(Code::backend_failure,
                   "the server speaks RPC protocol {}.{}.{}, this build {}; both ends need the same ggml",
                   version[0], version[1], version[2], own_version());
}

void Alignments::learn(std::uint32_t device, std::uint64_t alignment) {
    const std::lock_guard lock(mutex_);
    std::uint64_t& known = alignments_[device];
    known = std::max(known, alignment);
}

std::uint64_t Alignments::of(std::uint32_t device) const {
    const std::lock_guard lock(mutex_);
    const auto found = alignments_.find(device);
    return found == alignments_.end() ? 1 : found->second;
}

Status PeerRecord::check_buffer(const Request& request, ByteView reply) {
    const auto handle = read_at<std::uint64_t>(reply, 0), bytes = read_at<std::uint64_t>(reply, 8);
    if (handle == 0) return success();  // it has no memory for that, which ggml reports
    const auto wanted = read_at<std::uint64_t>(request.head, 4);
    if (bytes < wanted || bytes > kLargest) return nonsense(request, "a buffer of bytes:", bytes);
    buffers_[handle] = {bytes, alignments_->of(read_at<std::uint32_t>(request.head, 0))};
    return success();
}

Status PeerRecord::check_base(const Request& request, ByteView reply) const {
    const auto kBase = read_at<std::uint64_t>(reply, 0);
    const auto found = buffers_.find(read_at<std::uint64_t>(request.head, 0));
    const Buffer buffer = found == buffers_.end() ? Buffer() : found->second;
    if (kBase == 0 || kBase % buffer.alignment != 0 || kBase > UINT64_MAX - kLargest - buffer.bytes)
        return nonsense(request, "the address", kBase);
    return success();
}

Status PeerRecord::check(const Request& request, ByteView reply) {
    const auto first = read_at<std::uint64_t>(reply, 0), second = read_at<std::uint64_t>(reply, 8);
    switch (request.command) {
        case Command::hello: return check_version(reply);
        case Command::device_count: {
            const auto count = read_at<std::uint32_t>(reply, 0);
            if (count < 1 || count > GGML_RPC_MAX_SERVERS) return nonsense(request, "a number of", count);
            return success();
        }
        case Command::alloc_buffer: return check_buffer(request, reply);
        case Command::buffer_get_base: return check_base(request, reply);
        case Command::get_alignment:
            if (!std::has_single_bit(first) || first > 65536)
                return nonsense(request, "the alignment", first);
            alignments_->learn(read_at<std::uint32_t>(request.head, 0), first);
            return success();
        case Command::get_max_size:  // ggml cuts what is larger into a small, fixed number of chunks
            if (first < (64u << 20)) return nonsense(request, "a largest buffer of bytes:", first);
            return success();
        case Command::get_alloc_size:
            if (first > kLargest) return nonsense(request, "a tensor of bytes:", first);
            return success();
        case Command::get_device_memory:
            if (first > kLargest || second > kLargest)
                return nonsense(request, "memory of bytes:", std::max(first, second));
            return success();
        default: return success();
    }
}

Bytes stand_in(const Request& request) {
    constexpr std::uint64_t kBase = std::uint64_t{1}
                                    << 40;  // never read: only distances are computed with it
    switch (request.command) {
        case Command::hello: {
            Bytes reply(4 + kCapabilityBytes);
            reply[0] = RPC_PROTO_MAJOR_VERSION;
            reply[1] = RPC_PROTO_MINOR_VERSION;
            reply[2] = RPC_PROTO_PATCH_VERSION;
            return reply;
        }
        case Command::device_count: return bytes_of<std::uint32_t>({1});
        case Command::alloc_buffer:
            return bytes_of({std::uint64_t{1}, read_at<std::uint64_t>(request.head, 4)});
        case Command::buffer_get_base: return bytes_of({kBase});
        case Command::get_alignment: return bytes_of({std::uint64_t{128}});
        case Command::get_max_size: return bytes_of({kLargest});
        case Command::get_alloc_size: return bytes_of({std::uint64_t{0}});
        case Command::get_device_memory: return bytes_of({std::uint64_t{0}, std::uint64_t{0}});
        case Command::set_tensor_hash:  // "has it already", so that ggml does not send it
        case Command::copy_tensor: return {1};
        default: return {};
    }
}

}  // namespace headrace::remote
