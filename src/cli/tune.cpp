#include "cli/tune.h"

#include "cli/prepared.h"
#include "cli/progress.h"
#include "cli/table.h"
#include "engine/tune.h"

namespace headrace::cli {
namespace {

std::string text_of(const TuneReport& found) {
    std::string text;
    if (!found.changed.empty()) {
        Table table(
            {{"us before", true}, {"after", true}, {"nodes", true}, {"by rule"}, {"by time"}, {"node"}});
        for (const TunedKind& kind : found.changed)
            table.add({fmt::format("{:.1f}", kind.before_us), fmt::format("{:.1f}", kind.after_us),
                       std::to_string(kind.nodes), kind.before, kind.after, kind.title});
        text = table.text();
    }
    text += fmt::format("kinds of nodes measured: {}, faster otherwise: {}\n", found.measured,
                        found.changed.size());
    if (!found.changed.empty())
        text += fmt::format(
            "whole runs: {:.4f} ms by rule, {:.4f} by time, which was faster in {} of {} rounds\n",
            found.before_us / 1e3, found.after_us / 1e3, found.faster_rounds, found.rounds);
    return text + (found.file.empty() ? "not kept: whole runs are not faster\n"
                                      : fmt::format("kept in {}\n", found.file));
}

nlohmann::json json_of(const TuneReport& found) {
    nlohmann::json changed = nlohmann::json::array();
    for (const TunedKind& kind : found.changed)
        changed.push_back({{"title", kind.title},
                           {"nodes", kind.nodes},
                           {"before", kind.before},
                           {"after", kind.after},
                           {"before_us", kind.before_us},
                           {"after_us", kind.after_us}});
    return {{"changed", std::move(changed)},
            {"measured", found.measured},
            {"before_us", found.before_us},
            {"after_us", found.after_us},
            {"rounds", found.rounds},
            {"faster_rounds", found.faster_rounds},
            {"file", found.file}};
}

}  // namespace

Status tune_graph(const BenchOptions& options) {
    HR_ASSIGN(auto prepared, Prepared::make(options));
    HR_ASSIGN(const Graph graph, read_graph_or_model(options));
    std::vector<OutputView> out;
    prepared->run();
    for (Array& a : prepared->outputs()) out.push_back({a.bytes.data(), a.bytes.size()});
    TuneReport found;
    {
        Progress progress("timing ways to run each node");
        found = tune(graph, options.compile, prepared->input_views(), out,
                     [&](double share) { progress.show(share); });
    }
    return report(text_of(found), json_of(found), options.json);
}

}  // namespace headrace::cli
