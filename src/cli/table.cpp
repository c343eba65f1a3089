#include "cli/table.h"

#include <algorithm>

namespace headrace::cli {
namespace {

/// Columns of a terminal: code points, as nothing here is wider.
std::size_t width_of(const std::string& text) {
    return static_cast<std::size_t>(
        std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

}  // namespace

std::string Table::text(std::size_t indent) const {
    std::vector<std::size_t> widths;
    for (std::size_t i = 0; i < columns_.size(); ++i) {
        widths.push_back(width_of(columns_[i].heading));
        for (const auto& row : rows_) widths[i] = std::max(widths[i], width_of(row[i]));
    }
    std::string all;
    const auto add_line = [&](const auto& cell_of) {
        std::string line(indent, ' ');
        for (std::size_t i = 0; i < columns_.size(); ++i) {
            const std::string& cell = cell_of(i);
            const std::string space(widths[i] - width_of(cell), ' ');
            if (i) line += "  ";
            line += columns_[i].is_number ? space + cell : cell + space;
        }
        line.erase(line.find_last_not_of(' ') + 1);
        all += line + '\n';
    };
    add_line([&](std::size_t i) -> const std::string& { return columns_[i].heading; });
    for (const auto& row : rows_) add_line([&](std::size_t i) -> const std::string& { return row[i]; });
    return all;
}

}  // namespace headrace::cli
