// For ros_oracle.py: prints what takt reads from a log, one line per message, or copies the log to MCAP.
//   ros_oracle_tool LOG [OUT.mcap]
// topic, type without "/msg", arrival, capture, bytes, and of odometry the numbers.
#include <cstdio>
#include <string>

#include "sensors/logs/channel_messages.h"
#include "sensors/logs/log_reader.h"
#include "sensors/logs/log_tools.h"

using namespace takt::sensors;

int main(int argc, char** argv) {
  if (argc == 3) {
    const auto copied = copy_log({argv[1]}, argv[2], {});
    if (!copied) std::fprintf(stderr, "%s\n", copied.error().message.c_str());
    return copied ? 0 : 3;
  }
  if (argc != 2) return 2;
  const auto refuse = [](const takt::Error& error) {
    std::fprintf(stderr, "%s\n", error.message.c_str());
    return 3;
  };
  const auto log = open_log(argv[1]);
  if (!log) return refuse(log.error());
  for (const LogProblem& p : (*log)->problems()) std::printf("problem %s %s\n", p.kind.c_str(), p.detail.c_str());
  for (;;) {
    const auto message = (*log)->next();
    if (!message) return 3;
    if (!*message) return 0;
    const LogMessage& m = **message;
    std::string type = m.channel->schema;
    if (const auto at = type.find("/msg/"); at != std::string::npos) type.erase(at, 4);
    std::printf("%s %s %lld %lld", m.channel->topic.c_str(), type.c_str(), static_cast<long long>(m.arrival.ns),
                static_cast<long long>(m.capture.ns));
    if (type == "nav_msgs/Odometry") {
      const auto decode = ego_motion_decoder(*m.channel);
      const auto ego = (*decode)(m.bytes);
      if (!ego) return refuse(ego.error());
      std::printf(" %.17g %.17g %.17g", ego->pose.position[0], ego->velocity[1], ego->angular_velocity[2]);
    } else if (type == "sensor_msgs/Image") {
      const auto decode = raw_image_decoder(*m.channel);
      const auto image = (*decode)(m.bytes);
      if (!image) return refuse(image.error());
      std::printf(" %ux%u %s %zu", image->width, image->height, std::string(image->encoding).c_str(),
                  image->data.size());
    }
    std::printf("\n");
  }
}
