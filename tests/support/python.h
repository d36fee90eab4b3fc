// The Python that writes networks for tests.
#pragma once

#include <cstdlib>
#include <string>

namespace takt::test {

// The oracles' environment, the system's (Debian's python3-onnx), or what is found first; "" when none has numpy and
// onnx.
inline std::string python_with_onnx() {
  const char* const oracles = std::getenv("TAKT_ORACLE_VENV");
  for (const std::string& python : {oracles == nullptr ? std::string() : std::string(oracles) + "/bin/python",
                                    std::string("/usr/bin/python3"), std::string("python3")}) {
    if (!python.empty() && std::system((python + " -c 'import numpy, onnx' 2>/dev/null").c_str()) == 0) return python;
  }
  return {};
}

}  // namespace takt::test
