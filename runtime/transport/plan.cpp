#include <fmt/format.h>
#include <sys/statvfs.h>
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <set>

#include "runtime/transport/backends.h"
#include "runtime/transport/layout.h"
#include "runtime/transport/transport.h"

namespace takt::transport {
namespace {

Status check_range(const std::string& what, std::uint64_t value, std::uint64_t max) {
  if (value >= 1 && value <= max) return {};
  return fail(Code::kConfiguration, fmt::format("{} is {}; the transport allows 1 to {}", what, value, max));
}

Status check_name(const std::string& what, const std::string& name) {
  if (!name.empty() && name.size() <= limits::kName) return {};
  return fail(Code::kConfiguration, fmt::format("{} '{}' has {} characters; the transport allows 1 to {}", what, name,
                                                name.size(), limits::kName));
}

Status check_topic(const TopicSpec& topic) {
  TAKT_RETURN_IF_ERROR(check_name("topic name", topic.name));
  const std::string where = "topic '" + topic.name + "': ";
  // The class must stay below 4 GiB: sizes are 32-bit inside the library.
  const std::uint64_t largest = std::numeric_limits<std::uint32_t>::max() - chunk_bytes(0) - 8;
  TAKT_RETURN_IF_ERROR(check_range(where + "payload capacity in bytes", topic.payload_capacity, largest));
  TAKT_RETURN_IF_ERROR(
      check_range(where + "number of chunks the publisher has open at once", topic.loans, limits::kLoans));
  if (topic.subscribers.size() > limits::kSubscribersPerTopic) {
    return fail(Code::kConfiguration, fmt::format("{}{} subscribers; the transport allows {}", where,
                                                  topic.subscribers.size(), limits::kSubscribersPerTopic));
  }
  std::set<std::string> names;
  for (const SubscriberSpec& subscriber : topic.subscribers) {
    TAKT_RETURN_IF_ERROR(check_name(where + "subscriber name", subscriber.name));
    if (!names.insert(subscriber.name).second) {
      return fail(Code::kConfiguration, where + "subscriber '" + subscriber.name + "' is declared twice");
    }
    const std::string subject = where + "subscriber '" + subscriber.name + "': ";
    TAKT_RETURN_IF_ERROR(check_range(subject + "queue depth", subscriber.queue_depth, limits::kQueue));
    TAKT_RETURN_IF_ERROR(check_range(subject + "number of chunks held at once", subscriber.held, limits::kHeld));
  }
  return {};
}

}  // namespace

void give_export_classes(TransportSpec& spec) {
  std::uint64_t largest = 0;
  for (const TopicSpec& topic : spec.topics) largest = std::max(largest, topic.payload_capacity);
  for (TopicSpec& topic : spec.topics) {
    if (topic.exported == 0) continue;
    largest += kPayloadAlignment;
    topic.payload_capacity = largest;
  }
}

Result<PoolPlan> plan_pools(const TransportSpec& spec) {
  std::set<std::string> names;
  std::size_t subscribers = 0;
  PoolPlan plan;
  for (const TopicSpec& topic : spec.topics) {
    TAKT_RETURN_IF_ERROR(check_topic(topic));
    if (!names.insert(topic.name).second) {
      return fail(Code::kConfiguration, "topic '" + topic.name + "' is declared twice");
    }
    subscribers += topic.subscribers.size();
    const std::uint64_t bytes = chunk_bytes(topic.payload_capacity);
    auto pool =
        std::find_if(plan.pools.begin(), plan.pools.end(), [&](const Pool& p) { return p.chunk_bytes == bytes; });
    if (pool == plan.pools.end()) pool = plan.pools.insert(pool, Pool{0, bytes, 0, {}});
    pool->payload_capacity = std::max(pool->payload_capacity, topic.payload_capacity);
    pool->chunks += chunk_count(topic);
    pool->topics.push_back(topic.name);
  }
  for (const TopicSpec& topic : spec.topics) {
    for (const TopicSpec& other : spec.topics) {
      if (topic.exported == 0 || &topic == &other ||
          chunk_bytes(other.payload_capacity) < chunk_bytes(topic.payload_capacity) || other.exported > 0) {
        continue;
      }
      return fail(Code::kConfiguration,
                  "export topic '" + topic.name + "' has no size class above that of '" + other.name + "'");
    }
  }
  if (spec.topics.size() > limits::kPublishers) {
    return fail(Code::kConfiguration,
                fmt::format("{} topics; the transport allows {}", spec.topics.size(), limits::kPublishers));
  }
  if (subscribers > limits::kSubscribers) {
    return fail(Code::kConfiguration,
                fmt::format("{} subscribers in all; the transport allows {}", subscribers, limits::kSubscribers));
  }
  // The library wants ascending sizes.
  std::sort(plan.pools.begin(), plan.pools.end(),
            [](const Pool& a, const Pool& b) { return a.chunk_bytes < b.chunk_bytes; });
  if (plan.pools.size() > limits::kPools) {
    return fail(Code::kConfiguration,
                fmt::format("{} different payload capacities; the transport has {} pools. Give topics of similar size "
                            "the same capacity, for example '{}' and '{}'",
                            plan.pools.size(), limits::kPools, plan.pools[0].topics[0], plan.pools[1].topics[0]));
  }
  for (const Pool& pool : plan.pools) plan.user_bytes += pool.chunk_bytes * pool.chunks;
  if (spec.backend != Backend::kLocal) plan.management_bytes = iceoryx_management_bytes(plan.pools);
  return plan;
}

std::string PoolPlan::text() const {
  std::string out =
      fmt::format("{:>12} {:>12} {:>7} {:>12}  {}\n", "payload B", "chunk B", "chunks", "total B", "topics");
  for (const Pool& pool : pools) {
    out += fmt::format("{:>12} {:>12} {:>7} {:>12} ", pool.payload_capacity, pool.chunk_bytes, pool.chunks,
                       pool.chunk_bytes * pool.chunks);
    for (const std::string& topic : pool.topics) out += " " + topic;
    out += "\n";
  }
  out += fmt::format("chunks {} B, management {} B, together {:.1f} MB of shared memory\n", user_bytes,
                     management_bytes, static_cast<double>(user_bytes + management_bytes) * 1e-6);
  return out;
}

std::string roudi_config(const PoolPlan& plan) {
  std::string out = "[general]\nversion = 1\n\n[[segment]]\n";
  for (const Pool& pool : plan.pools) {
    // RouDi adds its own header to the size of the configuration.
    out += fmt::format("\n[[segment.mempool]]\nsize = {}\ncount = {}\n", pool.chunk_bytes - limits::kLibraryHeader,
                       pool.chunks);
  }
  return out;
}

Result<std::uint64_t> shared_memory_free() {
  struct statvfs info {};
  if (statvfs("/dev/shm", &info) != 0) {
    return fail(Code::kEnvironment,
                fmt::format("/dev/shm: free space cannot be read: {}; shared memory must be mounted "
                            "there (mount -t tmpfs tmpfs /dev/shm)",
                            std::strerror(errno)));
  }
  return static_cast<std::uint64_t>(info.f_bavail) * info.f_frsize;
}

}  // namespace takt::transport
