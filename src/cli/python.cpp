#include "cli/python.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <vector>

#if defined(__unix__) || defined(__APPLE__)
#include <unistd.h>
#endif

namespace headrace::cli {
namespace {

std::filesystem::path own_path() {
    std::error_code error;
    const auto program = std::filesystem::read_symlink("/proc/self/exe", error);
    return error ? std::filesystem::path() : program;
}

}  // namespace

std::string find_python() {
    if (const char* chosen = std::getenv("HEADRACE_PYTHON")) return chosen;
    const auto python = own_path().parent_path() / "../../.venv/bin/python";
    std::error_code error;
    return !own_path().empty() && std::filesystem::exists(python, error) ? python.string() : "python3";
}

std::string python_program(std::string_view module, std::string_view otherwise) {
    return fmt::format(R"(
import sys
if sys.path[:1] == [""]:
    del sys.path[0]
try:
    from {} import main
except ModuleNotFoundError as error:
    if error.name != "headrace":
        raise{}
main()
)",
                       module, otherwise);
}

bool is_for_python(std::span<char* const> arguments) {
    return arguments.size() > 1 && std::string_view(arguments[1]) == "wasm";
}

#if defined(__unix__) || defined(__APPLE__)

namespace {

constexpr std::string_view kNoPackage = R"(
    sys.exit(
        f"headrace: {sys.argv[1]} needs the Python package headrace, which {sys.executable} does not have: "
        "`pip install .` in Headrace's checkout, or name another interpreter in HEADRACE_PYTHON"
    ))";

}  // namespace

Status become_python(std::span<char* const> arguments) {
    std::string python = find_python(), option = "-c",
                program = python_program("headrace.__main__", kNoPackage);
    std::vector<char*> command{python.data(), option.data(), program.data()};
    command.insert(command.end(), arguments.begin() + 1, arguments.end());
    command.push_back(nullptr);
    execvp(command[0], command.data());
    return failure(Code::io,
                   "{} is done by the Python package headrace, and '{}' does not start: {}. Install Python "
                   "and, in Headrace's checkout, `pip install .`, or name an interpreter in HEADRACE_PYTHON",
                   arguments[1], python, std::strerror(errno));
}

#else

Status become_python(std::span<char* const> arguments) {
    return unsupported(
        "{} is done by the Python package headrace: `pip install .` in Headrace's checkout, then python -m "
        "headrace",
        arguments[1]);
}

#endif

}  // namespace headrace::cli
