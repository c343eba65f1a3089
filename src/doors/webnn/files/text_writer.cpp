#include "doors/webnn/files/text_writer.h"

#include <unordered_set>

#include "base/utf8.h"
#include "doors/webnn/files/text_lexer.h"
#include "doors/webnn/state.h"

namespace headrace::webnn {
namespace {

class TextWriter {
public:
    explicit TextWriter(const GraphSource& source) : source_(source) {}

    Result<std::string> write() {
        out_ = "webnn_graph ";
        append_quoted(out_, source_.name, Syntax::text);
        out_ += source_.quantized ? " v2 @quantized {\n" : " v2 {\n";
        HR_TRY(inputs());
        HR_TRY(constants());
        HR_TRY(nodes());
        HR_TRY(outputs());
        out_ += "}\n";
        if (const auto at = find_invalid_utf8(out_))
            return invalid("{}: a name is not UTF-8, which graph files need", line_and_column(out_, *at));
        return std::move(out_);
    }

private:
    static Status check_name(std::string_view what, const std::string& name) {
        if (is_identifier(name)) return success();
        return unsupported(
            "{} '{}': names in .webnn files are letters, digits, '_', '.', '/' and '$', not starting with a "
            "digit or "
            "'.'; save the graph as .json, which takes any name",
            what, name);
    }

    void append_type(const MLOperandDescriptor& type) {
        fmt::format_to(std::back_inserter(out_), ": {}[", name_of(type.dataType));
        for (std::size_t i = 0; i < type.shape.size(); ++i) {
            if (i) out_ += ", ";
            const MLDimension& d = type.shape[i];
            if (!d.is_open()) {
                fmt::format_to(std::back_inserter(out_), "{}", *d.number());
                continue;
            }
            out_ += "dyn(";
            append_quoted(out_, d.str(), Syntax::text);
            fmt::format_to(std::back_inserter(out_), ", {})", std::min(d.most(), kMostExtent));
        }
        out_ += ']';
    }

    Status inputs() {
        out_ += "  inputs {\n";
        for (const SourceInput& input : source_.inputs) {
            HR_TRY(check_name("input", input.name));
            names_.insert(input.name);
            out_.append("    ").append(input.name);
            append_type(input.type);
            out_ += ";\n";
        }
        out_ += "  }\n";
        return success();
    }

    Status constants() {
        if (source_.constants.empty()) return success();
        out_ += "  consts {\n";
        for (const SourceConstant& constant : source_.constants) {
            HR_TRY(check_name("constant", constant.name));
            names_.insert(constant.name);
            out_.append("    ").append(constant.name);
            append_type(constant.type);
            if (constant.kind == SourceConstant::Kind::scalar) {
                out_ += " @scalar(";
                append_value(out_, constant.value, Syntax::text);
            } else {
                out_ += " @weights(";
                append_quoted(out_, constant.key, Syntax::text);
            }
            out_ += ");\n";
        }
        out_ += "  }\n";
        return success();
    }

    void call(const SourceNode& node) {
        out_.append(" = ").append(node.op).append("(");
        bool first = true;
        const auto separate = [&] {
            if (!first) out_ += ", ";
            first = false;
        };
        for (const FileValue& argument : node.arguments) {
            separate();
            out_ += std::get<std::string>(argument.data);
        }
        for (const SourceOption& option : node.options) {
            separate();
            out_.append(option.name).append("=");
            append_value(out_, option.value, Syntax::text);
        }
        out_ += ");\n";
    }

    Status nodes() {
        out_ += "  nodes {\n";
        for (const SourceNode& node : source_.nodes) {
            for (const std::string& result : node.results) {
                HR_TRY(check_name("output", result));
                names_.insert(result);
            }
            const std::string results = fmt::format("{}", fmt::join(node.results, ", "));
            out_ += node.takes_all ? fmt::format("    [{}]", results) : fmt::format("    {}", results);
            call(node);
        }
        // An output has the name of its value here; another name makes another value.
        for (const SourceOutput& output : source_.outputs) {
            if (output.name == output.value) continue;
            HR_TRY(check_name("output", output.name));
            if (!names_.insert(output.name).second)
                return unsupported(
                    "output '{}': another value has that name, and .webnn files tell them apart by name "
                    "only; save "
                    "the graph as .json",
                    output.name);
            fmt::format_to(std::back_inserter(out_), "    {} = identity({});\n", output.name, output.value);
        }
        out_ += "  }\n";
        return success();
    }

    Status outputs() {
        out_ += "  outputs {";
        for (const SourceOutput& output : source_.outputs) out_.append(" ").append(output.name).append(";");
        out_ += " }\n";
        return success();
    }

    const GraphSource& source_;
    std::string out_;
    std::unordered_set<std::string> names_;
};

}  // namespace

Result<std::string> write_text(const GraphSource& source) { return TextWriter(source).write(); }

}  // namespace headrace::webnn
