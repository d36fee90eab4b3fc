// Minimum-cost perfect matching of the rows of a dense matrix (rows <= columns), by the textbook's Hungarian method
// with potentials, O(n^2 m). An oracle and a tool of scoring: shares nothing with the kernel of takt.Assign.
#pragma once

#include <cstddef>
#include <limits>
#include <vector>

namespace takt::testing {

// Column of each row. Costs are finite.
inline std::vector<int> hungarian(const std::vector<std::vector<double>>& cost) {
  const std::size_t n = cost.size(), m = n == 0 ? 0 : cost.front().size();
  std::vector<double> u(n + 1, 0), v(m + 1, 0);
  std::vector<std::size_t> row_of(m + 1, 0), way(m + 1, 0);  // counted from 1; 0: none
  for (std::size_t i = 1; i <= n; ++i) {
    row_of[0] = i;
    std::vector<double> least(m + 1, std::numeric_limits<double>::infinity());
    std::vector<bool> used(m + 1, false);
    std::size_t at = 0;
    do {
      used[at] = true;
      const std::size_t row = row_of[at];
      double delta = std::numeric_limits<double>::infinity();
      std::size_t next = 0;
      for (std::size_t j = 1; j <= m; ++j) {
        if (used[j]) continue;
        const double reduced = cost[row - 1][j - 1] - u[row] - v[j];
        if (reduced < least[j]) {
          least[j] = reduced;
          way[j] = at;
        }
        if (least[j] < delta) {
          delta = least[j];
          next = j;
        }
      }
      for (std::size_t j = 0; j <= m; ++j) {
        if (used[j]) {
          u[row_of[j]] += delta;
          v[j] -= delta;
        } else {
          least[j] -= delta;
        }
      }
      at = next;
    } while (row_of[at] != 0);
    for (; at != 0; at = way[at]) row_of[at] = row_of[way[at]];
  }
  std::vector<int> column(n, -1);
  for (std::size_t j = 1; j <= m; ++j) {
    if (row_of[j] != 0) column[row_of[j] - 1] = static_cast<int>(j - 1);
  }
  return column;
}

// Pairs with infinite cost are not allowed; every row may also stay without a column at `unassigned`. -1: without.
inline std::vector<int> hungarian(const std::vector<std::vector<double>>& cost, double unassigned) {
  const std::size_t n = cost.size(), m = n == 0 ? 0 : cost.front().size();
  double forbidden = 1;
  for (const auto& row : cost) {
    for (const double c : row) {
      if (c < std::numeric_limits<double>::infinity()) forbidden += c < 0 ? -c : c;
    }
  }
  forbidden = 2 * forbidden + 2 * static_cast<double>(n + 1) * (unassigned < 0 ? -unassigned : unassigned);
  std::vector<std::vector<double>> square(n, std::vector<double>(m + n, forbidden));
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j < m; ++j) {
      if (cost[i][j] < std::numeric_limits<double>::infinity()) square[i][j] = cost[i][j];
    }
    square[i][m + i] = unassigned;  // a column of its own for each row that stays without
  }
  std::vector<int> column = hungarian(square);
  for (int& c : column) {
    if (c >= static_cast<int>(m)) c = -1;
  }
  return column;
}

}  // namespace takt::testing
