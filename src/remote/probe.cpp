#include "remote/probe.h"

#include <algorithm>
#include <cstdlib>

#include "remote/protocol.h"

namespace headrace::remote {
namespace {

constexpr int kWholeProbe = 4;  // times the patience with one answer

/// A client of the protocol that asks for little.
class Client {
public:
    Client(Socket socket, Milliseconds patience)
        : socket_(std::move(socket)), patience_(patience), until_(Clock::now() + kWholeProbe * patience) {}

    Status tell(Command command, ByteView request) const {
        return socket_.send(message(command, request), patience_, until_);
    }
    Result<Bytes> ask(Command command, const Bytes& bytes) {
        const Request request{command, bytes.size(), bytes};
        HR_TRY(tell(command, bytes));
        std::array<std::uint8_t, kSizeBytes> size{};
        HR_TRY(socket_.receive(size, patience_, until_));
        const auto expected = *reply_bytes(request), given = read_at<std::uint64_t>(size, 0);
        if (given != expected)
            return failure(
                Code::backend_failure,
                "what answers there is no ggml RPC server of this version ({}: {} bytes in place of {})",
                name_of(command), given, expected);
        Bytes reply(expected);
        HR_TRY(socket_.receive(reply, patience_, until_));
        HR_TRY(record_.check(request, reply));
        return reply;
    }

private:
    Socket socket_;
    const Milliseconds patience_;
    const Clock::time_point until_;
    PeerRecord record_;
};

double seconds_since(Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
}

Bytes of_device(std::uint32_t device) {
    Bytes bytes;
    append(bytes, device);
    return bytes;
}

Result<double> round_trip(Client& client) {
    constexpr int kRounds = 5;
    double best = 1e9;
    for (int i = 0; i < kRounds; ++i) {
        const auto start = Clock::now();
        HR_TRY(client.ask(Command::device_count, {}));
        best = std::min(best, seconds_since(start));
    }
    return best;
}

/// Seconds for that many bytes into the buffer and one back.
Result<double> upload(Client& client, std::uint64_t buffer, std::uint64_t base, std::uint32_t size) {
    Bytes head, read;
    append(head, WireTensor::row(buffer, base, size).bytes);
    append(head, std::uint8_t{0});
    append(head, std::uint64_t{0});
    Bytes request(head.size() + size);
    std::copy(head.begin(), head.end(), request.begin());
    append(read, WireTensor::row(buffer, base, size).bytes);
    append(read, std::uint64_t{0});
    append(read, std::uint64_t{1});
    const auto start = Clock::now();
    HR_TRY(client.tell(Command::set_tensor, request));
    HR_TRY(client.ask(Command::get_tensor, read));
    return seconds_since(start);
}

/// Larger pieces until one takes long enough to say something.
Result<double> throughput(Client& client, double round_trip) {
    constexpr std::uint32_t kMost = 8u << 20;
    Bytes allocate = of_device(0);
    append(allocate, std::uint64_t{kMost});
    HR_TRY(client.ask(Command::get_alignment, of_device(0)));
    HR_ASSIGN(const Bytes buffer, client.ask(Command::alloc_buffer, allocate));
    const auto handle = read_at<std::uint64_t>(buffer, 0);
    if (handle == 0) return 0.0;  // no memory is left, which its figures show
    Bytes whose;
    append(whose, handle);
    HR_ASSIGN(const Bytes base, client.ask(Command::buffer_get_base, whose));
    double rate = 0;
    for (std::uint32_t size = 128u << 10; size <= kMost; size *= 4) {
        HR_ASSIGN(const double seconds, upload(client, handle, read_at<std::uint64_t>(base, 0), size));
        rate = size / std::max(seconds - round_trip, 1e-6);
        if (seconds > 0.03 + 2 * round_trip) break;
    }
    HR_TRY(client.tell(Command::free_buffer, whose));
    return rate;
}

Result<Probe> question(Client& client) {
    Probe probe;
    HR_ASSIGN(const Bytes greeting, client.ask(Command::hello, Bytes(kCapabilityBytes)));
    probe.version = fmt::format("{}.{}.{}", greeting[0], greeting[1], greeting[2]);
    HR_ASSIGN(const Bytes count, client.ask(Command::device_count, {}));
    for (std::uint32_t device = 0; device < read_at<std::uint32_t>(count, 0); ++device) {
        HR_ASSIGN(const Bytes memory, client.ask(Command::get_device_memory, of_device(device)));
        probe.devices.push_back({read_at<std::uint64_t>(memory, 0), read_at<std::uint64_t>(memory, 8)});
    }
    HR_ASSIGN(const double seconds, round_trip(client));
    probe.round_trip_ms = 1e3 * seconds;
    HR_ASSIGN(probe.bytes_per_second, throughput(client, seconds));
    return probe;
}

}  // namespace

Result<Probe> probe(const Address& address, Milliseconds patience) {
    Result<Socket> socket = Socket::connect(address, patience);
    if (!socket.ok())
        return failure(Code::backend_failure,
                       "device '{}': no RPC server to use ({}); start one there with `headrace serve-rpc`, "
                       "and check host and port",
                       address.name(), socket.error().message);
    Client client(std::move(socket).value(), patience);
    Result<Probe> answer = question(client);
    if (answer.ok()) return answer;
    const Error& error = answer.error();
    const bool may_be_taken = error.code == Code::timed_out || error.code == Code::io;
    return failure(
        Code::backend_failure, "device '{}': no RPC server to use ({}){}", address.name(), error.message,
        may_be_taken ? "; one that serves a single client, as ggml's does, answers when that has left" : "");
}

}  // namespace headrace::remote
