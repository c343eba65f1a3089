#pragma once
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <vector>

namespace headrace {

struct TextCall;

/// A text of a call.
struct WaitingText {
    std::shared_ptr<TextCall> call;
    std::size_t index = 0;
    std::uint64_t turn = 0;  ///< those of a lower one go first
};

/// Texts that wait, by their lengths, and which of them the next run takes. Not thread-safe.
///
/// A run costs as much as kRunTokens tokens besides its own, padding included (MiniLM on a core with AVX-512:
/// 0.8 ms, and 0.21 ms a token). So texts share a run where that saves more than the padding costs.
class WaitingTexts {
public:
    static constexpr std::int64_t kRunTokens = 4;
    /// The most tokens of a run: more are no faster by the token, and others would wait for longer.
    static constexpr std::int64_t kMostTokens = 256;

    void add(std::int64_t length, WaitingText text);
    std::size_t size() const { return size_; }

    /// The texts of the next run, taken out: the first one in turn, and others whose lengths are near. Empty
    /// where none waits.
    std::vector<WaitingText> take();
    /// The turn that was served last: where those of a new call begin.
    std::uint64_t turn() const { return turn_; }
    /// Takes out all for which `is` says so.
    void remove_if(const std::function<bool(const WaitingText&)>& is);

private:
    using Lengths = std::map<std::int64_t, std::deque<WaitingText>>;
    /// How many texts of one length.
    struct Part {
        Lengths::iterator place;
        std::size_t count;
    };
    Lengths::iterator first_in_turn();
    std::vector<Part> choose();

    Lengths by_length_;
    std::size_t size_ = 0;
    std::uint64_t turn_ = 0;
};

/// How long a run is whose longest text has so many tokens: rounded up by some percent, so that plans serve
/// again, and to `most` at most.
std::int64_t run_length(std::int64_t tokens, std::int64_t most);

}  // namespace headrace
