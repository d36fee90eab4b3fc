// Private: what transport.cpp needs of the two back ends.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/transport/transport.h"

namespace takt::transport {

// The same words from both back ends.
Error unknown_topic(const std::string& topic);
Error unknown_subscriber(const std::string& topic, const std::string& name);
Error second_port(const std::string& topic, const std::string& port);

Result<std::unique_ptr<Transport>> make_local(TransportSpec spec, PoolPlan plan);

enum class RouDiRole { kEmbedded, kExternal, kClient };
Result<std::unique_ptr<Transport>> make_iceoryx(TransportSpec spec, PoolPlan plan, RouDiRole role,
                                                const std::string& runtime_name);
// Bytes of the management segment that the library reserves for this plan, from its own size functions.
std::uint64_t iceoryx_management_bytes(const std::vector<Pool>& pools);

}  // namespace takt::transport
