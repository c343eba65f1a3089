#include "remote/host.h"

#include <cctype>
#include <map>
#include <utility>

#include "ggml-backend.h"

namespace headrace::remote {
namespace {

/// Never destroyed: models may be closed while the process exits.
struct Hosts {
    struct Place {
        std::mutex mutex;  ///< of one that is being opened
        std::weak_ptr<Host> host;
    };
    std::mutex mutex;
    std::map<std::pair<std::string, Milliseconds>, std::shared_ptr<Place>> places;
};
Hosts& hosts() {
    static auto* hosts = new Hosts;
    return *hosts;
}

}  // namespace

Result<std::shared_ptr<Host>> Host::open(std::string_view name, const Patience& patience) {
    HR_ASSIGN(const Address address, Address::parse(name));
    std::shared_ptr<Hosts::Place> place;
    {
        const std::lock_guard lock(hosts().mutex);
        std::erase_if(hosts().places, [](const auto& entry) {
            return entry.second.use_count() == 1 && entry.second->host.expired();
        });
        auto& found = hosts().places[{address.name(), patience.silence}];
        if (!found) found = std::make_shared<Hosts::Place>();
        place = found;
    }
    const std::lock_guard lock(place->mutex);
    if (std::shared_ptr<Host> host = place->host.lock(); host && !host->is_lost()) return host;
    HR_ASSIGN(Probe answer, remote::probe(address, patience.connect));
    HR_ASSIGN(std::unique_ptr<Link> link, Link::open(address, patience));
    std::shared_ptr<Host> host(new Host(address.name(), std::move(answer), std::move(link)));
    HR_TRY(host->add_devices());
    const std::lock_guard listing(hosts().mutex);
    place->host = host;
    return host;
}

/// The devices are not registered with ggml: every model without a choice of its own would use them.
Status Host::add_devices() {
    ggml_backend_reg_t reg = ggml_backend_reg_by_name("RPC");
    if (!reg)
        return unsupported("device '{}': this ggml was built without its RPC backend (GGML_RPC)", name_);
    using AddServer = ggml_backend_reg_t (*)(const char*);
    const auto add =
        reinterpret_cast<AddServer>(ggml_backend_reg_get_proc_address(reg, "ggml_backend_rpc_add_server"));
    if (!add) return unsupported("device '{}': this ggml cannot add RPC servers at run time", name_);
    const SignalsBlocked blocked;
    ggml_backend_reg_t server = add(link_->endpoint().c_str());
    HR_TRY(check());
    for (std::size_t i = 0; server && i < ggml_backend_reg_dev_count(server); ++i)
        devices_.push_back(ggml_backend_reg_dev_get(server, i));
    if (devices_.empty()) return failure(Code::backend_failure, "device '{}': it offers no device", name_);
    connection_ = ggml_backend_dev_init(devices_.front(), nullptr);
    return check();
}

Host::~Host() {
    if (connection_) ggml_backend_free(connection_);
}

Status Host::check() const {
    if (!is_lost()) return success();
    return failure(Code::backend_failure, "device '{}' was lost: {}", name_, link_->reason());
}

Probe::Memory Host::memory(std::size_t device) const {
    Probe::Memory memory;
    ggml_backend_dev_memory(devices_[device], &memory.free, &memory.total);
    return memory;
}

std::vector<std::shared_ptr<Host>> open_hosts() {
    const std::lock_guard lock(hosts().mutex);
    std::vector<std::shared_ptr<Host>> list;
    for (const auto& [key, place] : hosts().places)
        if (std::shared_ptr<Host> host = place->host.lock()) list.push_back(std::move(host));
    return list;
}

std::string with_host_names(std::string text) {
    if (text.find(kLinkAddress) == std::string::npos) return text;
    for (const auto& host : open_hosts()) {
        const std::string port = host->endpoint();
        for (std::size_t at = 0; (at = text.find(port, at)) != std::string::npos;) {
            const std::size_t end = at + port.size();
            const bool is_whole = end == text.size() || !std::isdigit(static_cast<unsigned char>(text[end]));
            if (is_whole) text.replace(at, port.size(), host->name());
            at += is_whole ? host->name().size() : port.size();
        }
    }
    return text;
}

}  // namespace headrace::remote
