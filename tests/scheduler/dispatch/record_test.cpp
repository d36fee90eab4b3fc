#include "scheduler/dispatch/record.h"

#include <gtest/gtest.h>
#include <set>
#include <string>

namespace takt::sched {
namespace {

constexpr JobLimits kLimits{.wakeup_window = {100}, .budget = {1000}};

// Starts at 0, ends within the budget, published at its slot end.
JobRecord good() {
  JobRecord record;
  record.nominal_start = 0;
  record.actual_start = 100;
  record.completion = 1100;
  record.publication = 1300;
  record.slot_end = 1300;
  record.published = 1;
  return record;
}

TEST(Classify, LimitsThemselvesAreKept) {
  JobRecord record = good();
  classify(record, kLimits);
  EXPECT_EQ(record.job_class, JobClass::kOk);
  EXPECT_EQ(record.flags, 0U);
}

TEST(Classify, EachConditionByOneNanosecond) {
  JobRecord late_start = good();
  late_start.actual_start = 101;
  classify(late_start, kLimits);
  EXPECT_EQ(late_start.job_class, JobClass::kLateStart);
  EXPECT_EQ(late_start.flags, kFlagLateStart);

  JobRecord overrun = good();
  overrun.completion = 1101;
  classify(overrun, kLimits);
  EXPECT_EQ(overrun.job_class, JobClass::kOverrun);
  EXPECT_EQ(overrun.flags, kFlagOverrun);

  JobRecord late = good();
  late.publication = 1301;
  classify(late, kLimits);
  EXPECT_EQ(late.job_class, JobClass::kLate);
  EXPECT_EQ(late.flags, kFlagLate);
}

TEST(Classify, PrecedenceKeepsTheOtherConditionsAsFlags) {
  JobRecord record = good();
  record.actual_start = 200;
  record.completion = 2000;
  record.publication = 2100;
  record.flags = kFlagRepeatInput;
  classify(record, kLimits);
  EXPECT_EQ(record.job_class, JobClass::kLateStart);
  EXPECT_EQ(record.flags, kFlagRepeatInput | kFlagLateStart | kFlagOverrun | kFlagLate);

  record = good();
  record.completion = 2000;
  record.publication = 2100;
  classify(record, kLimits);
  EXPECT_EQ(record.job_class, JobClass::kOverrun);
  EXPECT_EQ(record.flags, kFlagOverrun | kFlagLate);
}

TEST(Classify, DiscardedOutputIsLate) {
  JobRecord record = good();
  record.publication = kNever;
  record.published = 0;
  record.flags = kFlagDiscarded;
  classify(record, kLimits);
  EXPECT_EQ(record.job_class, JobClass::kLate);
  EXPECT_EQ(record.flags, kFlagDiscarded | kFlagLate);
}

TEST(Classify, JobsThatDidNotStart) {
  for (const Reason reason : {Reason::kNone, Reason::kPreviousRunning, Reason::kNoCredit, Reason::kArena,
                              Reason::kSkipNext, Reason::kDevice}) {
    JobRecord record;
    record.reason = reason;
    record.flags = kFlagMissingInput;  // skipped comes before missing
    classify(record, kLimits);
    EXPECT_EQ(record.job_class, JobClass::kSkipped) << name_of(reason);
    EXPECT_EQ(record.flags, kFlagMissingInput);
  }
  for (const Reason reason :
       {Reason::kFeederLate, Reason::kNoSample, Reason::kProducerNothing, Reason::kBadFrame, Reason::kFill}) {
    JobRecord record;
    record.reason = reason;
    record.flags = kFlagMissingInput;
    classify(record, kLimits);
    EXPECT_EQ(record.job_class, JobClass::kMissing) << name_of(reason);
  }
}

// Whoever judges start times sees that the window was not kept, whether or not anything of the job ran.
TEST(Classify, AJobWhoseDispatcherWokeTooLateBreaksTheWindow) {
  JobRecord skipped;
  skipped.reason = Reason::kSlotOver;
  classify(skipped, kLimits);
  EXPECT_EQ(skipped.job_class, JobClass::kSkipped);
  EXPECT_EQ(skipped.flags, kFlagLateStart);

  JobRecord given_up = good();
  given_up.reason = Reason::kSlotOver;
  given_up.flags = kFlagDiscarded;
  given_up.publication = kNever;
  given_up.published = 0;
  classify(given_up, kLimits);
  EXPECT_EQ(given_up.job_class, JobClass::kLateStart);
  EXPECT_EQ(given_up.flags, kFlagLateStart | kFlagDiscarded | kFlagLate);
  // Its other part waited at a barrier, beyond the budget: nothing of the stage overran.
  given_up.flags = kFlagDiscarded | kFlagAborted;
  given_up.completion = given_up.actual_start + 10 * kLimits.budget.ns;
  classify(given_up, kLimits);
  EXPECT_EQ(given_up.job_class, JobClass::kLateStart);
  EXPECT_EQ(given_up.flags & kFlagOverrun, 0U);
}

TEST(Classify, AnAbsentOptionalInputIsAFlagOnly) {
  JobRecord record = good();
  record.flags = kFlagMissingInput;
  classify(record, kLimits);
  EXPECT_EQ(record.job_class, JobClass::kOk);
  EXPECT_EQ(record.flags, kFlagMissingInput);
}

TEST(Names, EveryClassAndReasonHasItsOwn) {
  std::set<std::string> names;
  for (std::uint8_t i = 0; i < kJobClasses; ++i) names.insert(name_of(static_cast<JobClass>(i)));
  EXPECT_EQ(names.size(), kJobClasses);
  EXPECT_FALSE(names.contains("unknown"));
  names.clear();
  for (std::uint8_t i = 0; i < kReasons; ++i) {
    names.insert(name_of(static_cast<Reason>(i)));
  }
  EXPECT_EQ(names.size(), kReasons);
  EXPECT_FALSE(names.contains("unknown"));
}

}  // namespace
}  // namespace takt::sched
