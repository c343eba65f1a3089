#include "fuzz/rpc_host_target.h"

#include "remote/replay_host.h"
#include "remote/tripled.h"

namespace headrace::fuzz {
namespace {

/// All answers of the probe, uploads among them, take four times the first at most.
constexpr remote::Patience kPatience{remote::Milliseconds(50), remote::Milliseconds(20)};

bool use(const std::string& device, const remote::Patience& patience) {
    const auto host = remote::Host::open(device, patience);
    if (!host.ok()) return false;
    testing::tripled(*host.value(), {1, 2, 3});
    return !host.value()->is_lost();
}

Parts sound_replies() {
    testing::ReplayHost host({});
    use(host.device(), {});  // all of them, however slow the machine is
    return host.said();
}

}  // namespace

Target rpc_host_target() {
    return {.name = "rpc_host", .corpus = {sound_replies()}, .words = {}, .load = [](const Parts& replies) {
                return use(testing::ReplayHost(replies).device(), kPatience);
            }};
}

}  // namespace headrace::fuzz
