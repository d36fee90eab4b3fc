#include "pipeline/assembly/digests.h"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "runtime/base/file.h"

namespace takt::pipeline {
namespace {

using nlohmann::json;

std::string log_hash(const RunData& data) {
  for (const HashedInput& input : data.inputs) {
    if (input.role == "log") return input.digest.hex();
  }
  return "";
}

// Of every network that ran: its file and its contract, wherever they lie.
std::string models_hash(const RunData& data) {
  json models = json::array();
  for (const HashedInput& input : data.inputs) {
    if (input.role.rfind("model ", 0) == 0 || input.role.rfind("contract ", 0) == 0) {
      models.push_back({input.role, input.digest.hex()});
    }
  }
  return digest(models.dump()).hex();
}

// What must be equal before digests can be: everything that decides bytes beside the code itself. The table's starts
// decide which samples a job uses; on how many cores a job runs does not.
json conditions(const RunData& data) {
  json table = json::array();
  for (const sched::Slot& slot : data.schedule.slots) table.push_back({slot.stage, slot.job, slot.start, slot.end});
  return {{"isa_class", data.environment.isa_class},
          {"jpeg_library", data.environment.jpeg_library},
          {"log", log_hash(data)},
          {"models", models_hash(data)},
          {"table", digest(table.dump()).hex()}};
}

Result<json> load(const std::string& path) {
  TAKT_ASSIGN(const std::string text, read_file(path));
  json document = json::parse(text, nullptr, false);
  if (!document.is_object() || !document.contains("entries") || !document["entries"].is_array()) {
    return fail(Code::kInput, path + ": no digest file (expected JSON with an array 'entries')");
  }
  for (const json& entry : document["entries"]) {
    bool sound = entry.is_object() && entry.contains("conditions") && entry["conditions"].is_object() &&
                 entry.contains("topics") && entry["topics"].is_object();
    if (sound) {
      for (const json& condition : entry["conditions"]) sound = sound && condition.is_string();
    }
    if (!sound) {
      return fail(Code::kInput,
                  path + ": an entry without 'conditions' in words and 'topics'; remove the file and write " +
                      "it anew with --save-digests");
    }
  }
  return document;
}

}  // namespace

Status check_digests(const std::string& path) {
  TAKT_RETURN_IF_ERROR(load(path));
  return {};
}

Status compare_digests(RunData& data, const std::string& path) {
  TAKT_ASSIGN(const json document, load(path));
  const json wanted = conditions(data);
  const json* entry = nullptr;
  std::string why = "no entry for instruction set class " + data.environment.isa_class;
  for (const json& candidate : document["entries"]) {
    const json& have = candidate["conditions"];
    if (have == wanted) entry = &candidate;
    if (have.value("isa_class", "") != data.environment.isa_class) continue;
    for (const char* key : {"jpeg_library", "log", "models", "table"}) {
      if (have.value(key, "") != wanted[key]) {
        why = std::string("another ") + key + " (" + wanted[key].get<std::string>() + ", the file has " +
              have.value(key, "none") + ")";
        break;
      }
    }
  }
  for (TopicDigest& topic : data.digests) {
    if (entry == nullptr) {
      topic.compared = "NOT COMPARED: " + why;
    } else if (!(*entry)["topics"].contains(topic.topic)) {
      topic.compared = "NOT COMPARED: topic not in the file";
    } else {
      topic.compared = (*entry)["topics"][topic.topic] == topic.digest.hex() ? "equal" : "differs";
    }
  }
  return {};
}

Status save_digests(const RunData& data, const std::string& path) {
  json document = {{"entries", json::array()}};
  if (std::filesystem::exists(path)) {
    TAKT_ASSIGN(document, load(path));
  }
  json topics = json::object();
  for (const TopicDigest& topic : data.digests) topics[topic.topic] = topic.digest.hex();
  const json wanted = conditions(data);
  json entries = json::array();
  for (const json& entry : document["entries"]) {
    const json& have = entry["conditions"];
    // One drive per file: entries of other classes and JPEG libraries stay, those of another log do not.
    const bool same_class =
        have.value("isa_class", "") == wanted["isa_class"] && have.value("jpeg_library", "") == wanted["jpeg_library"];
    if (!same_class && have.value("log", "") == wanted["log"]) entries.push_back(entry);
  }
  entries.push_back({{"conditions", wanted}, {"topics", topics}});
  document["entries"] = entries;
  return write_file_atomically(path, document.dump(2) + "\n");
}

}  // namespace takt::pipeline
