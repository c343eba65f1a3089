#include "llm/stopping/pattern_program.h"

#include "llm/stopping/pattern_syntax.h"

namespace headrace::llm {
namespace {

using Op = PatternProgram::Op;
using Kind = PatternSyntax::Kind;

class Compiler {
public:
    Compiler(PatternProgram& program, PatternSyntax syntax, Assertion end)
        : program_(program), syntax_(std::move(syntax)), end_(end), set_of_(syntax_.nodes.size(), kNone) {}

    Status compile() { return node(static_cast<std::uint32_t>(syntax_.nodes.size() - 1)); }

    std::uint32_t here() const { return static_cast<std::uint32_t>(program_.states.size()); }
    std::uint32_t add(Op op, std::uint32_t x = 0, std::uint32_t y = 0) {
        program_.states.push_back({op, x, y});
        return here() - 1;
    }

private:
    static constexpr std::uint32_t kNone = UINT32_MAX;

    Status node(std::uint32_t index) {
        // A repeated group may be empty, and so add no state however often it is visited.
        if (++visits_ > 4 * PatternProgram::kMaxStates || here() >= PatternProgram::kMaxStates)
            return invalid(
                "with its repetitions written out, it and those before it need more than {} states",
                PatternProgram::kMaxStates);
        const PatternSyntax::Node& node = syntax_.nodes[index];
        switch (node.kind) {
            case Kind::one_of: add(Op::one_of, set(index)); break;
            case Kind::assertion: add(Op::assertion, static_cast<std::uint32_t>(meant(node))); break;
            case Kind::sequence:
                for (const std::uint32_t child : node.children) HR_TRY(this->node(child));
                break;
            case Kind::alternatives: return alternatives(node);
            case Kind::repeat: return repeat(node);
        }
        return success();
    }

    Assertion meant(const PatternSyntax::Node& node) const {
        return node.assertion == Assertion::line_end ? end_ : node.assertion;
    }

    /// Copies of a repeated character share one set.
    std::uint32_t set(std::uint32_t index) {
        if (set_of_[index] == kNone) {
            set_of_[index] = static_cast<std::uint32_t>(program_.sets.size());
            program_.sets.push_back(syntax_.nodes[index].set);
        }
        return set_of_[index];
    }

    Status alternatives(const PatternSyntax::Node& node) {
        std::vector<std::uint32_t> jumps;
        for (std::size_t i = 0; i + 1 < node.children.size(); ++i) {
            const std::uint32_t either = add(Op::either, here() + 1);
            HR_TRY(this->node(node.children[i]));
            jumps.push_back(add(Op::jump));
            program_.states[either].y = here();
        }
        HR_TRY(this->node(node.children.back()));
        for (const std::uint32_t jump : jumps) program_.states[jump].x = here();
        return success();
    }

    Status repeat(const PatternSyntax::Node& node) {
        for (std::uint32_t i = 0; i < node.min; ++i) HR_TRY(this->node(node.children[0]));
        if (node.max == PatternSyntax::kUnbounded) {
            const std::uint32_t loop = add(Op::either, here() + 1);
            HR_TRY(this->node(node.children[0]));
            add(Op::jump, loop);
            program_.states[loop].y = here();
            return success();
        }
        std::vector<std::uint32_t> exits;
        for (std::uint32_t i = node.min; i < node.max; ++i) {
            exits.push_back(add(Op::either, here() + 1));
            HR_TRY(this->node(node.children[0]));
        }
        for (const std::uint32_t exit : exits) program_.states[exit].y = here();
        return success();
    }

    PatternProgram& program_;
    PatternSyntax syntax_;
    const Assertion end_;
    std::vector<std::uint32_t> set_of_;
    std::size_t visits_ = 0;
};

}  // namespace

Status PatternProgram::add(std::string_view pattern, Assertion end) {
    if (starts.size() == kMaxPatterns) return invalid("more than {} patterns", kMaxPatterns);
    if (pattern.size() > kMaxPatternBytes)
        return invalid("it has {} bytes; at most {} are taken", pattern.size(), kMaxPatternBytes);
    HR_ASSIGN(PatternSyntax syntax, parse_pattern(pattern));
    Compiler compiler(*this, std::move(syntax), end);
    const std::uint32_t start = compiler.here();
    HR_TRY(compiler.compile());
    compiler.add(Op::match, static_cast<std::uint32_t>(starts.size()));
    starts.push_back(start);
    return success();
}

}  // namespace headrace::llm
