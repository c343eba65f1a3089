#include "remote/resolve.h"

#include <netdb.h>

#include <condition_variable>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <system_error>
#include <thread>

#include "remote/socket.h"

namespace headrace::remote {
namespace {

using Addresses = std::vector<SocketAddress>;

/// getaddrinfo's answer. flags: AI_NUMERICHOST asks nobody.
Result<Addresses> look_up(const Address& address, int flags) {
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = flags | AI_NUMERICSERV;
    addrinfo* list = nullptr;
    const std::string port = std::to_string(address.port);
    if (const int status = getaddrinfo(address.host.c_str(), port.c_str(), &hints, &list); status != 0)
        return failure(Code::backend_failure, "{}", gai_strerror(status));
    Addresses found;
    for (const addrinfo* a = list; a; a = a->ai_next) {
        if (a->ai_addrlen > sizeof(sockaddr_storage)) continue;
        SocketAddress& entry = found.emplace_back();
        std::memcpy(&entry.storage, a->ai_addr, a->ai_addrlen);
        entry.size = a->ai_addrlen;
    }
    freeaddrinfo(list);
    if (found.empty()) return failure(Code::backend_failure, "the name has no address");
    return found;
}

/// One that runs in a thread of its own, for all who wait for the same name. A resolver cannot be broken off:
/// whoever gives up leaves the thread behind, and who asks again joins it, so that there is one for a name.
struct Pending {
    std::mutex mutex;
    std::condition_variable ended;
    std::optional<Result<Addresses>> result;
};

/// Never destroyed: a resolver may answer while the process exits.
struct LookUps {
    std::mutex mutex;
    std::map<std::string, std::shared_ptr<Pending>> by_name;
};
LookUps& look_ups() {
    static auto* look_ups = new LookUps;
    return *look_ups;
}

void run(const Address& address, const std::shared_ptr<Pending>& pending) {
    Result<Addresses> result = look_up(address, 0);
    {
        const std::lock_guard lock(look_ups().mutex);
        look_ups().by_name.erase(address.name());
    }
    const std::lock_guard lock(pending->mutex);
    pending->result = std::move(result);
    pending->ended.notify_all();
}

Result<std::shared_ptr<Pending>> begin_or_join(const Address& address) {
    const std::lock_guard lock(look_ups().mutex);
    std::shared_ptr<Pending>& running = look_ups().by_name[address.name()];
    if (running) return running;
    running = std::make_shared<Pending>();
    try {
        const SignalsBlocked blocked;
        std::thread(run, address, running).detach();
    } catch (const std::system_error& e) {
        look_ups().by_name.erase(address.name());
        return failure(Code::out_of_memory, "no thread to look up the name: {}", e.what());
    }
    return running;
}

}  // namespace

Result<Addresses> resolve(const Address& address, std::chrono::milliseconds patience) {
    if (auto numeric = look_up(address, AI_NUMERICHOST); numeric.ok()) return numeric;
    HR_ASSIGN(const std::shared_ptr<Pending> running, begin_or_join(address));
    std::unique_lock lock(running->mutex);
    if (!running->ended.wait_for(lock, patience, [&] { return running->result.has_value(); }))
        return failure(Code::timed_out, "the name '{}' was not looked up within {} s", address.host,
                       static_cast<double>(patience.count()) / 1000);
    return *running->result;
}

}  // namespace headrace::remote
