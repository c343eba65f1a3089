#include <cstdio>
#include <memory>

#include "cli/commands.h"
#include "cli/implementation_status.h"
#include "cli/report.h"
#include "headrace/headrace.h"
#include "ops/catalog.h"

namespace headrace::cli {
namespace {

struct OpsOptions {
    bool webnn = false;
    JsonOption json;
};

nlohmann::json json_of(const OpDef& op) {
    nlohmann::json operands = nlohmann::json::array(), attributes = nlohmann::json::array(),
                   implementations = {"reference"};
    for (std::size_t i = 0; i < op.operands.size(); ++i) {
        const OperandRule& rule = op.operands[i];
        operands.push_back({{"name", rule.name},
                            {"optional", rule.optional},
                            {"repeats", op.variadic && i + 1 == op.operands.size()},
                            {"min_rank", rule.min_rank},
                            {"max_rank", rule.max_rank},
                            {"dtypes", rule.dtypes.str()}});
    }
    for (const Field& field : op.fields)
        attributes.push_back({{"name", field.name},
                              {"kind", name_of(field.kind)},
                              {"required", field.required},
                              {"choices", field.choices},
                              {"summary", field.doc}});
    if (op.lower) implementations.push_back("ggml");
    for (const KernelDef& kernel : op.kernels) implementations.push_back(kernel.name);
    return {{"name", op.name},
            {"summary", op.summary},
            {"operands", std::move(operands)},
            {"attributes", std::move(attributes)},
            {"implementations", std::move(implementations)}};
}

Status list_ops(const OpsOptions& options) {
    nlohmann::json catalog = nlohmann::json::array();
    for (const OpDef* op : all_ops()) catalog.push_back(json_of(*op));
    return report(options.webnn ? implementation_status() : op_reference(), catalog, options.json);
}

}  // namespace

void add_ops(CLI::App& app, Status& status) {
    auto* command = app.add_subcommand("ops", "describe every op, as Markdown")->group(kReference);
    auto options = std::make_shared<OpsOptions>();
    command->add_flag("--webnn", options->webnn,
                      "list WebNN's operators by data type and implementation instead");
    add_json_option(*command, options->json);
    command->footer(
        "Examples:\n"
        "    headrace ops\n"
        "    headrace ops --webnn > implementation-status.md");
    command->final_callback([=, &status] { run_command(status, [&] { return list_ops(*options); }); });
}

}  // namespace headrace::cli
