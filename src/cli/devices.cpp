#include <cstdio>
#include <memory>

#include "base/log.h"
#include "cli/commands.h"
#include "cli/device_option.h"
#include "cli/progress.h"
#include "cli/report.h"
#include "cli/table.h"
#include "engine/device_check.h"
#include "headrace/headrace.h"
#include "remote/link.h"
#include "remote/probe.h"
#include "remote/server.h"
#ifdef HEADRACE_LLM
#include "llm/model/packed_kernels.h"
#endif

namespace headrace::cli {
namespace {

struct DevicesOptions {
    std::vector<std::string> hosts;  ///< rpc://host:port of remote ones to ask, too
    std::string check;               ///< the device to check; empty: none
    JsonOption json;
};

class DeviceList {
public:
    void add(const std::string& name, const std::string& type, std::size_t free, std::size_t total,
             const std::string& description, nlohmann::json more) {
        const auto mib = [](std::size_t bytes) { return std::to_string(bytes >> 20); };
        table_.add({name, type, mib(free), mib(total), description});
        more.update({{"name", name}, {"type", type}, {"free_bytes", free}, {"total_bytes", total}});
        values_.push_back(std::move(more));
    }

    Status ask(const std::string& name) {
        HR_ASSIGN(const remote::Address address, remote::Address::parse(name));
        HR_ASSIGN(const remote::Probe probe, remote::probe(address, remote::Patience().connect));
        for (const remote::Probe::Memory& memory : probe.devices)
            add(address.name(), "rpc", memory.free, memory.total,
                fmt::format("RPC {}, round trip {:.2f} ms, {:.0f} MB/s", probe.version, probe.round_trip_ms,
                            probe.bytes_per_second / 1e6),
                {{"rpc_version", probe.version},
                 {"round_trip_ms", probe.round_trip_ms},
                 {"bytes_per_second", probe.bytes_per_second}});
        return success();
    }

    Status report_to(const JsonOption& json) const { return report(table_.text(), values_, json); }

private:
    Table table_{{{"name"}, {"type"}, {"free MiB", true}, {"total MiB", true}, {"description"}}};
    nlohmann::json values_ = nlohmann::json::array();
};

/// Hosts that do not answer are told on standard error, the last one as the status.
Status list_all_devices(const DevicesOptions& options) {
    DeviceList list;
    for (const DeviceInfo& d : devices())
        list.add(d.name, d.type, d.memory_free, d.memory_total, d.description,
                 {{"description", d.description}});
    Status last = success();
    for (const std::string& name : options.hosts) {
        Status asked = list.ask(name);
        if (asked.ok()) continue;
        if (!last.ok()) tell_user(last.error().message);
        last = std::move(asked);
    }
    HR_TRY(list.report_to(options.json));
    return last;
}

Status check_and_tell(const DevicesOptions& options) {
    std::vector<OpCheck> checks;
    {
        Progress progress("running every op's samples");
        HR_ASSIGN(checks, check_device(options.check));
    }
    Table table({{"op"}, {"samples", true}, {"there", true}, {"wrong", true}, {"the first"}});
    nlohmann::json values = nlohmann::json::array();
    int wrong = 0;
    for (const OpCheck& c : checks) {
        table.add({c.op, std::to_string(c.samples), std::to_string(c.on_device), std::to_string(c.wrong),
                   c.problem});
        values.push_back({{"op", c.op},
                          {"samples", c.samples},
                          {"on_device", c.on_device},
                          {"wrong", c.wrong},
                          {"problem", c.problem}});
        wrong += c.wrong > 0;
    }
    const std::string closing =
        fmt::format("{} ops run on {}; {} of them are wrong there and will run on the CPU\n", checks.size(),
                    options.check, wrong);
    return report(table.text() + closing, values, options.json);
}

}  // namespace

void add_devices(CLI::App& app, Status& status) {
    auto* command = app.add_subcommand("devices", "list what ggml can run on")->group(kMachines);
    auto options = std::make_shared<DevicesOptions>();
    add_device_option(
        *command, "rpc://host:port of a remote one to ask: memory, round trip, throughput",
        [=](const auto& names) { options->hosts = names; }, "host,--device");
    command
        ->add_option(
            "--check", options->check,
            "compare every op's samples there with the CPU; what is wrong runs on the CPU from then on")
        ->type_name("NAME");
    add_json_option(*command, options->json);
    command->footer(
        "Examples:\n"
        "    headrace devices\n"
        "    headrace devices --check Vulkan0\n"
        "    headrace devices rpc://10.0.0.2:50052");
    command->final_callback([=, &status] {
        run_command(status, [&] {
            return options->check.empty() ? list_all_devices(*options) : check_and_tell(*options);
        });
    });
}

void add_serve_rpc(CLI::App& app, Status& status) {
    auto* command =
        app.add_subcommand("serve-rpc", "lend this machine's devices to other hosts")->group(kMachines);
    auto options = std::make_shared<remote::ServerOptions>();
    command->add_option("--host", options->host, "address to listen at; default: 127.0.0.1")
        ->type_name("ADDRESS");
    command->add_option("--port", options->port, "default: 50052; 0 chooses a free one")
        ->check(CLI::Range(0, 65535))
        ->type_name("N");
    command->add_flag("--allow-public", options->allow_public,
                      "listen where other machines can connect; RPC knows no passwords");
    add_device_option(*command, "a name from `headrace devices`; none: the GPUs, else the CPU",
                      [=](const auto& names) { options->devices = names; });
    command->add_option("--threads", options->threads, "of the CPU; default: 0, one per core")
        ->check(CLI::Range(0, 4096))
        ->type_name("N");
    command
        ->add_option("--cache", options->cache,
                     "folder where large weights are kept, so that they are sent once")
        ->type_name("FOLDER");
    command->add_option("--max-clients", options->max_clients, "served at once")
        ->check(CLI::Range(1, 1024))
        ->type_name("N");
#ifdef HEADRACE_LLM
    options->prepare = &llm::offer_packed_kernels;  // for its attention: clients choose where weights lie
#endif
    command->footer(
        "Examples:\n"
        "    headrace serve-rpc --host 10.0.0.2 --allow-public     then, elsewhere:\n"
        "    headrace chat model.gguf --device rpc://10.0.0.2:50052");
    command->final_callback([=, &status] { run_command(status, [&] { return remote::serve(*options); }); });
}

}  // namespace headrace::cli
