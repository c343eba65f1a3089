#pragma once
#include <string>
#include <vector>

namespace headrace::cli {

/// Rows under headings, each column as wide as its longest cell.
class Table {
public:
    struct Column {
        std::string heading;
        bool is_number = false;  ///< at the right of its column
    };

    explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

    /// One cell a column, UTF-8.
    void add(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
    bool empty() const { return rows_.empty(); }
    /// Each row is a line; indent: spaces before it.
    std::string text(std::size_t indent = 0) const;

private:
    std::vector<Column> columns_;
    std::vector<std::vector<std::string>> rows_;
};

}  // namespace headrace::cli
