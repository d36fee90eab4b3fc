// Reasons why no table can exist, cheapest first. Each is a proof: it holds for every table of the choices it was asked
// about, comes with its certificate, and a reader can check it with a pocket calculator.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "scheduler/model/certificate.h"
#include "scheduler/synthesis/deadline.h"
#include "scheduler/synthesis/table.h"

namespace takt::sched {

// What a stage may still choose: rate, variant and core count.
using Options = std::vector<std::vector<Choice>>;  // by stage, best first

// The core sets a stage is restricted to, by stage; empty: any.
using Homes = std::vector<std::vector<std::uint32_t>>;

struct Refutation {
  Certificate certificate;  // a leaf
  std::string why;
};

// The first rule that shows that no table exists for any combination of `options`: a chain against its limit, one stage
// against its period, memory, the load of a unit, what is held under a mutex, a disparity, the load of all cores, of
// one core, window energy.
std::optional<Refutation> refute(const Problem& problem, const Options& options, const Homes& homes = {});

// All of them: what has to change before a table can exist.
std::vector<Refutation> refute_in_every_way(const Problem& problem, const Options& options);

// What the four quantities of a chain cannot be below, for any combination of `options`.
std::array<Duration, kQuantities> least_bounds(const Problem& problem, const Options& options, std::uint32_t chain);

// The largest factor on all limits, to a thousandth, for which refute() says that no table exists: no table has a
// smaller maximum of bound / limit. 0 without limits.
double least_worst_ratio(const Problem& problem, const Options& options);

// What no table's maximum of disparity / limit can be below. 0 without limits.
double least_worst_disparity(const Problem& problem);

// Why the stages cannot be divided among the cores, when every stage has one option on one core; "" when they can, or
// when that would take long to find out.
std::string refute_partition(const Problem& problem, const Options& options);

// A certificate for the whole problem: branches over options, then over home cores, with leaves from refute(), then
// over orders of jobs (orders.h). nullopt when a branch stays open, more than `nodes` would be needed, or the deadline
// passes.
std::optional<Certificate> prove_infeasible(const Problem& problem, std::uint64_t nodes, const Deadline& deadline = {});

}  // namespace takt::sched
