#include <limits>

#include "doors/onnx/ops/gpt_steps.h"
#include "doors/onnx/ops/loops.h"
#include "doors/onnx/reading/numbers.h"

/// BeamSearch: several continuations of each prompt, of which the likeliest go on, and those that have ended.
namespace headrace::onnx {
namespace {

constexpr double kNone = -std::numeric_limits<double>::infinity();  ///< the score of no sequence
constexpr double kOtherBeams = -1e9;                                ///< at first all beams are alike

/// What does not change from a token to the next.
struct Beams {
    Dim batch;
    std::int64_t count;  ///< of each prompt
    Dim limit;           ///< tokens of a sequence
    std::int64_t pad;
    bool is_early;           ///< a prompt is done once as many sequences have ended
    Operand length_penalty;  ///< a scalar, f32

    Dim rows() const { return batch * Dim(count); }
};

/// Sequences that have ended, the best first: scores [batch, count] and tokens [batch, count, limit].
struct Ended {
    Operand scores, tokens;
};

/// Indices [batch, n] into the `extent` elements of each prompt, as indices into those of all.
Operand in_all(OpWriter& g, const Beams& beams, const Operand& indices, std::int64_t extent) {
    const Operand first = g.times(g.positions(beams.batch), static_cast<double>(extent));
    return g.op("add", {indices, g.reshape(first, {beams.batch, 1})});
}

/// Elements [batch, n] of [batch, m] at places [batch, n].
Operand at_places(OpWriter& g, const Operand& x, const Operand& places) {
    return g.op("gather_elements", {x, places}, {{"axis", 1}});
}

/// Scores by the sequences' length.
Operand by_length(OpWriter& g, const Beams& beams, const Operand& scores, const Dim& length) {
    const Operand number = g.at_run_time(Item(length), ElementType::f32);
    return g.op("div", {scores, g.op("pow", {number, beams.length_penalty})});
}

/// The best ones of those and of others, rows [batch, count] of sequences [rows, length], where `is_one`.
Ended with_others(OpWriter& g, const Beams& beams, const Ended& ended, const Operand& scores,
                  const Operand& is_one, const Operand& sequences, const Operand& rows) {
    const std::int64_t n = beams.count;
    const Operand found = g.op("where", {is_one, scores, known(kNone, ElementType::f32)});
    const Operand tokens =
        filled_up(g, g.op("gather", {sequences, rows}, {{"axis", 0}}), beams.limit, beams.pad);
    const Results best = g.ops("sort", {g.concat({ended.scores, found}, 1)},
                               {{"axis", 1}, {"descending", true}, {"count", n}});
    const Operand all = g.reshape(g.concat({ended.tokens, tokens}, 1), {beams.rows() * Dim(2), beams.limit});
    return {best.at(0), g.op("gather", {all, in_all(g, beams, best.at(1), 2 * n)}, {{"axis", 0}})};
}

/// The likeliest tokens behind each prompt's beams, twice as many as beams, best first.
struct Candidates {
    Operand scores, beams, tokens;  ///< [batch, 2 count], f32, i64 and i64
};

Candidates candidates_of(OpWriter& g, const Beams& beams, const Operand& scores) {
    const Dim vocabulary = g.shape(scores).at(1);
    const Operand lines = g.reshape(scores, {beams.batch, vocabulary * Dim(beams.count)});
    const Results best =
        g.ops("sort", {lines}, {{"axis", 1}, {"descending", true}, {"count", 2 * beams.count}});
    const Operand width = g.at_run_time(Item(vocabulary), ElementType::i64);
    return {best.at(0), g.op("div", {best.at(1), width}), g.op("remainder", {best.at(1), width})};
}

/// The places of the first tokens that do not end their sequence, as many as beams: [batch, count].
Operand going_on(OpWriter& g, const Beams& beams, const Operand& ends) {
    const std::int64_t n = 2 * beams.count;
    const Operand late = g.times(g.cast(ends, ElementType::i64), static_cast<double>(n));
    const Operand order = g.op("add", {late, g.positions(n)});
    return g.ops("sort", {order}, {{"axis", 1}, {"count", beams.count}}).at(1);
}

/// What the search carries besides the decoder's part.
struct Search {
    Operand sequences;    ///< [rows, length]
    Operand beam_scores;  ///< [batch, count]
    Operand done;         ///< [batch]
    Ended ended;

    std::vector<Operand> values() const { return {sequences, beam_scores, done, ended.scores, ended.tokens}; }
    static constexpr std::size_t kValues = 5;
    static Search of(OpWriter& g, const Beams& beams, const std::vector<Operand>& x) {
        const Dim n = beams.count;
        return {x.at(0), x.at(1), x.at(2), {x.at(3), g.reshape(x.at(4), {beams.batch, n, beams.limit})}};
    }
};

Search first_search(OpWriter& g, const Beams& beams, const Operand& prompts) {
    std::vector<double> scores(static_cast<std::size_t>(beams.count), kOtherBeams);
    scores[0] = 0;
    const Shape each{beams.batch, beams.count};
    return {
        prompts,
        g.expand(g.reshape(known(scores, ElementType::f32), {1, beams.count}), each),
        g.filled(0, ElementType::boolean, {beams.batch}),
        {g.filled(kNone, ElementType::f32, each), g.filled(static_cast<double>(beams.pad), ElementType::i32,
                                                           {beams.batch, beams.count, beams.limit})}};
}

/// Whether each prompt's sequences that have ended are as good as any that go on could become.
Operand is_done(OpWriter& g, const Beams& beams, const Search& now, const Operand& best) {
    const Operand worst = g.reshape(g.cut(now.ended.scores, 1, beams.count - 1, 1), {beams.batch});
    const Operand is_full = g.op("greater", {worst, known(kNone, ElementType::f32)});
    if (beams.is_early) return g.op("logical_or", {now.done, is_full});
    const Operand hoped =
        by_length(g, beams, g.reshape(g.cut(best, 1, 0, 1), {beams.batch}), g.shape(now.sequences).at(1));
    const Operand is_best = g.op("greater_or_equal", {worst, hoped});
    return g.op("logical_or", {now.done, g.op("logical_and", {is_full, is_best})});
}

struct Chosen {
    Search search;
    Operand tokens, rows;  ///< [rows, 1] and [rows]: what each beam goes on with, and of which one
};

Chosen chosen_beams(OpWriter& g, const Beams& beams, const TokenRules& rules, Search now,
                    const Candidates& found) {
    const std::int64_t n = beams.count;
    const Dim rows = beams.rows();
    const Operand ends = g.op("equal", {found.tokens, known(rules.end, ElementType::i64)});
    const Operand open = g.reshape(g.op("logical_not", {now.done}), {beams.batch, 1});
    const auto best = [&](const Operand& x) { return g.cut(x, 1, 0, n); };
    now.ended = with_others(
        g, beams, now.ended, by_length(g, beams, best(found.scores), g.shape(now.sequences).at(1)),
        g.op("logical_and", {best(ends), open}), now.sequences, in_all(g, beams, best(found.beams), n));
    now.done = is_done(g, beams, now, found.scores);
    const Operand places = going_on(g, beams, ends);
    now.beam_scores = at_places(g, found.scores, places);
    const Operand parents = g.reshape(in_all(g, beams, at_places(g, found.beams, places), n), {rows});
    const Operand token = g.reshape(g.cast(at_places(g, found.tokens, places), ElementType::i32), {rows, 1});
    now.sequences = g.concat({g.op("gather", {now.sequences, parents}, {{"axis", 0}}), token}, 1);
    return {now, token, parents};
}

/// All but the batch and the limit.
Beams beams_of(OpWriter& g, const Node& node) {
    const std::int64_t count = node.integer_at(3, "num_beams");
    invalid_if(count < 1, "num_beams (input 3) is {}; at least 1 is right", count);
    OpWriter::check_extent(count);
    const Operand given = node.optional(5);
    const Operand penalty =
        given ? g.reshape(g.cast(given, ElementType::f32), {}) : known(1.0, ElementType::f32);
    return {{}, count, {}, node.integer("pad_token_id"), node.flag("early_stopping", false), penalty};
}

/// The ended sequences and, where a prompt is not done, its beams as they are.
Ended all_ended(OpWriter& g, const Beams& beams, const Search& last) {
    const Operand open = g.reshape(g.op("logical_not", {last.done}), {beams.batch, 1});
    const Operand rows = g.reshape(g.positions(beams.rows()), {beams.batch, beams.count});
    return with_others(g, beams, last.ended,
                       by_length(g, beams, last.beam_scores, g.shape(last.sequences).at(1)), open,
                       last.sequences, rows);
}

Results beam_search(OpWriter& g, const Node& node) {
    refuse_if(node.wants(2), "the scores of all tokens (output 2) are wanted");
    refuse_if(node.optional(10) || node.optional(11), "it has decoder_input_ids or a logits_processor");
    Beams beams = beams_of(g, node);
    const std::int64_t wanted = node.integer_at(4, "num_return_sequences");
    invalid_if(wanted < 1 || wanted > beams.count,
               "num_return_sequences (input 4) is {}; from 1 to num_beams, {}, is right", wanted,
               beams.count);
    const GptSteps decoder(g, node, node.optional(9), beams.count);
    const TokenRules rules = TokenRules::of(g, node, 2, 6);
    const Shape sizes = g.shape(node.x());
    const LengthLimit limit(g, node, sizes.at(1));
    beams.batch = sizes.at(0);
    beams.limit = limit.length;
    const auto step = [&](Body& body, const Operand& number, const std::vector<Operand>& carried) {
        const Search now = Search::of(body, beams, carried);
        const GptSteps::Step made = decoder.step(body, {carried.begin() + Search::kValues, carried.end()});
        const Operand total = body.op("reduce_log_sum_exp", {made.logits},
                                      {{"axes", std::vector<std::int64_t>{1}}, {"keep_dimensions", true}});
        const Operand likely = body.op("sub", {made.logits, total});
        Operand scores = rules.ruled(body, likely, now.sequences, number);
        scores = body.op("add", {scores, body.reshape(now.beam_scores, {beams.rows(), 1})});
        const Chosen chosen = chosen_beams(body, beams, rules, now, candidates_of(body, beams, scores));
        Iteration next{
            body.op("logical_not", {all_are(body, chosen.search.done)}), chosen.search.values(), {}};
        const std::vector<Operand> own =
            decoder.next(body, made, chosen.tokens, beams.count == 1 ? nullptr : chosen.rows);
        next.next.insert(next.next.end(), own.begin(), own.end());
        return next;
    };
    std::vector<Operand> first = first_search(g, beams, decoder.prompts()).values();
    first.insert(first.end(), decoder.first().begin(), decoder.first().end());
    const Ended best = all_ended(g, beams, Search::of(g, beams, repeat(g, limit.left, nullptr, first, step)));
    return {g.cut(best.tokens, 1, 0, wanted), g.cut(best.scores, 1, 0, wanted)};
}

}  // namespace

std::span<const Operator> beam_search_operators() {
    static const Operator kOperators[] = {
        {"BeamSearch", 1, beam_search,
         "5..12 -> 1..3, decoder graph, decoder_start_token_id int, early_stopping int, encoder graph, "
         "eos_token_id int, init_decoder graph, model_type int, no_repeat_ngram_size int, pad_token_id int, "
         "vocab_size int",
         kMicrosoft}};
    return kOperators;
}

}  // namespace headrace::onnx
