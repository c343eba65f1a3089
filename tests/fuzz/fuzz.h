#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace headrace::fuzz {

class Mutator;

/// What one loader reads: the graph file, and where it has them its manifest and weights.
using Parts = std::vector<std::string>;

/// One loader with sound inputs to start from. `load` must return whatever it is given; it throws
/// std::logic_error when a loaded graph breaks a promise.
struct Target {
    std::string name;
    std::vector<Parts> corpus;
    std::vector<std::string_view> words;                            ///< of the format
    std::function<bool(const Parts&)> load;                         ///< whether the loader accepted it
    std::function<Parts(const Parts&, Mutator&)> mutate = nullptr;  ///< in place of the general changes
};

/// The input of one iteration.
Parts mutated(const Target& target, std::uint64_t seed, std::uint64_t iteration);

struct Outcome {
    std::uint64_t iterations = 0;
    std::uint64_t accepted = 0;
};
/// Runs iterations until the time is over. When one ends the process or takes too long, its target, seed and
/// number are printed before.
Outcome fuzz_for(const Target& target, std::uint64_t seed, double seconds);
/// Runs one iteration.
bool fuzz_once(const Target& target, std::uint64_t seed, std::uint64_t iteration);

}  // namespace headrace::fuzz
