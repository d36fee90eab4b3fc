// Clusters of points seen from above: connected components of the occupied cells of a dense grid. Two cells belong
// together when they are closer than a gap that grows with the range, as the spacing of the rays does.
// Deterministic: clusters and their numbers do not depend on the order of the points.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace takt::pipeline {

struct ClusterConfig {
  float cell_m = 0.25F;          // side of a cell
  float gap_m = 0.55F;           // distance of cell centres that still connects, at the vehicle; at least one cell
  float gap_per_m = 0.02F;       // and its growth per metre of range (horizontal ray spacing of about 1 degree)
  float gap_max_m = 1.25F;       // never more: parked cars stand this close; at most 31 cells
  std::uint32_t max = 1024;      // clusters that are looked at; more are dropped, counted
  std::uint32_t points_min = 4;  // smaller clusters are left out
};

class BevClusters {
 public:
  static constexpr std::int32_t kOutside = -1;
  static constexpr std::int32_t kReachMax = 31;  // cells: a window row fits 64 bits

  struct Cluster {
    std::uint32_t first = 0;  // in points()
    std::uint32_t count = 0;
    std::uint32_t cells = 0;         // occupied cells
    std::uint32_t raised_cells = 0;  // of these, cells with points above the clustering band
  };

  // Square of +- range_m around the vehicle origin; at most `max_points` per frame.
  BevClusters(const ClusterConfig& config, float range_m, std::uint32_t max_points);
  [[nodiscard]] std::int32_t cell_of(float x, float y) const;

  // One frame: clear, add and mark_raised in any number, connect once.
  void clear();
  void add(std::int32_t cell, std::uint32_t point);
  void mark_raised(std::int32_t cell);
  void connect();

  [[nodiscard]] std::span<const Cluster> clusters() const { return {clusters_.data(), cluster_count_}; }
  [[nodiscard]] std::uint32_t dropped() const { return dropped_; }
  // Point numbers as given to add(), grouped by cluster, in the order of add() inside a cluster.
  [[nodiscard]] std::span<const std::uint32_t> points() const { return {grouped_.data(), grouped_count_}; }

 private:
  static constexpr std::uint32_t kNone = ~0U;
  struct Entry {
    std::int32_t cell;
    std::uint32_t point;
  };
  // One bit per cell; rows start on words and end with an empty word, so that a window may be read across words.
  [[nodiscard]] std::size_t word_of(std::int32_t column, std::int32_t row) const {
    return static_cast<std::size_t>(row) * row_words_ + static_cast<std::size_t>(column) / 64;
  }
  [[nodiscard]] std::uint64_t window(std::int32_t column, std::int32_t row, std::int32_t width) const;
  void number_cells();
  void join_neighbours(std::uint32_t i);
  void join(std::uint32_t a, std::uint32_t b);
  void number_clusters();
  void group_points();
  [[nodiscard]] std::uint32_t root(std::uint32_t i);

  ClusterConfig config_;
  float range_m_;
  float cells_per_m_;
  std::int32_t side_;
  std::size_t row_words_;
  std::int32_t reach_;                   // of the largest gap, cells
  std::vector<std::int8_t> half_width_;  // [squared gap in cells][row distance], -1: out of reach
  std::vector<std::uint64_t> occupied_;  // bits
  std::vector<std::uint64_t> raised_;    // bits
  std::vector<std::uint32_t> slot_;      // per cell: its number, where its bit is set
  std::vector<std::int32_t> cells_;      // occupied cells, row by row
  std::vector<std::uint32_t> parent_;    // union-find over cells_, smaller number = root
  std::vector<std::uint32_t> label_;     // per occupied cell: cluster, kNone
  std::vector<std::uint32_t> hits_;      // per occupied cell: points, summed up at its root
  std::vector<Entry> entries_;           // points in the order of add()
  std::vector<std::uint32_t> grouped_;
  std::vector<Cluster> clusters_;
  std::uint32_t cell_count_ = 0;
  std::uint32_t entry_count_ = 0;
  std::uint32_t grouped_count_ = 0;
  std::uint32_t cluster_count_ = 0;
  std::uint32_t dropped_ = 0;
};

}  // namespace takt::pipeline
