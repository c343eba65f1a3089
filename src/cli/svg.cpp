#include "cli/svg.h"

#include <algorithm>
#include <cmath>

namespace headrace::cli {
namespace {

constexpr double kBoxWidth = 190, kBoxHeight = 46, kGapX = 24, kGapY = 44, kMargin = 24, kLegendHeight = 40;

std::string escaped(std::string_view text) {
    std::string out;
    for (char c : text) {
        if (c == '&')
            out += "&amp;";
        else if (c == '<')
            out += "&lt;";
        else if (c == '>')
            out += "&gt;";
        else if (c == '"')
            out += "&quot;";
        else if (static_cast<unsigned char>(c) >= 0x20)  // XML has no other control characters
            out += c;
    }
    return out;
}

/// At most `most` characters; never cuts a UTF-8 sequence.
std::string shortened(const std::string& text, std::size_t most) {
    if (text.size() <= most) return text;
    std::size_t end = most - 1;
    while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
    return text.substr(0, end) + "\u2026";
}

std::string_view color_of(std::string_view implementation) {
    if (implementation == "ggml") return "#d6e8ff";
    if (implementation == "reference") return "#ffe3cc";
    return "#d5f2d5";
}

/// What is drawn: inputs and states, then nodes, then outputs.
struct Box {
    std::string title, detail;
    std::string_view color;
    std::vector<std::size_t> parents;
    std::size_t layer = 0;
    double x = 0, y = 0;
};

class Drawing {
public:
    Drawing(const Graph& graph, const std::vector<NodeStats>& nodes)
        : graph_(graph), box_of_(graph.values.size(), kNone) {
        for (ValueId id : graph.inputs) add_leaf(id, "input");
        for (ValueId id : graph.states) add_leaf(id, "state");
        // A graph that runs in stages has the statistics of its stages, not of its nodes.
        const bool has_stats = nodes.size() == graph.nodes.size();
        for (std::size_t i = 0; i < graph.nodes.size(); ++i)
            add_node(graph.nodes[i], has_stats ? nodes[i] : NodeStats{.implementation = "in stages"});
        for (const auto& [name, id] : graph.outputs) {
            boxes_.push_back(
                {.title = name, .detail = "output " + graph.value(id).type.str(), .color = "#eeeeee"});
            connect(id);
        }
        place();
    }

    std::string str() const {
        std::string svg = fmt::format(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0:.0f} {1:.0f}\" width=\"{0:.0f}\" "
            "height=\"{1:.0f}\" font-family=\"sans-serif\" font-size=\"12\">\n",
            width_, height_);
        svg += "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n";
        svg += legend();
        for (const Box& box : boxes_)
            for (std::size_t parent : box.parents) svg += line(boxes_[parent], box);
        for (const Box& box : boxes_) svg += rectangle(box);
        return svg + "</svg>\n";
    }

private:
    static constexpr std::size_t kNone = SIZE_MAX;

    void add_leaf(ValueId id, std::string_view kind) {
        const Value& v = graph_.value(id);
        box_of_[static_cast<std::size_t>(id)] = boxes_.size();
        boxes_.push_back(
            {.title = v.name, .detail = fmt::format("{} {}", kind, v.type.str()), .color = "#eeeeee"});
    }

    void add_node(const Node& node, const NodeStats& stats) {
        std::string types;
        for (ValueId id : node.outputs)
            types.append(types.empty() ? "" : ", ").append(graph_.value(id).type.str());
        boxes_.push_back({.title = node.title(),
                          .detail = fmt::format("{} \u2192 {}", stats.implementation, types),
                          .color = color_of(stats.implementation)});
        for (ValueId id : node.inputs)
            if (id != kNoValue) connect(id);
        for (ValueId id : node.outputs) box_of_[static_cast<std::size_t>(id)] = boxes_.size() - 1;
    }

    /// Constants have no box of their own.
    void connect(ValueId id) {
        const std::size_t parent = box_of_[static_cast<std::size_t>(id)];
        if (parent == kNone) return;
        Box& box = boxes_.back();
        box.layer = std::max(box.layer, boxes_[parent].layer + 1);
        box.parents.push_back(parent);
    }

    /// A layer for each distance from the inputs; within one, boxes stand below their parents' middle.
    void place() {
        std::vector<std::vector<std::size_t>> layers;
        for (std::size_t i = 0; i < boxes_.size(); ++i) {
            layers.resize(std::max(layers.size(), boxes_[i].layer + 1));
            layers[boxes_[i].layer].push_back(i);
        }
        std::size_t widest = 1;
        for (const auto& layer : layers) widest = std::max(widest, layer.size());
        width_ = 2 * kMargin + static_cast<double>(widest) * (kBoxWidth + kGapX) - kGapX;
        height_ =
            kLegendHeight + 2 * kMargin + static_cast<double>(layers.size()) * (kBoxHeight + kGapY) - kGapY;
        for (std::size_t l = 0; l < layers.size(); ++l) place_layer(layers[l], l);
    }

    void place_layer(std::vector<std::size_t>& layer, std::size_t number) {
        std::vector<double> middle(boxes_.size());
        for (std::size_t i : layer) {
            double sum = 0;
            for (std::size_t parent : boxes_[i].parents) sum += boxes_[parent].x;
            if (!boxes_[i].parents.empty()) middle[i] = sum / static_cast<double>(boxes_[i].parents.size());
        }
        std::stable_sort(layer.begin(), layer.end(),
                         [&](std::size_t a, std::size_t b) { return middle[a] < middle[b]; });
        const double taken = static_cast<double>(layer.size()) * (kBoxWidth + kGapX) - kGapX;
        double x = (width_ - taken) / 2;
        for (std::size_t i : layer) {
            boxes_[i].x = x;
            boxes_[i].y = kLegendHeight + kMargin + static_cast<double>(number) * (kBoxHeight + kGapY);
            x += kBoxWidth + kGapX;
        }
    }

    static std::string line(const Box& from, const Box& to) {
        const double x1 = from.x + kBoxWidth / 2, y1 = from.y + kBoxHeight, x2 = to.x + kBoxWidth / 2;
        const double bend = (to.y - y1) / 2;
        return fmt::format(
            "<path d=\"M{:.1f},{:.1f} C{:.1f},{:.1f} {:.1f},{:.1f} {:.1f},{:.1f}\" fill=\"none\" "
            "stroke=\"#888888\"/>\n",
            x1, y1, x1, y1 + bend, x2, to.y - bend, x2, to.y);
    }

    static std::string rectangle(const Box& box) {
        return fmt::format(
            "<g><title>{0}\n{1}</title><rect x=\"{2:.1f}\" y=\"{3:.1f}\" width=\"{4}\" height=\"{5}\" "
            "rx=\"6\" "
            "fill=\"{6}\" stroke=\"#666666\"/><text x=\"{7:.1f}\" y=\"{8:.1f}\">{9}</text>"
            "<text x=\"{7:.1f}\" y=\"{10:.1f}\" fill=\"#555555\" font-size=\"10\">{11}</text></g>\n",
            escaped(box.title), escaped(box.detail), box.x, box.y, kBoxWidth, kBoxHeight, box.color,
            box.x + 8, box.y + 19, escaped(shortened(box.title, 27)), box.y + 36,
            escaped(shortened(box.detail, 36)));
    }

    static std::string legend() {
        std::string svg;
        double x = kMargin;
        for (const auto& [name, text] : {std::pair("ggml", "ggml's own ops"),
                                         {"kernel", "kernel of Headrace"},
                                         {"reference", "reference kernel"}}) {
            svg += fmt::format(
                "<rect x=\"{:.0f}\" y=\"14\" width=\"14\" height=\"14\" fill=\"{}\" stroke=\"#666666\"/>"
                "<text x=\"{:.0f}\" y=\"26\">{}</text>\n",
                x, color_of(name), x + 20, text);
            x += 160;
        }
        return svg;
    }

    const Graph& graph_;
    std::vector<std::size_t> box_of_;
    std::vector<Box> boxes_;
    double width_ = 0, height_ = 0;
};

}  // namespace

std::string to_svg(const Graph& graph, const std::vector<NodeStats>& nodes) {
    return Drawing(graph, nodes).str();
}

}  // namespace headrace::cli
