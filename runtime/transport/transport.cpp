#include "runtime/transport/transport.h"

#include <fmt/format.h>
#include <utility>

#include "runtime/transport/backends.h"

namespace takt::transport {

Error unknown_topic(const std::string& topic) {
  return {Code::kInternal, "topic '" + topic + "' is not in the plan of the transport"};
}
Error unknown_subscriber(const std::string& topic, const std::string& name) {
  return {Code::kInternal, "topic '" + topic + "': subscriber '" + name + "' is not declared in the plan"};
}
Error second_port(const std::string& topic, const std::string& port) {
  return {Code::kInternal, "topic '" + topic + "': the " + port + " was created before; each port is created once"};
}

Result<std::unique_ptr<Transport>> make_transport(TransportSpec spec) {
  TAKT_ASSIGN(PoolPlan plan, plan_pools(spec));
  if (spec.backend == Backend::kLocal) return make_local(std::move(spec), std::move(plan));
  const RouDiRole role = spec.backend == Backend::kIceoryxEmbedded ? RouDiRole::kEmbedded : RouDiRole::kExternal;
  const std::string name = fmt::format("takt-{:016x}", spec.run);
  return make_iceoryx(std::move(spec), std::move(plan), role, name);
}

Result<std::unique_ptr<Transport>> attach_transport(TransportSpec spec, const std::string& client_name) {
  if (spec.backend == Backend::kLocal) {
    return fail(Code::kConfiguration,
                "client '" + client_name + "': the local transport lives in one process; nobody can attach to it");
  }
  TAKT_ASSIGN(PoolPlan plan, plan_pools(spec));
  const std::string name = fmt::format("takt-{:016x}-{}", spec.run, client_name);
  if (name.size() > 100 || client_name.empty() || client_name.find('/') != std::string::npos) {
    return fail(Code::kConfiguration,
                "client name '" + client_name + "' must have 1 to 78 characters and no '/': it names a file");
  }
  return make_iceoryx(std::move(spec), std::move(plan), RouDiRole::kClient, name);
}

}  // namespace takt::transport
