#include "cli/device_option.h"

#include <utility>

#include "remote/address.h"

namespace headrace::cli {

void add_device_option(CLI::App& command, const std::string& help,
                       std::function<void(const std::vector<std::string>&)> use, const std::string& names) {
    const auto split = [use = std::move(use)](const std::vector<std::string>& given) {
        std::vector<std::string> devices;
        for (const std::string& list : given)
            for (std::string& name : remote::split_names(list)) devices.push_back(std::move(name));
        use(devices);
    };
    command.add_option_function<std::vector<std::string>>(names, split, help)
        ->type_name("NAME[,NAME...]")
        ->allow_extra_args(false);
}

}  // namespace headrace::cli
