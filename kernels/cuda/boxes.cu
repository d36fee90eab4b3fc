// Operators on boxes (kernels/boxes.h): every cell of a map and every pair of boxes by a thread of its own, with the
// reference's own rules. Places in an order are found by counting: there are few boxes.
#include "kernels/boxes.h"
#include "kernels/cuda/calls.h"
#include "kernels/cuda/order.h"
#include "kernels/reference/boxes.h"
// Its bodies, once more for this side.
#include "kernels/reference/boxes.cpp"  // NOLINT(bugprone-suspicious-include)

namespace takt::kernels::cuda::TAKT_BODY {
namespace {

using cpu::KernelId;
using reference::Nearness;

// --- TopKDecode ----------------------------------------------------------------------------------------------------
// Places of the heat map: class by class, cell by cell.
struct Maps {
  TopKDecodeParams p;
  Address heat, offset, height, size, rotation, velocity;
  [[nodiscard]] TAKT_DEVICE reference::CentreMaps maps() const {
    return {p,
            at<const float>(heat),
            at<const float>(offset),
            at<const float>(height),
            at<const float>(size),
            at<const float>(rotation),
            p.velocity == 1 ? at<const float>(velocity) : nullptr};
  }
  [[nodiscard]] TAKT_DEVICE std::int64_t pixels() const { return std::int64_t{p.h} * p.w; }
  [[nodiscard]] TAKT_DEVICE float logit(std::int32_t place) const { return at<const float>(heat)[place]; }
};

struct CandidateCells {
  Maps maps;
  Address places, count, tile_sums;
  TAKT_DEVICE std::uint64_t weight(std::int64_t i) const {
    return maps.maps().is_candidate(static_cast<std::int32_t>(i / maps.pixels()),
                                    static_cast<std::int32_t>(i % maps.pixels()))
               ? 1
               : 0;
  }
  TAKT_DEVICE void emit(std::int64_t i, std::uint64_t weight, std::uint64_t to) const {
    if (weight != 0) at<std::int32_t>(places)[to] = static_cast<std::int32_t>(i);
  }
  TAKT_DEVICE void finish(std::uint64_t total) const { *at<std::int32_t>(count) = static_cast<std::int32_t>(total); }
};

// Candidates, best logit first; of equal ones the first place.
struct CandidateList {
  Maps maps;
  Address list, count, threshold;
  [[nodiscard]] TAKT_DEVICE std::int64_t size() const { return *at<const std::int32_t>(count); }
  [[nodiscard]] TAKT_DEVICE std::int64_t room() const { return maps.p.k; }
  [[nodiscard]] TAKT_DEVICE std::uint64_t rank(std::int64_t i) const {
    // Logits are finite. Bits of larger floats are larger, of negative ones smaller; zeros are equal.
    const std::uint32_t bits = bits_of(maps.logit(at<const std::int32_t>(list)[i]) + 0.0F);
    const std::uint32_t ascending = (bits & 0x80000000U) != 0 ? ~bits : bits | 0x80000000U;
    return ~ascending;
  }
};

struct DecodedBox {
  Maps maps;
  Address taken, count, boxes, scores, classes, cells;
  TAKT_DEVICE void operator()(std::int64_t i) const {
    const std::int64_t boxes_taken = *at<const std::int32_t>(count);
    if (i >= boxes_taken) return;
    const std::int32_t place = at<const std::int32_t>(taken)[i];
    const float logit = maps.logit(place);
    std::int64_t to = 0;
    for (std::int64_t j = 0; j < boxes_taken; ++j) {
      const float other = maps.logit(at<const std::int32_t>(taken)[j]);
      if (other > logit || (other == logit && j < i)) ++to;
    }
    const auto cell = static_cast<std::int32_t>(place % maps.pixels());
    at<float>(scores)[to] = reference::score_of(logit);
    at<std::int32_t>(classes)[to] = static_cast<std::int32_t>(place / maps.pixels());
    at<std::int32_t>(cells)[to] = cell;
    maps.maps().decode(cell, at<float>(boxes) + to * kBoxColumns);
  }
};

int top_k_decode(const Call& call) {
  const auto p = load_params<TopKDecodeParams>(call.params);
  const cpu::TopKScratch layout(p);
  const Address* const o = call.operands;
  const auto scratch = [&](std::uint64_t offset) { return within(o[12], offset); };
  const Maps maps{p, o[0], o[1], o[2], o[3], o[4], o[5]};
  const Address tile_sums = scratch(layout.tile_sums), taken = scratch(layout.taken);
  const CandidateList all{maps, scratch(layout.candidates), scratch(layout.counters), scratch(layout.threshold)};
  if (const int error =
          compact("top_k_candidates", CandidateCells{maps, all.list, all.count, tile_sums}, layout.places, call)) {
    return error;
  }
  if (const int error = select("top_k_select", all, call)) return error;
  if (const int error =
          compact("top_k_taken", Selected<std::int32_t, CandidateList>{all, taken, o[11], o[10], tile_sums},
                  layout.places, call)) {
    return error;
  }
  return each("top_k_decode", DecodedBox{maps, taken, o[11], o[6], o[7], o[8], o[9]}, p.k, call);
}

// --- non-maximum suppression ---------------------------------------------------------------------------------------
struct Boxes {
  NmsParams p;
  Address boxes, scores, classes, count, out_boxes, out_scores, out_classes, index, kept;
  [[nodiscard]] TAKT_DEVICE reference::NmsOperands operands() const {
    return {at<const float>(boxes),        at<const float>(scores), at<const std::int32_t>(classes),
            at<const std::int32_t>(count), at<float>(out_boxes),    at<float>(out_scores),
            at<std::int32_t>(out_classes), at<std::int32_t>(index), at<std::int32_t>(kept)};
  }
};

// The boxes that may stay, in their order, into `index`.
struct BoxOrder {
  Boxes boxes;
  TAKT_DEVICE void operator()(std::int64_t i) const {
    const reference::NmsOperands o = boxes.operands();
    const std::int64_t all = rows_of(boxes.count, boxes.p.capacity);
    if (i >= all || !reference::may_stay(o, i)) return;
    std::int64_t to = 0;
    for (std::int64_t j = 0; j < all; ++j) {
      to += reference::may_stay(o, j) &&
                    reference::precedes(o, static_cast<std::int32_t>(j), static_cast<std::int32_t>(i))
                ? 1
                : 0;
    }
    o.index[to] = static_cast<std::int32_t>(i);
  }
};

// One block. The best box that is left stays and ends others, which are marked by the complement of their index; the
// list of those that stay grows behind it in the same array.
template <int nearness>
TAKT_KERNEL void suppress_kernel(Boxes boxes, Conditions conditions) {
  if (!hold(conditions)) return;
  const reference::NmsOperands o = boxes.operands();
  auto* const size = shared_memory<std::int32_t>();
  if (thread_x() == 0) *size = 0;
  sync_block();
  std::int32_t own = 0;
  for (std::int64_t i = thread_x(), all = rows_of(boxes.count, boxes.p.capacity); i < all; i += kTile) {
    own += reference::may_stay(o, i) ? 1 : 0;
  }
  if (own > 0) atomic_add(size, own);
  sync_block();
  const std::int64_t n = *size;
  std::int64_t kept = 0;
  for (std::int64_t i = 0; i < n && kept < boxes.p.most; ++i) {
    const std::int32_t row = o.index[i];
    if (row < 0) continue;
    for (std::int64_t j = i + 1 + thread_x(); j < n; j += kTile) {
      const std::int32_t other = o.index[j];
      if (other >= 0 && reference::suppresses(static_cast<Nearness>(nearness), boxes.p, o, row, other))
        o.index[j] = ~other;
    }
    sync_block();
    if (thread_x() == 0) o.index[kept] = row;  // which nobody reads before the loop's end
    ++kept;
  }
  sync_block();
  for (std::int64_t i = kept + thread_x(); i < n; i += kTile) {
    if (o.index[i] < 0) o.index[i] = ~o.index[i];
  }
  for (std::int64_t i = thread_x(); i < kept; i += kTile) {
    const std::int64_t row = o.index[i];
    for (std::int64_t c = 0; c < kBoxColumns; ++c) o.out_boxes[i * kBoxColumns + c] = o.boxes[row * kBoxColumns + c];
    o.out_scores[i] = o.scores[row];
    o.out_classes[i] = o.classes[row];
  }
  if (thread_x() == 0) *o.kept = static_cast<std::int32_t>(kept);
}

template <Nearness nearness>
int nms(const Call& call) {
  constexpr const char* kNames[] = {"circle_nms", "axis_aligned_nms", "rotated_nms"};
  const char* const name = kNames[static_cast<int>(nearness)];
  const auto p = load_params<NmsParams>(call.params);
  const Address* const o = call.operands;
  const Boxes boxes{p, o[0], o[1], o[2], o[3], o[4], o[5], o[6], o[7], o[8]};
  if (const int error = each(name, BoxOrder{boxes}, p.capacity, call)) return error;
  return launch(name, suppress_kernel<static_cast<int>(nearness)>, grid_of(1, sizeof(std::int32_t)), call.stream, boxes,
                call.conditions);
}

}  // namespace

std::span<const DeviceHalf> box_kernels() {
  static constexpr DeviceHalf kHalves[] = {{KernelId::kTopKDecode, top_k_decode},
                                           {KernelId::kCircleNms, nms<Nearness::kCircle>},
                                           {KernelId::kAxisAlignedNms, nms<Nearness::kAxisAligned>},
                                           {KernelId::kRotatedNms, nms<Nearness::kRotated>}};
  return kHalves;
}

}  // namespace takt::kernels::cuda::TAKT_BODY
