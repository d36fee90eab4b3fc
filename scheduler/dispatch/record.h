// One fixed-size record per job (DESIGN section 4.6), written by the dispatcher into a preallocated ring.
#pragma once

#include <cstdint>

#include "runtime/base/digest.h"
#include "runtime/base/time.h"
#include "scheduler/model/limits.h"

namespace takt::sched {

// One class per job, in this precedence (DESIGN section 2).
enum class JobClass : std::uint8_t { kSkipped, kMissing, kLateStart, kOverrun, kLate, kOk };
const char* name_of(JobClass job_class);
inline constexpr std::size_t kJobClasses = 6;

// Conditions that were true, whatever the class.
enum JobFlags : std::uint32_t {
  kFlagMissingInput = 1,
  kFlagLateStart = 2,  // also of a job that was not started, or not gone on with, because of it (kSlotOver)
  kFlagOverrun = 4,
  kFlagLate = 8,
  kFlagRepeatInput = 16,
  kFlagHeldInput = 32,
  kFlagDiscarded = 64,  // the late output was not published
  kFlagFill = 128,      // pipeline fill: a bound producer job lies before job 0
  kFlagRepaired = 256,  // a bad frame was repaired or left out by a stated rule
  kFlagIsolated = 512,  // unfinished at the end of slot and slack: a worker lost its core to the next slot
  kFlagAborted = 1024,  // given up between two steps; nothing was published, the state stays
  kFlagStuck = 2048,    // it had not come back when the run gave up waiting for it, at `completion`
  kFlagInCall = 4096,   // a worker was to lose its core inside a call of a device's driver: not before it came back
};

enum class Reason : std::uint8_t {
  kNone,
  kPreviousRunning,  // skipped: the stage's worker is still busy with an earlier job
  kNoCredit,         // skipped: no output chunk within the plan
  kFeederLate,       // missing: the sample was not physically there within w
  kNoSample,         // missing: no sample has arrived in table time
  kProducerNothing,  // missing: the bound job produced nothing
  kBadFrame,         // the sample could not be decoded
  kFill,             // missing: before the first job of the producer
  kArena,            // skipped or given up: an arena or a mutex that it shares is still in use
  kSkipNext,         // skipped: the job before it overran, and that is the stage's policy
  kDevice,           // skipped: its device is lost; of a job that ran: its device refused the work or was lost
  kUnit,             // given up: its next segment's unit was still at work for another job
  kSlotOver,         // skipped or given up: a dispatcher woke when nothing that it could begin would go out any more
};
const char* name_of(Reason reason);
inline constexpr std::size_t kReasons = 13;

inline constexpr std::size_t kMaxInputs = 8;

// Where an input came from. kind mirrors transport::Selection: 0 new, 1 repeat, 2 held, 3 missing.
struct InputRecord {
  std::uint64_t job = 0;        // producer job, or index of the sample in its channel
  std::int64_t capture_ns = 0;  // newest capture stamp behind it (SensorTime)
  std::int64_t arrival_ns = 0;  // sensor inputs
  std::uint8_t kind = 3;
  Reason reason = Reason::kNone;
  std::uint8_t moved = 0;  // 1 when segment and offset differed from those published: an error of takt
  std::uint8_t reserved[5] = {};
};

// Times are table time in ns; kNever when it did not happen.
inline constexpr std::int64_t kNever = INT64_MIN;

// When a segment of a job ran: its workers by the clock of the cores, a unit from the instant it was told to begin for
// as long as it worked.
struct SegmentRecord {
  std::int64_t start = kNever;
  std::int64_t end = kNever;
};

struct JobRecord {
  std::uint32_t stage = 0;
  std::uint32_t slot = 0;  // index into Schedule::slots
  std::uint64_t job = 0;   // absolute number
  std::uint64_t hyperperiod = 0;
  std::uint32_t variant = 0;
  std::uint32_t mode = 0;
  std::uint32_t cores = 1;  // k
  std::int64_t nominal_start = kNever;
  std::int64_t actual_start = kNever;  // of the last worker of the gang
  std::int64_t completion = kNever;
  std::int64_t publication = kNever;  // when publish() returned
  std::int64_t slot_end = kNever;
  std::int64_t cpu_ns = 0;  // CPU time of all workers
  // Of a job on a device: how long it took to hand the work over, and the device's own time from its first piece of
  // work to its last. Zero on the cores.
  std::int64_t launch_ns = 0;
  std::int64_t device_ns = 0;
  std::uint32_t flags = 0;
  std::uint32_t page_faults = 0;           // of the workers during the job
  std::uint32_t aborted_at = 0xFFFF'FFFF;  // the step boundary (from 0) at which the job was given up
  std::uint32_t major_faults = 0;          // those of them that needed the disk
  std::uint32_t voluntary_switches = 0;    // of the workers: they waited during the job
  std::uint32_t involuntary_switches = 0;  // of the workers: another thread was given their core during the job
  std::uint64_t copied_bytes = 0;          // memcpy and memmove in the timed threads during the job
  std::uint32_t allocations = 0;           // heap allocations in the timed threads during the job
  JobClass job_class = JobClass::kOk;
  Reason reason = Reason::kNone;
  std::uint8_t input_count = 0;
  std::uint8_t published = 0;
  std::uint8_t segment_count = 0;  // 0: one, on the cores, between actual_start and completion
  InputRecord inputs[kMaxInputs];
  SegmentRecord segments[kMostSegments];
  std::uint64_t output_bytes = 0;
  Digest output;  // filled in by the recorder, on the housekeeping reserve
};

// How long a job was at work, on whatever: between its start and its completion, without the pauses between segments.
// Of one that has both times.
Duration time_used(const JobRecord& record);

// What a job is judged against.
struct JobLimits {
  Duration wakeup_window;  // w of its cores, the largest
  Duration budget;
};

// Sets the timing flags and the class of a finished record from its times, flags and reason; of several segments each
// has a budget of its own, and whoever knows them has set the flags of overrun and late start. A job that did not start
// is skipped when the reason is kNone, kPreviousRunning, kNoCredit, kArena, kSkipNext, kDevice or kSlotOver, else
// missing. Pure.
void classify(JobRecord& record, const JobLimits& limits);

}  // namespace takt::sched
