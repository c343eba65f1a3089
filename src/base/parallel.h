#pragma once
#include <algorithm>
#include <atomic>
#include <cstddef>
#include <system_error>
#include <thread>
#include <vector>

namespace headrace {

/// Calls work(i) for each i below `count`, on up to `threads` threads, the caller's among them. For work of
/// milliseconds that is done once, such as loading: runs have a pool. work must not throw.
template <class Work>
void for_each_index(std::size_t count, int threads, const Work& work) {
    std::atomic<std::size_t> next{0};
    const auto serve = [&] {
        for (std::size_t i = next++; i < count; i = next++) work(i);
    };
    std::vector<std::thread> helpers;
    const auto most = std::min(count, static_cast<std::size_t>(std::max(threads, 1)));
    try {
        while (helpers.size() + 1 < most) helpers.emplace_back(serve);
    } catch (const std::system_error&) {  // no more threads: the others do it
    }
    serve();
    for (std::thread& helper : helpers) helper.join();
}

}  // namespace headrace
