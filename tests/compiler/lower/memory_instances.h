// Published problems of static memory planning, as test and bench read them.
#pragma once

#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "compiler/lower/memory_plan.h"

namespace takt::lower {

// A CSV file of id,lower,upper,size with half-open lifetimes; empty when it cannot be read.
inline std::vector<Block> read_instance(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::vector<Block> blocks;
  if (!std::getline(file, line) || line != "id,lower,upper,size") return blocks;
  while (std::getline(file, line)) {
    std::istringstream cells(line);
    std::string id, lower, upper, size;
    std::getline(cells, id, ',');
    std::getline(cells, lower, ',');
    std::getline(cells, upper, ',');
    std::getline(cells, size, ',');
    blocks.push_back({std::stoull(size), static_cast<std::uint32_t>(std::stoul(lower)),
                      static_cast<std::uint32_t>(std::stoul(upper) - 1)});
  }
  return blocks;
}

}  // namespace takt::lower
