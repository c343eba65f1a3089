#include "llm/grammar/grammar_automaton.h"

#include <algorithm>
#include <stdexcept>

#include "base/hash_step.h"

namespace headrace::llm {
namespace {

using Element = GrammarRules::Element;

constexpr std::size_t kFullBytes = 64u << 20;
constexpr std::size_t kMostBytes = 512u << 20;  // what one walk may add to that
constexpr std::uint32_t kNoElement = UINT32_MAX;
constexpr std::size_t kAscii = 128;

}  // namespace

std::size_t GrammarAutomaton::HashStacks::operator()(const std::vector<std::uint32_t>& stacks) const {
    std::uint64_t hash = kHashStart;
    for (const std::uint32_t stack : stacks) hash = hash_step(hash, stack);
    return static_cast<std::size_t>(hash ^ (hash >> 32));
}

GrammarAutomaton::GrammarAutomaton(std::shared_ptr<const GrammarRules> rules,
                                   std::shared_ptr<const TokenTrie> trie)
    : rules_(std::move(rules)), trie_(std::move(trie)), nodes_{{kNoElement, 0}} {
    find_classes();
    std::vector<std::uint32_t> stacks;
    for (const std::uint32_t element : rules_->alternatives[rules_->root]) stacks.push_back(node(element, 0));
    start_ = closure(std::move(stacks));
}

/// Characters that no ranges tell apart are one class.
void GrammarAutomaton::find_classes() {
    for (const CharacterRanges& ranges : rules_->characters)
        for (const auto& [first, last] : ranges.ranges) {
            if (first > 0) class_starts_.push_back(first);
            if (last < UINT32_MAX) class_starts_.push_back(last + 1);
        }
    std::sort(class_starts_.begin(), class_starts_.end());
    class_starts_.erase(std::unique(class_starts_.begin(), class_starts_.end()), class_starts_.end());
    for (const CharacterRanges& ranges : rules_->characters) {
        std::vector<bool>& is_in = class_is_in_.emplace_back();
        is_in.push_back(ranges.contains(0));
        for (const std::uint32_t start : class_starts_) is_in.push_back(ranges.contains(start));
    }
    for (std::uint32_t character = 0; character < kAscii; ++character)
        ascii_classes_.push_back(static_cast<std::uint16_t>(
            std::upper_bound(class_starts_.begin(), class_starts_.end(), character) - class_starts_.begin()));
}

std::size_t GrammarAutomaton::class_of(std::uint32_t character) const {
    if (character < kAscii) return ascii_classes_[character];
    return static_cast<std::size_t>(std::upper_bound(class_starts_.begin(), class_starts_.end(), character) -
                                    class_starts_.begin());
}

std::uint32_t GrammarAutomaton::node(std::uint32_t element, std::uint32_t below) {
    if (rules_->is_end(element)) return below;
    const auto [found, is_new] = known_nodes_.emplace((std::uint64_t{element} << 32) | below,
                                                      static_cast<std::uint32_t>(nodes_.size()));
    if (is_new) {
        nodes_.push_back({element, below});
        bytes_ += 64;
    }
    return found->second;
}

std::uint32_t GrammarAutomaton::behind(std::uint32_t stack) {
    const Node top = nodes_[stack];
    return node(top.element + 1, top.below);
}

/// Rules on top give way to their alternatives until characters are there. None begins with itself, or
/// llama.cpp would have refused the grammar.
GrammarAutomaton::State* GrammarAutomaton::closure(std::vector<std::uint32_t> todo) {
    std::vector<std::uint32_t> stacks;
    std::unordered_map<std::uint32_t, bool> seen;
    while (!todo.empty()) {
        const std::uint32_t stack = todo.back();
        todo.pop_back();
        if (!seen.emplace(stack, true).second) continue;
        const Element element =
            stack == 0 ? Element{Element::Kind::end} : rules_->elements[nodes_[stack].element];
        if (element.kind != Element::Kind::rule) {
            stacks.push_back(stack);
            continue;
        }
        const std::uint32_t below = behind(stack);
        for (const std::uint32_t start : rules_->alternatives[element.value])
            todo.push_back(node(start, below));
    }
    std::sort(stacks.begin(), stacks.end());
    const auto [found, is_new] = states_.try_emplace(std::move(stacks));
    if (is_new) {
        found->second = std::make_unique<State>();
        found->second->stacks = found->first;
        bytes_ += 160 + 8 * found->first.size();
    }
    return found->second.get();
}

GrammarAutomaton::State* GrammarAutomaton::step(State& state, std::size_t character_class) {
    if (state.next.empty()) {
        if (bytes_ > kMostBytes) throw std::length_error("the grammar has too many states");
        state.next.resize(class_starts_.size() + 1);
        bytes_ += state.next.size() * sizeof(State*);
    }
    std::vector<std::uint32_t> left;
    for (const std::uint32_t stack : state.stacks) {
        if (stack == 0) continue;
        const std::uint32_t ranges = rules_->elements[nodes_[stack].element].value;
        if (class_is_in_[ranges][character_class]) left.push_back(behind(stack));
    }
    return state.next[character_class] = closure(std::move(left));
}

bool GrammarAutomaton::may_become_one(const State& state, PartialCharacter begun) const {
    return std::any_of(state.stacks.begin(), state.stacks.end(), [&](std::uint32_t stack) {
        return stack != 0 &&
               rules_->characters[rules_->elements[nodes_[stack].element].value].may_become_one(begun);
    });
}

/// False where no text with it is right. As llama.cpp reads UTF-8, only the bytes that continue a character
/// of the token before (is_continued) are looked at.
bool GrammarAutomaton::take_byte(Place& place, std::uint8_t byte, bool is_continued) {
    constexpr std::int8_t kLengths[16] = {1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 2, 2, 3, 4};
    PartialCharacter& begun = place.begun;
    if (begun.missing > 0) {
        if (is_continued && (byte >> 6) != 2) return false;
        begun.value = (begun.value << 6) + (byte & 0x3F);
        --begun.missing;
    } else {
        const int length = kLengths[byte >> 4];
        if (length == 0) return false;
        begun = {byte & ((1u << (8 - length)) - 1), length - 1};
    }
    if (begun.missing > 0) return true;
    place.state = next(*place.state, class_of(begun.value));
    begun = {};
    return !is_dead(place.state);
}

std::optional<GrammarAutomaton::Place> GrammarAutomaton::after(Place place, std::string_view text) {
    const std::lock_guard lock(mutex_);
    const auto continued = static_cast<std::size_t>(place.begun.missing);
    for (std::size_t i = 0; i < text.size(); ++i)
        if (!take_byte(place, static_cast<std::uint8_t>(text[i]), i < continued)) return std::nullopt;
    if (place.begun.missing > 0 && !may_become_one(*place.state, place.begun)) return std::nullopt;
    return place;
}

TokenMask GrammarAutomaton::walk(Place place) {
    TokenMask mask((trie_->vocabulary_size() + 63) / 64);
    const auto allow = [&](llama_token token) {
        mask[static_cast<std::size_t>(token) / 64] |= std::uint64_t{1} << (token % 64);
    };
    const auto& nodes = trie_->nodes();
    const auto continued = static_cast<std::size_t>(place.begun.missing);
    std::vector<Place> path(trie_->deepest() + 1);
    path[0] = place;
    for (std::size_t at = 0; at + 1 < nodes.size();) {
        const TokenTrie::Node& node = nodes[at];
        Place& here = path[node.depth + 1u];
        here = path[node.depth];
        if (!take_byte(here, node.byte, node.depth < continued)) {
            at = node.after;
            continue;
        }
        ++at;
        if (nodes[at].first_token == node.first_token) continue;
        if (here.begun.missing > 0 && !may_become_one(*here.state, here.begun)) continue;
        for (std::uint32_t i = node.first_token; i < nodes[at].first_token; ++i) allow(trie_->tokens()[i]);
    }
    if (place.begun.missing == 0 && place.state->may_end())
        for (const llama_token token : trie_->ends()) allow(token);
    return mask;
}

/// What follows a begun character is few tokens, quickly found; it is not kept.
std::shared_ptr<const TokenMask> GrammarAutomaton::allowed(Place place) {
    const std::lock_guard lock(mutex_);
    if (place.begun.missing > 0) return std::make_shared<const TokenMask>(walk(place));
    if (place.state->allowed == nullptr) {
        place.state->allowed = std::make_shared<const TokenMask>(walk(place));
        bytes_ += place.state->allowed->size() * sizeof(std::uint64_t);
    }
    return place.state->allowed;
}

bool GrammarAutomaton::is_full() const {
    const std::lock_guard lock(mutex_);
    return bytes_ > kFullBytes;
}

GrammarAutomaton::Place GrammarAutomaton::take_over(const GrammarAutomaton& from, Place place) {
    const std::scoped_lock lock(mutex_, from.mutex_);
    std::vector<std::uint32_t> stacks;
    for (std::uint32_t stack : place.state->stacks) {
        std::vector<std::uint32_t> elements;
        for (; stack != 0; stack = from.nodes_[stack].below) elements.push_back(from.nodes_[stack].element);
        std::uint32_t copy = 0;
        for (auto element = elements.rbegin(); element != elements.rend(); ++element)
            copy = node(*element, copy);
        stacks.push_back(copy);
    }
    return {closure(std::move(stacks)), place.begun};
}

}  // namespace headrace::llm
