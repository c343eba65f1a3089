#pragma once
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/result.h"
#include "remote/address.h"
#include "remote/link.h"
#include "remote/probe.h"

struct ggml_backend;
struct ggml_backend_device;

namespace headrace::remote {

/// A host's devices as ggml's, behind a link that outlives the loss of the host. Shared by all of the process
/// that use the host; whoever has anything in its memory holds it.
class Host {
public:
    /// The host as it is in use already with that patience, or a new connection to it after a probe. Others'
    /// patience is theirs: who would wait for an hour does not lose a host to who waits for a second.
    static Result<std::shared_ptr<Host>> open(std::string_view name, const Patience& patience = {});
    ~Host();
    Host(const Host&) = delete;
    Host& operator=(const Host&) = delete;

    /// "rpc://host:port".
    const std::string& name() const { return name_; }
    const std::vector<ggml_backend_device*>& devices() const { return devices_; }
    const Probe& probe() const { return probe_; }
    const Patience& patience() const { return link_->patience(); }
    /// The memory of a device now; the probe knows what was free before anything was placed there.
    Probe::Memory memory(std::size_t device) const;
    /// What ggml calls it: a port of this process.
    std::string endpoint() const { return link_->endpoint(); }
    bool is_lost() const { return link_->is_lost(); }
    /// The error of everything that needs a host which is lost.
    Status check() const;
    Traffic traffic() const { return link_->traffic(); }
    /// Held while a graph is computed: ggml's client mixes up two that run on one device at once.
    std::mutex& turn() { return turn_; }

private:
    Host(std::string name, Probe probe, std::unique_ptr<Link> link)
        : name_(std::move(name)), probe_(std::move(probe)), link_(std::move(link)) {}
    Status add_devices();

    const std::string name_;
    const Probe probe_;
    std::unique_ptr<Link> link_;
    std::vector<ggml_backend_device*> devices_;
    ggml_backend* connection_ = nullptr;  // keeps ggml's one connection from being made anew
    std::mutex turn_;
};

/// The hosts that are in use.
std::vector<std::shared_ptr<Host>> open_hosts();

/// What ggml says of a host's device, which it knows by a port of this process, with the host's name.
std::string with_host_names(std::string text);

}  // namespace headrace::remote
