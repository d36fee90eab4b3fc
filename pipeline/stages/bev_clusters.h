// Clusters of points seen from above: connected components of the occupied cells of a dense grid. Two cells belong
// together when they are closer than a gap that grows with the range, as the spacing of the rays does.
// Deterministic: components do not depend on the order of the points, their numbers only on the order of first touch.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace takt::pipeline {

struct ClusterConfig {
  float cell_m = 0.25F;        // side of a cell
  float gap_m = 0.55F;         // distance of cell centres that still connects, at the sensor
  float gap_per_m = 0.02F;     // and its growth per metre of range (horizontal ray spacing of about 1 degree)
  float gap_max_m = 1.25F;     // never more: parked cars stand this close
  std::uint32_t max = 1024;    // clusters that are looked at; more are dropped, counted
  std::uint32_t min_hits = 4;  // points below which a cluster is left out
};

class BevClusters {
 public:
  static constexpr std::int32_t kOutside = -1;
  struct Cluster {
    std::uint32_t first = 0;  // in points()
    std::uint32_t count = 0;
    std::uint32_t cells = 0;         // occupied cells
    std::uint32_t raised_cells = 0;  // of these, cells with points above the clustering band
  };

  // Square of +- range_m around the vehicle origin; at most `max_points` per frame.
  BevClusters(const ClusterConfig& config, float range_m, std::uint32_t max_points);
  [[nodiscard]] std::int32_t cell_of(float x, float y) const;

  // One frame: clear, add or mark in any number, connect once.
  void clear();
  void add(std::int32_t cell, std::uint32_t point);
  void mark_raised(std::int32_t cell);
  void connect();

  [[nodiscard]] std::span<const Cluster> clusters() const { return {clusters_.data(), cluster_count_}; }
  [[nodiscard]] std::uint32_t dropped() const { return dropped_; }
  // Point numbers as given to add(), grouped by cluster, in the order of add() inside a cluster.
  [[nodiscard]] std::span<const std::uint32_t> points() const { return {grouped_.data(), grouped_count_}; }

 private:
  struct Offset {
    std::int32_t dx, dy;
    std::int32_t squared;
  };
  struct Entry {
    std::uint32_t occupied;  // index in occupied_
    std::uint32_t point;
  };
  std::uint32_t root(std::uint32_t i);

  ClusterConfig config_;
  float range_m_;
  float cells_per_m_;
  std::int32_t side_;
  std::vector<Offset> offsets_;         // half plane, by distance
  std::vector<std::uint32_t> slot_;     // per cell: index in occupied_ + 1, 0 = free
  std::vector<std::uint32_t> raised_;   // per cell: frame number of the last raised point
  std::vector<std::int32_t> occupied_;  // cells in the order of first touch
  std::vector<std::uint32_t> parent_;   // union-find over occupied_
  std::vector<std::uint32_t> label_;    // per occupied cell: cluster, kNone
  std::vector<std::uint32_t> hits_;     // per occupied cell, summed up at its root
  std::vector<Entry> entries_;          // points in the order of add()
  std::vector<std::uint32_t> grouped_;  //
  std::vector<Cluster> clusters_;
  std::uint32_t occupied_count_ = 0;
  std::uint32_t entry_count_ = 0;
  std::uint32_t grouped_count_ = 0;
  std::uint32_t cluster_count_ = 0;
  std::uint32_t dropped_ = 0;
  std::uint32_t frame_ = 0;
};

}  // namespace takt::pipeline
