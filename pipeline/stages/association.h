// Which object belongs to which track: optimal one-to-one assignment over fixed capacities.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace takt::pipeline {

// Shortest augmenting paths with row and column potentials (Kuhn 1955; Jonker and Volgenant 1987). Allocates at
// construction only. Deterministic: of equally good choices the one with the lower row, then the lower column, is
// looked at first; callers order rows by track id and columns by object index. One thread at a time.
class Assignment {
 public:
  Assignment(std::size_t max_rows, std::size_t max_columns);

  static constexpr int kUnassigned = -1;
  static constexpr double kForbidden = 1e12;  // a pair outside its gate

  // Sets the size of the problem and forbids every pair.
  void reset(std::size_t rows, std::size_t columns);
  void set_cost(std::size_t row, std::size_t column, double cost) { cost_[row * max_columns_ + column] = cost; }
  // Minimises the sum of the costs of the assigned pairs plus `unassigned` for every row without a column. Returns the
  // column of each row, or kUnassigned; valid until the next call.
  std::span<const int> solve(double unassigned);

 private:
  [[nodiscard]] double cost(std::size_t row, std::size_t column) const {
    return column < columns_ ? cost_[row * max_columns_ + column] : unassigned_;
  }
  void augment(std::size_t row);

  std::size_t max_columns_;
  std::size_t rows_ = 0, columns_ = 0;
  double unassigned_ = 0;
  std::vector<double> cost_;
  // Columns beyond the objects stand for "unassigned": one per row, so that every row finds one.
  std::vector<double> row_potential_, column_potential_, distance_;
  std::vector<int> row_of_column_, previous_column_, column_of_row_;
  std::vector<char> visited_;
};

}  // namespace takt::pipeline
