#include "cli/progress.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#if defined(__unix__) || defined(__APPLE__)
#include <unistd.h>
#else
#include <io.h>
#endif

namespace headrace::cli {
namespace {

using std::chrono::steady_clock;

constexpr std::chrono::milliseconds kMoment(300), kBetween(100);
constexpr std::size_t kWidth = 30;

bool shows_lines() {
#if defined(__unix__) || defined(__APPLE__)
    return isatty(STDERR_FILENO) != 0;
#else
    return _isatty(_fileno(stderr)) != 0;
#endif
}

}  // namespace

Progress::Progress(std::string work)
    : work_(std::move(work)), next_(steady_clock::now() + kMoment), is_terminal_(shows_lines()) {}

Progress::~Progress() {
    if (is_shown_) std::fputs("\r\033[K", stderr);
}

void Progress::show(double share) {
    if (!is_terminal_ || steady_clock::now() < next_) return;
    next_ = steady_clock::now() + kBetween;
    is_shown_ = true;
    share = std::clamp(share, 0.0, 1.0);
    const auto full = static_cast<std::size_t>(share * kWidth);
    std::fputs(fmt::format("\r\033[K{} [{}{}] {:.0f} %", work_, std::string(full, '#'),
                           std::string(kWidth - full, '.'), 100 * share)
                   .c_str(),
               stderr);
    std::fflush(stderr);
}

void Progress::show(std::size_t done, std::size_t all) {
    show(all == 0 ? 1.0 : static_cast<double>(done) / static_cast<double>(all));
}

}  // namespace headrace::cli
