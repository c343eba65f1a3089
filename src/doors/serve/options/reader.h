#pragma once
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "doors/serve/options/flags.h"

namespace headrace::serve {

struct FoundFlag {
    const Flag* flag;
    bool is_negative;
};
std::optional<FoundFlag> find_flag(std::string_view name);
/// Long flags may be spelled with underscores.
std::string spelled(std::string name);
Error unknown_option(std::string_view name, std::string_view where);

/// A line `name = value` of a file, or `name` alone.
struct OptionLine {
    int number = 0;
    std::string name;
    std::optional<std::string> value;
};
struct OptionSection {
    std::string name;  ///< empty: what stands before the first
    std::vector<OptionLine> lines;
    int number = 0;  ///< of its own line
};
/// Lines that begin with # or ; are not looked at.
Result<std::vector<OptionSection>> option_sections(const std::string& path);
Result<std::string> switch_value(std::string_view text);

/// Sets options by flags of ranks, the highest first: what one rank sets is not changed by those of lesser
/// rank.
class OptionReader {
public:
    /// skips: flags that are not taken, wherever they stand.
    explicit OptionReader(ServeOptions& options, std::function<bool(const Flag&)> skips = {})
        : options_(options), skips_(std::move(skips)) {}

    /// config: the file that --config names, if it does.
    Status read_arguments(std::span<const std::string> arguments, std::string& config);
    Status read_environment(const std::map<std::string, std::string>& environment);
    /// Names are those of flags without their dashes, or of their variables. file: for errors.
    Status read_lines(const std::vector<OptionLine>& lines, const std::string& file);
    /// All lines of a file that has no sections.
    Status read_file(const std::string& path);

    /// where: for errors, "the environment's LLAMA_ARG_PORT: ", or nothing for an argument.
    Status take(const Flag& flag, const std::string& name, const std::string& value,
                const std::string& where);
    /// A rank's own flags may come several times; those of a lesser rank do not count then.
    void begin_rank() { taken_.insert(this_rank_.begin(), this_rank_.end()); }

private:
    bool is_taken(const Flag& flag) {
        if (skips_ && skips_(flag)) return false;
        this_rank_.insert(&flag);
        return taken_.contains(&flag);
    }
    void note(const Flag& flag, const std::string& name, const std::string& where);
    Status set_parameter(const Flag& flag, const std::string& value);

    ServeOptions& options_;
    const std::function<bool(const Flag&)> skips_;
    std::set<const Flag*> this_rank_, taken_;
};

}  // namespace headrace::serve
