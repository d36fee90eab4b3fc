// What of every struct stands in a bundle, in order. docs/bundle_format.md lists the same; a change of order or meaning
// is a new kBundleVersion. Private to this folder.
#pragma once

#include "pipeline/bundle/archive.h"
#include "pipeline/bundle/bundle.h"

namespace takt::pipeline::bundle {

template <class T, class U>
concept Like = std::is_same_v<std::remove_const_t<T>, U>;

// clang-format off
template <> struct Last<sched::UnitKind> { static constexpr auto first = sched::UnitKind::kCopyEngine, last = sched::UnitKind::kGpuPartition; };
template <> struct Last<sched::Provenance> { static constexpr auto first = sched::Provenance::kDeclared, last = sched::Provenance::kProfiled; };
template <> struct Last<sched::Interference> { static constexpr auto first = sched::Interference::kAny, last = sched::Interference::kNone; };
template <> struct Last<sched::OverrunPolicy> { static constexpr auto first = sched::OverrunPolicy::kContinueLate, last = sched::OverrunPolicy::kDegrade; };
template <> struct Last<sensors::SensorKind> { static constexpr auto first = sensors::SensorKind::kCamera, last = sensors::SensorKind::kEgo; };
template <> struct Last<sensors::StampReference> { static constexpr auto first = sensors::StampReference::kExposureStart, last = sensors::StampReference::kPerPoint; };
template <> struct Last<sensors::PixelFormat> { static constexpr auto first = sensors::PixelFormat::kRgb8, last = sensors::PixelFormat::kBayerRggb8; };
template <> struct Last<kernels::ColourOrder> { static constexpr auto first = kernels::ColourOrder::kRgb, last = kernels::ColourOrder::kBgr; };
template <> struct Last<kernels::Fit> { static constexpr auto first = kernels::Fit::kPlain, last = kernels::Fit::kLetterbox; };
template <> struct Last<ObjectClass> { static constexpr auto first = ObjectClass{0}, last = ObjectClass::kOther; };
template <> struct Last<Parameter::Kind> { static constexpr auto first = Parameter::Kind::kText, last = Parameter::Kind::kMap; };
// clang-format on

}  // namespace takt::pipeline::bundle

// Found by the namespace of the struct.
namespace takt::sched {
using pipeline::bundle::Like;

template <class A, Like<Core> T>
void fields(A& a, T& v) {
  a(v.name, v.cpu, v.reserve, v.wakeup_window, v.publish_window);
}
template <class A, Like<Unit> T>
void fields(A& a, T& v) {
  a(v.name, v.kind);
}
template <class A, Like<Board> T>
void fields(A& a, T& v) {
  a(v.name, v.cores, v.units, v.clock_error, v.switch_cost, v.memory);
}
template <class A, Like<Sensor::Phase> T>
void fields(A& a, T& v) {
  a(v.offset, v.jitter);
}
template <class A, Like<Sensor> T>
void fields(A& a, T& v) {
  a(v.name, v.period, v.delay_min, v.delay_max, v.drift_ppm, v.phase);
}
template <class A, Like<Segment> T>
void fields(A& a, T& v) {
  a(v.unit, v.time, v.guard, v.mutexes);
}
template <class A, Like<Budget> T>
void fields(A& a, T& v) {
  a(v.cores, v.time, v.segments, v.interference, v.provenance, v.samples, v.margin, v.high_water, v.steps);
}
template <class A, Like<Variant> T>
void fields(A& a, T& v) {
  a(v.name, v.budgets, v.resident, v.arena, v.arena_mutex);
}
template <class A, Like<Mutex> T>
void fields(A& a, T& v) {
  a(v.name);
}
template <class A, Like<Absence> T>
void fields(A& a, T& v) {
  a(v.hold);
}
template <class A, Like<Input> T>
void fields(A& a, T& v) {
  a(v.name, v.from_sensor, v.source, v.feedback, v.absence);
}
template <class A, Like<Stage> T>
void fields(A& a, T& v) {
  a(v.name, v.rates, v.variants, v.inputs, v.overrun, v.degraded_variant, v.degraded_mode, v.slack);
}
template <class A, Like<Chain> T>
void fields(A& a, T& v) {
  a(v.name, v.sensor, v.stages, v.limits);
}
template <class A, Like<Disparity> T>
void fields(A& a, T& v) {
  a(v.name, v.stage, v.chains, v.limit);
}
template <class A, Like<PhaseLock> T>
void fields(A& a, T& v) {
  a(v.sensor, v.gap, v.filter, v.hold_over);
}
template <class A, Like<Problem> T>
void fields(A& a, T& v) {
  a(v.name, v.board, v.hyperperiod, v.sensors, v.mutexes, v.stages, v.chains, v.disparities, v.phase_lock, v.ticks);
}
template <class A, Like<TickClock> T>
void fields(A& a, T& v) {
  a(v.hyperperiod, v.ticks);
}
template <class A, Like<Choice> T>
void fields(A& a, T& v) {
  a(v.rate, v.variant, v.budget);
}
template <class A, Like<Slot> T>
void fields(A& a, T& v) {
  a(v.stage, v.job, v.segment, v.unit, v.cores, v.start, v.end);
}
template <class A, Like<Binding> T>
void fields(A& a, T& v) {
  a(v.stage, v.job, v.input, v.producer_stage, v.producer_job, v.producer_shift);
}
template <class A, Like<ChainBound> T>
void fields(A& a, T& v) {
  a(v.chain, v.bounds, v.terms);
}
template <class A, Like<DisparityBound> T>
void fields(A& a, T& v) {
  a(v.bound, v.terms);
}
template <class A, Like<Schedule> T>
void fields(A& a, T& v) {
  a(v.clock, v.choices, v.slots, v.bindings, v.bounds, v.disparities);
}

}  // namespace takt::sched

namespace takt::sensors {
using pipeline::bundle::Like;

template <class A, Like<Transform> T>
void fields(A& a, T& v) {
  a(v.rotation, v.translation);
}
template <class A, Like<CameraModel> T>
void fields(A& a, T& v) {
  a(v.width, v.height, v.fx, v.fy, v.cx, v.cy, v.distortion);
}
template <class A, Like<RigSensor> T>
void fields(A& a, T& v) {
  a(v.name, v.kind, v.topic, v.frame_id, v.vehicle_from_sensor, v.camera, v.capacity, v.intensity_scale,
    v.motion_compensated, v.ray_origin, v.stamp, v.period, v.duration, v.readout, v.driver_delay, v.jitter, v.drift_ppm,
    v.phase, v.declared_delay, v.offset, v.device_clock, v.assumed);
}
template <class A, Like<Rig> T>
void fields(A& a, T& v) {
  a(v.name, v.file, v.drive, v.world_frame, v.vehicle_frame, v.sensors);
}

}  // namespace takt::sensors

namespace takt::transport {
using pipeline::bundle::Like;

template <class A, Like<SubscriberSpec> T>
void fields(A& a, T& v) {
  a(v.name, v.queue_depth, v.held);
}
template <class A, Like<TopicSpec> T>
void fields(A& a, T& v) {
  a(v.name, v.schema, v.payload_capacity, v.loans, v.subscribers);
}
template <class A, Like<Pool> T>
void fields(A& a, T& v) {
  a(v.payload_capacity, v.chunk_bytes, v.chunks, v.topics);
}
template <class A, Like<PoolPlan> T>
void fields(A& a, T& v) {
  a(v.pools, v.user_bytes, v.management_bytes);
}

}  // namespace takt::transport

namespace takt::pipeline {
using bundle::Like;

template <class A, Like<ModelInput> T>
void fields(A& a, T& v) {
  a(v.tensor, v.width, v.height, v.colour, v.fit, v.pad, v.scale, v.mean, v.std);
}
template <class A, Like<CentreHead> T>
void fields(A& a, T& v) {
  a(v.heatmap, v.box, v.stride);
}
template <class A, Like<FastestDetHead> T>
void fields(A& a, T& v) {
  a(v.tensor);
}
template <class A, Like<ModelHead> T>
void fields(A& a, T& v) {
  a(v.form, v.score_min, v.nms_iou, v.objects_max);
}
template <class A, Like<ModelClass> T>
void fields(A& a, T& v) {
  a(v.name, v.meaning);
}
template <class A, Like<ModelContract> T>
void fields(A& a, T& v) {
  a(v.name, v.hash, v.licence, v.input, v.head, v.classes);
}
template <class A, Like<Parameter> T>
void fields(A& a, T& v) {
  a(v.kind, v.text, v.keys, v.items);
}
template <class A, Like<BundleVariant> T>
void fields(A& a, T& v) {
  a(v.name, v.type, v.plan, v.model);
}
template <class A, Like<BundleInput> T>
void fields(A& a, T& v) {
  a(v.name, v.sensor, v.schema, v.required);
}
template <class A, Like<BundleStage> T>
void fields(A& a, T& v) {
  a(v.name, v.type, v.variants, v.inputs, v.pixel_format, v.params);
}
template <class A, Like<BundleMode> T>
void fields(A& a, T& v) {
  a(v.name, v.problem, v.schedule, v.dwell, v.lost);
}
template <class A, Like<BundleChange> T>
void fields(A& a, T& v) {
  a(v.from, v.to, v.drain);
}
template <class A, Like<ArenaPlace> T>
void fields(A& a, T& v) {
  a(v.stage, v.base, v.bytes);
}
template <class A, Like<ArenaMap> T>
void fields(A& a, T& v) {
  a(v.block_bytes, v.places);
}
template <class A, Like<BundleSource> T>
void fields(A& a, T& v) {
  a(v.role, v.digest);
}

}  // namespace takt::pipeline
