#include "pipeline/stages/association.h"

#include <algorithm>
#include <limits>

namespace takt::pipeline {

Assignment::Assignment(std::size_t max_rows, std::size_t max_columns)
    : max_columns_(max_columns),
      cost_(max_rows * max_columns),
      row_potential_(max_rows),
      column_potential_(max_rows + max_columns),
      distance_(max_rows + max_columns),
      row_of_column_(max_rows + max_columns),
      previous_column_(max_rows + max_columns),
      column_of_row_(max_rows),
      visited_(max_rows + max_columns) {}

void Assignment::reset(std::size_t rows, std::size_t columns) {
  rows_ = rows;
  columns_ = columns;
  for (std::size_t r = 0; r < rows; ++r) {
    std::fill_n(cost_.begin() + static_cast<std::ptrdiff_t>(r * max_columns_), columns, kForbidden);
  }
}

// Finds the cheapest alternating path from `row` to a free column (Dijkstra over reduced costs) and turns it over.
void Assignment::augment(std::size_t row) {
  const std::size_t all = columns_ + rows_;
  std::fill_n(distance_.begin(), all, std::numeric_limits<double>::infinity());
  std::fill_n(visited_.begin(), all, 0);
  std::fill_n(previous_column_.begin(), all, -1);
  std::size_t from = row;
  int from_column = -1;  // the column that `from` holds, -1 for the new row
  for (;;) {
    double nearest = std::numeric_limits<double>::infinity();
    std::size_t next = 0;
    for (std::size_t c = 0; c < all; ++c) {
      if (visited_[c]) continue;
      const double reduced = cost(from, c) - row_potential_[from] - column_potential_[c];
      if (reduced < distance_[c]) {
        distance_[c] = reduced;
        previous_column_[c] = from_column;
      }
      if (distance_[c] < nearest) {
        nearest = distance_[c];
        next = c;
      }
    }
    // Potentials move by `nearest`, which keeps reduced costs of the tree at zero.
    row_potential_[row] += nearest;
    for (std::size_t c = 0; c < all; ++c) {
      if (visited_[c]) {
        row_potential_[static_cast<std::size_t>(row_of_column_[c])] += nearest;
        column_potential_[c] -= nearest;
      } else {
        distance_[c] -= nearest;
      }
    }
    visited_[next] = 1;
    from_column = static_cast<int>(next);
    if (row_of_column_[next] == kUnassigned) break;
    from = static_cast<std::size_t>(row_of_column_[next]);
  }
  int c = from_column;
  while (c >= 0) {
    const int before = previous_column_[static_cast<std::size_t>(c)];
    row_of_column_[static_cast<std::size_t>(c)] =
        before >= 0 ? row_of_column_[static_cast<std::size_t>(before)] : static_cast<int>(row);
    c = before;
  }
}

std::span<const int> Assignment::solve(double unassigned) {
  unassigned_ = unassigned;
  std::fill_n(row_potential_.begin(), rows_, 0.0);
  std::fill_n(column_potential_.begin(), columns_ + rows_, 0.0);
  std::fill_n(row_of_column_.begin(), columns_ + rows_, kUnassigned);
  for (std::size_t r = 0; r < rows_; ++r) augment(r);
  std::fill_n(column_of_row_.begin(), rows_, kUnassigned);
  for (std::size_t c = 0; c < columns_; ++c) {
    const int row = row_of_column_[c];
    if (row != kUnassigned) column_of_row_[static_cast<std::size_t>(row)] = static_cast<int>(c);
  }
  return {column_of_row_.data(), rows_};
}

}  // namespace takt::pipeline
