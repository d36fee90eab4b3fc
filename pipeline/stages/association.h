// Which object belongs to which track: optimal one-to-one assignment over fixed capacities.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace takt::pipeline {

// Shortest augmenting paths with row and column potentials (Kuhn 1955; Jonker and Volgenant 1987) over the pairs that
// are allowed, which are few where gates are. Allocates at construction only. Deterministic: rows enter in ascending
// order, of equally near columns the lowest is taken first, and a column before none; callers order rows by track id
// and columns by object index. One thread at a time.
class Assignment {
 public:
  Assignment(std::size_t max_rows, std::size_t max_columns);

  static constexpr int kUnassigned = -1;

  // Starts a problem without any allowed pair.
  void reset(std::size_t rows, std::size_t columns);
  // Allows a pair, once. Costs are finite; they may be negative.
  void allow(std::size_t row, std::size_t column, double cost);
  // Minimises the sum of the costs of the assigned pairs plus `unassigned` for every row without a column. Returns the
  // column of each row, or kUnassigned; valid until the next call.
  std::span<const int> solve(double unassigned);

 private:
  struct Pair {
    std::size_t column;
    double cost;
  };
  void augment(std::size_t row, double unassigned);

  std::size_t max_columns_;
  std::size_t rows_ = 0, columns_ = 0;
  std::vector<Pair> pairs_;              // by row, max_columns_ places each
  std::vector<std::size_t> pair_count_;  // by row
  std::vector<double> row_potential_, column_potential_;
  std::vector<int> row_of_column_, column_of_row_;
  // Of one search, by column.
  std::vector<double> distance_;
  std::vector<int> previous_column_;  // on the path from the new row, -1: directly
  std::vector<char> reached_, settled_;
  std::vector<std::size_t> frontier_;  // every column reached
};

}  // namespace takt::pipeline
