#include "kernels/reference/assignment.h"

#include <limits>

namespace takt::kernels::reference {
inline namespace TAKT_SIDE {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct Work {
  std::size_t columns;
  const double* cost;
  double unassigned;
  double *row_potential, *column_potential;
  // Of one search, by column.
  double* distance;
  std::int32_t* previous;  // column before it on the path from the new row, kUnassigned: directly
  std::int32_t* frontier;  // every column reached
  std::int32_t* row_of_column;
  std::uint8_t *reached, *settled;

  TAKT_BOTH Work(std::size_t rows, std::size_t m, const double* costs, double none, std::byte* scratch)
      : columns(m), cost(costs), unassigned(none) {
    row_potential = reinterpret_cast<double*>(scratch);
    column_potential = row_potential + rows;
    distance = column_potential + m;
    previous = reinterpret_cast<std::int32_t*>(distance + m);
    frontier = previous + m;
    row_of_column = frontier + m;
    reached = reinterpret_cast<std::uint8_t*>(row_of_column + m);
    settled = reached + m;
  }

  // Of every `step`-th row and column from `first` on.
  TAKT_BOTH void clear(std::size_t rows, std::size_t first, std::size_t step) const {
    for (std::size_t r = first; r < rows; r += step) row_potential[r] = 0;
    for (std::size_t c = first; c < columns; c += step) {
      column_potential[c] = 0;
      row_of_column[c] = kUnassigned;
      reached[c] = settled[c] = 0;
    }
  }
  TAKT_BOTH void augment(std::size_t row);
};

// Finds the cheapest alternating path from `row` to a free column or to a row that gives its column up (Dijkstra over
// reduced costs) and turns it over. "Unassigned" needs no columns of its own: an always free one is never further away
// than one that a row holds already.
TAKT_BOTH void Work::augment(std::size_t row) {
  std::size_t reached_count = 0;
  std::size_t from = row;
  std::int32_t from_column = kUnassigned;  // the column that `from` holds, none for the new row
  double base = 0;                         // distance of `from`
  double give_up = kInfinity;
  std::int32_t give_up_column = kUnassigned;  // held by the row that would stay without
  double length = 0;
  std::int32_t last = kUnassigned;  // column at the end of the path, none: a row gives up
  for (;;) {
    const double reduced = base - row_potential[from];
    if (reduced + unassigned < give_up) {
      give_up = reduced + unassigned;
      give_up_column = from_column;
    }
    const double* const costs = cost + from * columns;
    for (std::size_t c = 0; c < columns; ++c) {
      if (!(costs[c] > -kInfinity && costs[c] < kNotAllowed) || settled[c] != 0) continue;
      const double to = reduced + costs[c] - column_potential[c];
      if (reached[c] != 0 && to >= distance[c]) continue;
      if (reached[c] == 0) frontier[reached_count++] = static_cast<std::int32_t>(c);
      reached[c] = 1;
      distance[c] = to;
      previous[c] = from_column;
    }
    double nearest = kInfinity;
    std::int32_t next = kUnassigned;
    for (std::size_t k = 0; k < reached_count; ++k) {
      const std::int32_t c = frontier[k];
      if (settled[c] != 0) continue;
      if (distance[c] < nearest || (distance[c] == nearest && c < next)) {
        nearest = distance[c];
        next = c;
      }
    }
    if (next == kUnassigned || give_up < nearest) {
      length = give_up;
      break;
    }
    settled[next] = 1;
    base = nearest;
    from_column = next;
    if (row_of_column[next] == kUnassigned) {
      length = nearest;
      last = from_column;
      break;
    }
    from = static_cast<std::size_t>(row_of_column[next]);
  }

  row_potential[row] += length;
  for (std::size_t k = 0; k < reached_count; ++k) {
    const std::int32_t c = frontier[k];
    if (settled[c] != 0 && c != last) {
      row_potential[row_of_column[c]] += length - distance[c];
      column_potential[c] -= length - distance[c];
    }
    reached[c] = settled[c] = 0;
  }
  for (std::int32_t c = last != kUnassigned ? last : give_up_column; c != kUnassigned;) {
    const std::int32_t before = previous[c];
    row_of_column[c] = before != kUnassigned ? row_of_column[before] : static_cast<std::int32_t>(row);
    c = before;
  }
}

}  // namespace

std::size_t assign_scratch_bytes(std::size_t max_rows, std::size_t columns) {
  return max_rows * sizeof(double) + columns * (2 * sizeof(double) + 3 * sizeof(std::int32_t) + 2);
}

TAKT_BOTH void assign(std::size_t rows, std::size_t columns, const double* cost, double unassigned,
                      std::int32_t* column_of_row, std::byte* scratch) {
  Work work(rows, columns, cost, unassigned, scratch);
  work.clear(rows, 0, 1);
  for (std::size_t r = 0; r < rows; ++r) work.augment(r);
  for (std::size_t r = 0; r < rows; ++r) column_of_row[r] = kUnassigned;
  for (std::size_t c = 0; c < columns; ++c) {
    if (work.row_of_column[c] != kUnassigned) column_of_row[work.row_of_column[c]] = static_cast<std::int32_t>(c);
  }
}

}  // namespace TAKT_SIDE
}  // namespace takt::kernels::reference
