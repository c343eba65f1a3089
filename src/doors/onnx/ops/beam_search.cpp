#include <limits>

#include "doors/onnx/ops/encoder_decoder_steps.h"
#include "doors/onnx/ops/gpt_steps.h"
#include "doors/onnx/reading/numbers.h"

/// BeamSearch: several continuations of each prompt, of which the likeliest go on, and those that have ended.
namespace headrace::onnx {
namespace {

constexpr double kNone = -std::numeric_limits<double>::infinity();  ///< the score of no sequence
constexpr double kOtherBeams = -1e9;                                ///< at first all beams are alike

/// What does not change from a token to the next.
struct Beams {
    Dim batch;
    Dim count;  ///< of each prompt
    Dim limit;  ///< tokens of a sequence
    std::int64_t pad;
    bool is_early;           ///< a prompt is done once as many sequences have ended
    Operand length_penalty;  ///< a scalar, f32

    Dim rows() const { return batch * count; }
};

/// Sequences that have ended, the best first: scores [batch, count] and tokens [batch, count, limit].
struct Ended {
    Operand scores, tokens;
};

/// Indices [batch, n] into the `extent` elements of each prompt, as indices into those of all.
Operand in_all(OpWriter& g, const Beams& beams, const Operand& indices, const Dim& extent) {
    const Operand first = g.times(g.positions(beams.batch), Item(extent));
    return g.op("add", {indices, g.reshape(first, {beams.batch, 1})});
}

/// Elements [batch, n] of [batch, m] at places [batch, n].
Operand at_places(OpWriter& g, const Operand& x, const Operand& places) {
    return g.op("gather_elements", {x, places}, {{"axis", 1}});
}

/// The largest elements of [batch, n], as many as `count`, and their places.
Results largest_of(OpWriter& g, const Operand& x, const Dim& count) {
    NamedAttrs order{{"axis", 1}, {"descending", true}};
    if (!count.is_symbolic()) order.emplace_back("count", count.size());
    Results found = g.ops("sort", {x}, order);
    if (count.is_symbolic())
        for (Operand& y : found) y = g.cut(y, 1, 0, count);
    return found;
}

/// Scores by the sequences' length.
Operand by_length(OpWriter& g, const Beams& beams, const Operand& scores, const Dim& length) {
    const Operand number = g.at_run_time(Item(length), ElementType::f32);
    return g.op("div", {scores, g.op("pow", {number, beams.length_penalty})});
}

/// The best ones of those and of others, rows [batch, count] of sequences [rows, length], where `is_one`.
Ended with_others(OpWriter& g, const Beams& beams, const Ended& ended, const Operand& scores,
                  const Operand& is_one, const Operand& sequences, const Operand& rows) {
    const Operand found = g.op("where", {is_one, scores, known(kNone, ElementType::f32)});
    const Operand tokens = filled_up(g, g.op("gather", {sequences, rows}, {{"axis", 0}}), 2, beams.limit,
                                     static_cast<double>(beams.pad));
    const Results best = largest_of(g, g.concat({ended.scores, found}, 1), beams.count);
    const Operand all = g.reshape(g.concat({ended.tokens, tokens}, 1), {beams.rows() * Dim(2), beams.limit});
    return {best.at(0),
            g.op("gather", {all, in_all(g, beams, best.at(1), Dim(2) * beams.count)}, {{"axis", 0}})};
}

/// The likeliest tokens behind each prompt's beams, twice as many as beams, best first.
struct Candidates {
    Operand scores, beams, tokens;  ///< [batch, 2 count], f32, i64 and i64
};

Candidates candidates_of(OpWriter& g, const Beams& beams, const Operand& scores) {
    const Dim vocabulary = g.shape(scores).at(1);
    const Operand lines = g.reshape(scores, {beams.batch, vocabulary * beams.count});
    const Results best = largest_of(g, lines, Dim(2) * beams.count);
    const Operand width = g.at_run_time(Item(vocabulary), ElementType::i64);
    return {best.at(0), g.op("div", {best.at(1), width}), g.op("remainder", {best.at(1), width})};
}

/// The places of the first tokens that do not end their sequence, as many as beams: [batch, count].
Operand going_on(OpWriter& g, const Beams& beams, const Operand& ends) {
    const Dim n = Dim(2) * beams.count;
    const Operand late = g.times(g.cast(ends, ElementType::i64), Item(n));
    return largest_of(g, g.op("neg", {g.op("add", {late, g.positions(n)})}), beams.count).at(1);
}

/// What the search carries besides the decoder's part.
struct Search {
    Operand sequences;    ///< [rows, length]
    Operand beam_scores;  ///< [batch, count]
    Operand done;         ///< [batch]
    Ended ended;

    std::vector<Operand> values() const { return {sequences, beam_scores, done, ended.scores, ended.tokens}; }
    static Search of(OpWriter& g, const Beams& beams, const std::vector<Operand>& x) {
        return {x.at(0),
                x.at(1),
                x.at(2),
                {x.at(3), g.reshape(x.at(4), {beams.batch, beams.count, beams.limit})}};
    }
};

Search first_search(OpWriter& g, const Beams& beams, const Operand& prompts) {
    const Operand is_first = g.op("equal", {g.positions(beams.count), known(0, ElementType::i64)});
    const Operand scores =
        g.op("where", {is_first, known(0, ElementType::f32), known(kOtherBeams, ElementType::f32)});
    const Shape each{beams.batch, beams.count};
    return {
        prompts,
        g.expand(g.reshape(scores, {1, beams.count}), each),
        g.filled(0, ElementType::boolean, {beams.batch}),
        {g.filled(kNone, ElementType::f32, each), g.filled(static_cast<double>(beams.pad), ElementType::i32,
                                                           {beams.batch, beams.count, beams.limit})}};
}

/// Whether each prompt's sequences that have ended are as good as any that go on could become.
Operand is_done(OpWriter& g, const Beams& beams, const Search& now, const Operand& best) {
    const Operand worst = g.reshape(g.cut(now.ended.scores, 1, beams.count - Dim(1), 1), {beams.batch});
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
    const Dim n = beams.count, rows = beams.rows();
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

/// How many sequences an input of one element tells, at least 1 and at most as many as `most`.
Dim count_at(OpWriter& g, const Node& node, std::size_t index, std::string_view name,
             std::optional<Dim> most = std::nullopt) {
    Operand told = g.reshape(g.cast(node.operand(index), ElementType::i64), {1});
    const bool is_number = told->has_numbers() && (!most || !most->is_symbolic());
    if (!is_number) told = checked_numbers(g, told, name, 1, most);
    const Dim count = extents_of(g, told).at(0);
    if (!is_number) return count;
    invalid_if(count.size() < 1, "{} (input {}) is {}; at least 1 is right", name, index, count.size());
    invalid_if(most && count.size() > most->size(), "{} (input {}) is {}; at most num_beams, {}, is right",
               name, index, count.size(), most->size());
    OpWriter::check_extent(count.size());
    return count;
}

/// All but the batch and the limit.
Beams beams_of(OpWriter& g, const Node& node) {
    const Dim count = count_at(g, node, 3, "num_beams");
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

/// How the model's sequences are continued, by its type.
std::unique_ptr<const DecoderSteps> steps_of(OpWriter& g, const Node& node, const Dim& count) {
    const Operand begun = node.optional(10);
    const std::int64_t type = node.integer("model_type", node.op == "WhisperBeamSearch" ? 2 : 0);
    refuse_if(
        type < 0 || type > 2,
        "model_type is {}; 0, 1 and 2 are read: decoders alone like GPT-2, and those behind an encoder of "
        "texts, like T5, or sounds, like Whisper",
        type);
    refuse_if(type != 2 && begun,
              "it has decoder_input_ids, which only models of sounds have (model_type 2)");
    if (type == 0) return std::make_unique<GptSteps>(g, node, node.optional(9), count);
    const auto given = type == 1 ? text_given(g, node, node.optional(9)) : sound_given(g, node, begun);
    return std::make_unique<EncoderDecoderSteps>(g, node, given, count);
}

/// What WhisperBeamSearch has besides, as far as it is read: by what all tokens' logarithms are divided, or
/// null.
Operand temperature_of(OpWriter& g, const Node& node) {
    const std::int64_t processor = node.optional(11) ? node.integer_at(11, "logits_processor") : 0;
    refuse_if(processor != 0, "logits_processor (input 11) is {}: the rules of time stamps are not read",
              processor);
    refuse_if(node.wants(3) || node.wants(4) || node.optional(12),
              "cross_qk (output 3) or non_speech_probs (output 4) is wanted");
    const Operand given = node.optional(14);
    return given ? g.reshape(g.cast(given, ElementType::f32), {}) : nullptr;
}

Results beam_search(OpWriter& g, const Node& node) {
    Beams beams = beams_of(g, node);
    const Dim wanted = count_at(g, node, 4, "num_return_sequences", beams.count);
    const auto decoder = steps_of(g, node, beams.count);
    const TokenRules rules = TokenRules::of(g, node, 2, 6);
    const Dim prompt = g.shape(decoder->prompts()).at(1);
    const LengthLimit limit(g, node, prompt);
    beams.batch = g.shape(node.x()).at(0);
    beams.limit = limit.length;
    const bool shows_scores = node.wants(2);
    const Operand temperature = temperature_of(g, node);
    const auto choose = [&](OpWriter& body, const Operand& number, const Operand& logits,
                            const std::vector<Operand>& search) {
        const Search now = Search::of(body, beams, search);
        const Operand total = body.op("reduce_log_sum_exp", {logits},
                                      {{"axes", std::vector<std::int64_t>{1}}, {"keep_dimensions", true}});
        const Operand likely = body.op("sub", {logits, total});
        Operand scores = rules.ruled(body, likely, now.sequences, number);
        if (temperature) scores = body.op("div", {scores, temperature});
        scores = body.op("add", {scores, body.reshape(now.beam_scores, {beams.rows(), 1})});
        const Chosen chosen = chosen_beams(body, beams, rules, now, candidates_of(body, beams, scores));
        std::vector<Operand> shown;
        if (shows_scores)
            shown.push_back(body.reshape(scores, {beams.batch, beams.count, body.shape(scores).at(1)}));
        return Choice{body.op("logical_not", {all_are(body, chosen.search.done)}), chosen.search.values(),
                      chosen.tokens, beams.count.is(1) ? nullptr : chosen.rows, shown};
    };
    const std::vector<Operand> last =
        generated(g, *decoder, limit.left, first_search(g, beams, decoder->prompts()).values(), choose);
    const Ended best = all_ended(g, beams, Search::of(g, beams, last));
    Results results{g.cut(best.tokens, 1, 0, wanted), g.cut(best.scores, 1, 0, wanted)};
    if (shows_scores) results.push_back(filled_up(g, last.back(), 0, limit.length - prompt, 0));
    return results;
}

}  // namespace

std::span<const Operator> beam_search_operators() {
    static const Operator kOperators[] = {
        {"BeamSearch", 1, beam_search,
         "5..12 -> 1..3, decoder graph, decoder_start_token_id int, early_stopping int, encoder graph, "
         "eos_token_id int, init_decoder graph, model_type int, no_repeat_ngram_size int, pad_token_id int, "
         "vocab_size int",
         kMicrosoft},
        {"WhisperBeamSearch", 1, beam_search,
         "5..15 -> 1..5, beginning_timestamp_token_id int, decoder graph, decoder_output_cross_qk int, "
         "decoder_start_token_id int, early_stopping int, encoder graph, eos_token_id int, init_decoder "
         "graph, "
         "model_type int, no_repeat_ngram_size int, no_speech_token_id int, no_timestamps_token_id int, "
         "pad_token_id int, start_of_lm_token_id int, transcribe_token_id int, translate_token_id int, "
         "vocab_size int",
         kMicrosoft}};
    return kOperators;
}

}  // namespace headrace::onnx
