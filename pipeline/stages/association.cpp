#include "pipeline/stages/association.h"

#include <algorithm>
#include <limits>

namespace takt::pipeline {

Assignment::Assignment(std::size_t max_rows, std::size_t max_columns)
    : max_columns_(max_columns),
      pairs_(max_rows * max_columns),
      pair_count_(max_rows),
      row_potential_(max_rows),
      column_potential_(max_columns),
      row_of_column_(max_columns),
      column_of_row_(max_rows),
      distance_(max_columns),
      previous_column_(max_columns),
      reached_(max_columns),
      settled_(max_columns) {
  frontier_.reserve(max_columns);
}

void Assignment::reset(std::size_t rows, std::size_t columns) {
  rows_ = rows;
  columns_ = columns;
  std::fill_n(pair_count_.begin(), rows, 0);
}

void Assignment::allow(std::size_t row, std::size_t column, double cost) {
  pairs_[row * max_columns_ + pair_count_[row]++] = {column, cost};
}

// Finds the cheapest alternating path from `row` to a free column or to a row that gives its column up (Dijkstra over
// reduced costs) and turns it over. "Unassigned" needs no columns of its own: an always free one is never further away
// than one that a row holds already.
void Assignment::augment(std::size_t row, double unassigned) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  frontier_.clear();
  std::size_t from = row;
  int from_column = -1;  // the column that `from` holds, -1 for the new row
  double base = 0;       // distance of `from`
  double give_up = kInfinity;
  int give_up_column = -1;  // held by the row that would stay without
  double length = 0;
  int last = -1;  // column at the end of the path, -1: a row gives up
  for (;;) {
    const double reduced = base - row_potential_[from];
    if (reduced + unassigned < give_up) {
      give_up = reduced + unassigned;
      give_up_column = from_column;
    }
    const Pair* pairs = &pairs_[from * max_columns_];
    for (std::size_t k = 0; k < pair_count_[from]; ++k) {
      const std::size_t c = pairs[k].column;
      if (settled_[c] != 0) continue;
      const double distance = reduced + pairs[k].cost - column_potential_[c];
      if (reached_[c] != 0 && distance >= distance_[c]) continue;
      if (reached_[c] == 0) frontier_.push_back(c);
      reached_[c] = 1;
      distance_[c] = distance;
      previous_column_[c] = from_column;
    }
    double nearest = kInfinity;
    std::size_t next = 0;
    for (const std::size_t c : frontier_) {
      if (settled_[c] != 0) continue;
      if (distance_[c] < nearest || (distance_[c] == nearest && c < next)) {
        nearest = distance_[c];
        next = c;
      }
    }
    if (give_up < nearest) {
      length = give_up;
      break;
    }
    settled_[next] = 1;
    base = nearest;
    from_column = static_cast<int>(next);
    if (row_of_column_[next] == kUnassigned) {
      length = nearest;
      last = from_column;
      break;
    }
    from = static_cast<std::size_t>(row_of_column_[next]);
  }

  row_potential_[row] += length;
  for (const std::size_t c : frontier_) {
    if (settled_[c] != 0 && static_cast<int>(c) != last) {
      row_potential_[static_cast<std::size_t>(row_of_column_[c])] += length - distance_[c];
      column_potential_[c] -= length - distance_[c];
    }
    reached_[c] = settled_[c] = 0;
  }
  for (int c = last >= 0 ? last : give_up_column; c >= 0;) {
    const int before = previous_column_[static_cast<std::size_t>(c)];
    row_of_column_[static_cast<std::size_t>(c)] =
        before >= 0 ? row_of_column_[static_cast<std::size_t>(before)] : static_cast<int>(row);
    c = before;
  }
}

std::span<const int> Assignment::solve(double unassigned) {
  std::fill_n(row_potential_.begin(), rows_, 0.0);
  std::fill_n(column_potential_.begin(), columns_, 0.0);
  std::fill_n(row_of_column_.begin(), columns_, kUnassigned);
  for (std::size_t r = 0; r < rows_; ++r) augment(r, unassigned);
  std::fill_n(column_of_row_.begin(), rows_, kUnassigned);
  for (std::size_t c = 0; c < columns_; ++c) {
    const int row = row_of_column_[c];
    if (row != kUnassigned) column_of_row_[static_cast<std::size_t>(row)] = static_cast<int>(c);
  }
  return {column_of_row_.data(), rows_};
}

}  // namespace takt::pipeline
