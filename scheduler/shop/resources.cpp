// What follows for jobs that share a resource: overload of a window, edge finding, and the push by all predecessors
// together. Each in both directions of time: mirrored, a job begins at minus its end.
#include <algorithm>
#include <numeric>

#include "scheduler/shop/engine.h"

namespace takt::sched::shop {
namespace {

constexpr std::size_t at(std::int32_t index) { return static_cast<std::size_t>(index); }

// The jobs that are known to be on a resource, seen in one direction of time.
struct View {
  std::vector<std::size_t> members;  // by earliest start
  std::vector<Time> earliest;        // by member of the resource
  std::vector<Time> latest;          // latest end
};

Need starts_from(const Member& member, Time value, bool mirrored) {
  return mirrored ? Need::bound(greatest_of(member.end), value + member.end_offset)
                  : Need::bound(least_of(member.start), value);
}

Need ends_by(const Member& member, Time value, bool mirrored) {
  return mirrored ? Need::bound(least_of(member.start), -value)
                  : Need::bound(greatest_of(member.end), member.end_offset - value);
}

}  // namespace

bool Engine::propagate_resource(Resource& resource) {
  if (resource.capacity > 1) return energy(resource);
  for (const bool mirrored : {false, true}) {
    if (!overload_and_order(resource, mirrored)) return false;
    if (!push_by_predecessors(resource, mirrored)) return false;
  }
  return true;
}

namespace {

template <class Values, class Assigned>
View view_of(const std::vector<Member>& members, const Values& values, const Assigned& assigned, bool mirrored) {
  View view;
  view.earliest.resize(members.size());
  view.latest.resize(members.size());
  for (std::size_t i = 0; i < members.size(); ++i) {
    const Member& member = members[i];
    if (assigned[at(member.present)] <= 0) continue;
    const Time start = values[at(least_of(member.start))];
    const Time end = member.end_offset - values[at(greatest_of(member.end))];
    view.earliest[i] = mirrored ? -end : start;
    view.latest[i] = mirrored ? -start : end;
    view.members.push_back(i);
  }
  std::sort(view.members.begin(), view.members.end(), [&](std::size_t a, std::size_t b) {
    return view.earliest[a] != view.earliest[b] ? view.earliest[a] < view.earliest[b] : a < b;
  });
  return view;
}

}  // namespace

bool Engine::overload_and_order(Resource& resource, bool mirrored) {
  const std::vector<Member>& members = resource.members;
  const View view = view_of(members, values_, assigned_, mirrored);
  const std::size_t n = view.members.size();
  std::vector<Time> ends;
  for (const std::size_t m : view.members) ends.push_back(view.latest[m]);
  std::sort(ends.begin(), ends.end());
  ends.erase(std::unique(ends.begin(), ends.end()), ends.end());
  std::vector<Time> work(n + 1, 0);  // of the jobs from this one on that must end by `end`
  std::vector<Need> needs;
  // All jobs of [from, end) are in the window; `more` must come after them.
  const auto window_needs = [&](Time from, Time end, Time weaker_end) {
    needs.clear();
    for (const std::size_t m : view.members) {
      if (view.earliest[m] < from || view.latest[m] > end) continue;
      needs.push_back(starts_from(members[m], from, mirrored));
      needs.push_back(ends_by(members[m], weaker_end, mirrored));
      if (members[m].present != kTrueLit) needs.push_back(Need::lit(members[m].present));
    }
  };
  for (const Time end : ends) {
    for (std::size_t i = n; i-- > 0;) {
      const std::size_t m = view.members[i];
      work[i] = work[i + 1] + (view.latest[m] <= end ? members[m].duration : 0);
      const Time excess = view.earliest[m] + work[i] - end;
      if (view.latest[m] > end || excess <= 0) continue;
      window_needs(view.earliest[m], end, end + excess - 1);
      return refuse(needs);
    }
    Time fullest = -kNever;
    Time fullest_from = 0;
    for (std::size_t i = 0; i < n; ++i) {
      const std::size_t m = view.members[i];
      if (view.latest[m] <= end) {
        if (view.earliest[m] + work[i] > fullest) {
          fullest = view.earliest[m] + work[i];
          fullest_from = view.earliest[m];
        }
        continue;
      }
      // m is not among those that end by `end`. Would it fit before one of them?
      Time from = 0;
      Time excess = fullest + members[m].duration - end;
      if (excess > 0) {
        from = fullest_from;
      } else {
        from = view.earliest[m];
        excess = from + work[i] + members[m].duration - end;
        if (excess <= 0 || work[i] == 0) continue;
      }
      Reason reason;
      for (const std::size_t j : view.members) {
        if (view.earliest[j] < from || view.latest[j] > end) continue;
        const Lit j_first =
            mirrored ? resource.before[m * members.size() + j] : resource.before[j * members.size() + m];
        if (j_first < 0 || assigned_[at(j_first)] > 0) continue;
        if (reason.kind == Kind::kNone) {
          window_needs(from, end, end + excess - 1);
          needs.push_back(starts_from(members[m], from, mirrored));
          if (members[m].present != kTrueLit) needs.push_back(Need::lit(members[m].present));
          reason = keep(needs, Kind::kNeeds);
        }
        if (!assign(j_first, reason)) return false;
      }
    }
  }
  return true;
}

bool Engine::push_by_predecessors(Resource& resource, bool mirrored) {
  const std::vector<Member>& members = resource.members;
  const View view = view_of(members, values_, assigned_, mirrored);
  std::vector<Need> needs;
  for (std::size_t i = 0; i < members.size(); ++i) {
    Time work = 0;
    Time pushed = -kNever;
    Time from = 0;
    const auto first = [&](std::size_t j) {
      return mirrored ? resource.before[i * members.size() + j] : resource.before[j * members.size() + i];
    };
    for (std::size_t k = view.members.size(); k-- > 0;) {
      const std::size_t j = view.members[k];
      if (j == i) continue;
      const Lit lit = first(j);
      if (lit < 0 || assigned_[at(lit)] <= 0) continue;
      work += members[j].duration;
      if (view.earliest[j] + work > pushed) {
        pushed = view.earliest[j] + work;
        from = view.earliest[j];
      }
    }
    const Bound bound = mirrored ? greatest_of(members[i].end) : least_of(members[i].start);
    const Time target = mirrored ? pushed + members[i].end_offset : pushed;
    if (work == 0 || values_[at(bound)] >= target) continue;
    needs.clear();
    for (const std::size_t j : view.members) {
      if (j == i || view.earliest[j] < from) continue;
      const Lit lit = first(j);
      if (lit < 0 || assigned_[at(lit)] <= 0) continue;
      needs.push_back(starts_from(members[j], from, mirrored));
      needs.push_back(Need::lit(lit));
      if (members[j].present != kTrueLit) needs.push_back(Need::lit(members[j].present));
    }
    if (!raise(bound, target, keep(needs, Kind::kShiftedNeeds))) return false;
  }
  return true;
}

// Work that lies in a window for certain against what the resource can do there.
bool Engine::energy(Resource& resource) {
  const std::vector<Member>& members = resource.members;
  const View view = view_of(members, values_, assigned_, false);
  std::vector<Time> ends;
  for (const std::size_t m : view.members) ends.push_back(view.latest[m]);
  std::sort(ends.begin(), ends.end());
  ends.erase(std::unique(ends.begin(), ends.end()), ends.end());
  for (const Time end : ends) {
    Time work = 0;
    for (std::size_t i = view.members.size(); i-- > 0;) {
      const std::size_t m = view.members[i];
      if (view.latest[m] > end) continue;
      work += members[m].duration * members[m].demand;
      const Time from = view.earliest[m];
      const Time excess = work - resource.capacity * (end - from);
      if (excess <= 0) continue;
      std::vector<Need> needs;
      const Time weaker = end + (excess - 1) / resource.capacity;
      for (const std::size_t k : view.members) {
        if (view.earliest[k] < from || view.latest[k] > end) continue;
        needs.push_back(starts_from(members[k], from, false));
        needs.push_back(ends_by(members[k], weaker, false));
        if (members[k].present != kTrueLit) needs.push_back(Need::lit(members[k].present));
      }
      return refuse(std::move(needs));
    }
  }
  return true;
}

}  // namespace takt::sched::shop
