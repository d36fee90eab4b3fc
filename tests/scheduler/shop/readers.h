// Readers of published scheduling problems (shared data, scheduling/), for tests and benches only.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "scheduler/shop/shop.h"

namespace takt::sched::shop::test {

inline std::string text_of(const std::filesystem::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

inline Job job_of(std::vector<Mode> modes, Time tail = 0) {
  Job job;
  job.modes = std::move(modes);
  job.tail = tail;
  return job;
}

// JSPLIB: comment lines, jobs and machines, then one line per job of (machine, duration).
inline Shop read_jsplib(const std::filesystem::path& path) {
  std::istringstream in(text_of(path));
  std::string line;
  std::string rest;
  while (std::getline(in, line)) {
    if (!line.empty() && line[0] != '#') rest += line + "\n";
  }
  std::istringstream numbers(rest);
  std::size_t jobs = 0;
  std::size_t machines = 0;
  numbers >> jobs >> machines;
  Shop shop;
  shop.capacities.assign(machines, 1);
  for (std::size_t j = 0; j < jobs; ++j) {
    for (std::size_t k = 0; k < machines; ++k) {
      std::uint32_t machine = 0;
      Time duration = 0;
      numbers >> machine >> duration;
      const auto index = static_cast<std::uint32_t>(shop.jobs.size());
      shop.jobs.push_back(job_of({{duration, {{machine, 1}}}}));
      if (k > 0) shop.orders.push_back({index - 1, index, 0});
    }
  }
  return shop;
}

// Flexible job shop: jobs, machines, (mean flexibility); per job the number of operations, per operation the number of
// machines and (machine from 1, duration).
inline Shop read_fjsp(const std::filesystem::path& path) {
  std::istringstream in(text_of(path));
  std::string header;
  std::getline(in, header);
  std::istringstream head(header);
  std::size_t jobs = 0;
  std::size_t machines = 0;
  head >> jobs >> machines;
  Shop shop;
  shop.capacities.assign(machines, 1);
  for (std::size_t j = 0; j < jobs; ++j) {
    std::size_t operations = 0;
    in >> operations;
    for (std::size_t k = 0; k < operations; ++k) {
      std::size_t choices = 0;
      in >> choices;
      std::vector<Mode> modes;
      for (std::size_t c = 0; c < choices; ++c) {
        std::uint32_t machine = 0;
        Time duration = 0;
        in >> machine >> duration;
        modes.push_back({duration, {{machine - 1, 1}}});
      }
      const auto index = static_cast<std::uint32_t>(shop.jobs.size());
      shop.jobs.push_back(job_of(std::move(modes)));
      if (k > 0) shop.orders.push_back({index - 1, index, 0});
    }
  }
  return shop;
}

// Patterson format: jobs and resources, capacities, then per job duration, demands, number of successors, successors
// from 1.
inline Shop read_rcp(const std::filesystem::path& path) {
  std::istringstream in(text_of(path));
  std::size_t jobs = 0;
  std::size_t resources = 0;
  in >> jobs >> resources;
  Shop shop;
  shop.capacities.resize(resources);
  for (std::int64_t& capacity : shop.capacities) in >> capacity;
  for (std::uint32_t j = 0; j < jobs; ++j) {
    Mode mode;
    in >> mode.duration;
    for (std::uint32_t r = 0; r < resources; ++r) {
      std::int64_t demand = 0;
      in >> demand;
      if (demand > 0) mode.uses.push_back({r, demand});
    }
    std::size_t successors = 0;
    in >> successors;
    for (std::size_t s = 0; s < successors; ++s) {
      std::uint32_t next = 0;
      in >> next;
      shop.orders.push_back({j, next - 1, 0});
    }
    shop.jobs.push_back(job_of({std::move(mode)}));
  }
  return shop;
}

// The MiniZinc data of perception_synth: resource 0 holds CPU jobs at a time, 1 to 3 one each; the objective is the
// longest of the chains from release of their first job to the end of their last.
inline Shop read_perception(const std::filesystem::path& path) {
  std::map<std::string, std::vector<std::int64_t>> values;
  std::istringstream in(text_of(path));
  for (std::string item; std::getline(in, item, ';');) {
    const std::size_t equals = item.find('=');
    if (equals == std::string::npos) continue;
    std::string name = item.substr(0, equals);
    std::erase_if(name, [](char c) { return c == ' ' || c == '\n' || c == '\r'; });
    std::string list = item.substr(equals + 1);
    for (char& c : list) {
      if (c == '[' || c == ']' || c == ',') c = ' ';
    }
    std::istringstream numbers(list);
    for (std::int64_t number = 0; numbers >> number;) values[name].push_back(number);
  }
  Shop shop;
  shop.capacities = {values["CPU"].at(0), 1, 1, 1};
  for (std::size_t j = 0; j < static_cast<std::size_t>(values["N"].at(0)); ++j) {
    Job job = job_of({{values["d"].at(j), {{static_cast<std::uint32_t>(values["res"].at(j)), 1}}}}, kNoTail);
    job.release = values["r"].at(j);
    job.deadline = values["dl"].at(j);
    shop.jobs.push_back(std::move(job));
  }
  for (std::size_t i = 0; i < values["pa"].size(); ++i) {
    shop.orders.push_back(
        {static_cast<std::uint32_t>(values["pa"][i] - 1), static_cast<std::uint32_t>(values["pb"][i] - 1), 0});
  }
  for (std::size_t k = 0; k < values["cs"].size(); ++k) {
    shop.jobs[static_cast<std::size_t>(values["ce"][k] - 1)].tail =
        -shop.jobs[static_cast<std::size_t>(values["cs"][k] - 1)].release;
  }
  return shop;
}

struct Known {
  Time lower = 0, upper = 0;
};
// Best known bounds by instance name (bks_scheduleopt_2026.json).
inline std::map<std::string, Known> read_best_known(const std::filesystem::path& path) {
  std::map<std::string, Known> out;
  for (const auto& entry : nlohmann::json::parse(text_of(path))) {
    std::string name = entry["instance"];
    if (name.ends_with("js")) name.resize(name.size() - 2);  // ta01js and its like are ta01 elsewhere
    out[name] = {entry["lower_bound"], entry["upper_bound"]};
  }
  return out;
}

}  // namespace takt::sched::shop::test
