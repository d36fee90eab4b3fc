#include "pipeline/models/contract_file.h"

#include <algorithm>
#include <filesystem>

#include "runtime/base/digest.h"
#include "runtime/base/file.h"
#include "runtime/base/yaml.h"

namespace takt::pipeline {
namespace {

constexpr std::int64_t kMostClasses = 1024;

std::uint32_t whole(const YamlNode& node, std::int64_t min, std::int64_t max) {
  return static_cast<std::uint32_t>(node.integer(min, max));
}

std::string read_hash(const YamlNode& node) {
  const std::string hash = node.text();
  const bool valid = hash.size() == 32 && hash.find_first_not_of("0123456789abcdef") == std::string::npos;
  if (!hash.empty() && !valid) node.error("expected 32 lower-case hexadecimal digits: xxhsum -H2 FILE prints them");
  return hash;
}

void read_three(const YamlNode& node, double min, double max, std::array<double, 3>& out) {
  const std::vector<double> values = node.numbers(3, min, max);
  if (values.size() == 3) std::copy(values.begin(), values.end(), out.begin());
}

ModelInput read_input(const YamlNode& node) {
  ModelInput input;
  input.tensor = node.at("tensor").text();
  input.width = whole(node.at("width"), 1, 4096);
  input.height = whole(node.at("height"), 1, 4096);
  input.colour =
      node.at("colour").one_of({"rgb", "bgr"}) == "bgr" ? kernels::ColourOrder::kBgr : kernels::ColourOrder::kRgb;
  input.fit =
      node.at("resize").one_of({"plain", "letterbox"}) == "letterbox" ? kernels::Fit::kLetterbox : kernels::Fit::kPlain;
  if (input.fit == kernels::Fit::kLetterbox) input.pad = whole(node.at("pad"), 0, 255);
  input.scale = node.at("scale").number(1e-6, 1e3);
  read_three(node.at("mean"), -1e4, 1e4, input.mean);
  read_three(node.at("std"), 1e-6, 1e4, input.std);
  return input;
}

ModelHead read_head(const YamlNode& node, const ModelInput& input) {
  ModelHead head;
  if (node.at("type").one_of({"centre", "fastestdet"}) == "fastestdet") {
    head.form = FastestDetHead{node.at("tensor").text()};
  } else {
    CentreHead centre;
    centre.heatmap = node.at("heatmap").text();
    centre.box = node.at("box").text();
    const YamlNode stride = node.at("stride");
    centre.stride = std::max(1U, whole(stride, 1, 64));
    if (input.width % centre.stride != 0 || input.height % centre.stride != 0) {
      stride.error("an input of " + std::to_string(input.width) + "x" + std::to_string(input.height) +
                   " is no whole number of cells of " + std::to_string(centre.stride) + " pixels");
    }
    head.form = centre;
  }
  head.score_min = static_cast<float>(node.at("score_min").number(1e-3, 1));
  head.nms_iou = static_cast<float>(node.at("nms_iou").number(0, 1));
  head.objects_max = whole(node.at("objects_max"), 1, kMaxObjects);
  return head;
}

Result<ModelContract> read(const YamlDocument& document, const std::string& path, const std::string& model_file) {
  const YamlNode root = document.root();
  ModelContract contract;
  contract.contract_file = path;
  contract.name = root.at("name").text();
  if (contract.name.find('/') != std::string::npos) root.at("name").error("a name without '/': it names plan files");
  read_named_file(root, path, model_file, &contract);
  contract.licence = root.at("licence").text();
  contract.input = read_input(root.at("input"));
  contract.head = read_head(root.at("head"), contract.input);
  contract.classes = read_classes(root);
  contract.loops = read_loops(root);
  contract.states = read_states(root);
  TAKT_RETURN_IF_ERROR(document.finish());
  return contract;
}

}  // namespace

std::vector<ModelClass> read_classes(const YamlNode& root) {
  std::vector<ModelClass> classes;
  const YamlNode node = root.at("classes");
  for (const auto& [name, meaning] : node.entries()) {
    const std::string word = meaning.one_of({"vehicle", "pedestrian", "cyclist", "other", "ignore"});
    classes.push_back({name, object_class_of(word)});
  }
  if (node.is_map() && classes.empty()) node.error("at least one class is needed");
  if (const auto unlisted = root.find("unlisted")) {
    const std::uint32_t count = whole(*unlisted, 1, kMostClasses);
    for (std::uint32_t i = 0; i < count; ++i) {
      std::string name = "class ";
      name += std::to_string(classes.size());
      classes.push_back({std::move(name), std::nullopt});
    }
  }
  return classes;
}

// Files are named relative to the one that names them, so that both can be moved as a whole.
void read_named_file(const YamlNode& root, const std::string& path, const std::string& model_file,
                     ModelContract* contract) {
  const std::filesystem::path file(root.at("file").text());
  contract->hash = read_hash(root.at("hash"));
  if (!model_file.empty()) {
    contract->file = model_file;
  } else if (file.is_relative()) {
    contract->file = (std::filesystem::path(path).parent_path() / file).lexically_normal().string();
  } else {
    contract->file = file.string();
  }
}

std::map<std::string, std::int64_t> read_loops(const YamlNode& network) {
  std::map<std::string, std::int64_t> loops;
  if (const auto node = network.find("loops")) {
    for (const auto& [loop, most] : node->entries()) loops[loop] = std::max<std::int64_t>(1, most.integer(1, 1 << 16));
  }
  return loops;
}

std::map<std::string, std::string> read_states(const YamlNode& network) {
  std::map<std::string, std::string> states;
  if (const auto node = network.find("state")) {
    for (const auto& [input, output] : node->entries()) states[input] = output.text();
  }
  return states;
}

Result<ModelContract> load_model(const std::string& path, const std::string& model_file) {
  TAKT_ASSIGN(const YamlDocument document, YamlDocument::load(path));
  return read(document, path, model_file);
}

Result<ModelContract> parse_model(const std::string& text, const std::string& name) {
  TAKT_ASSIGN(const YamlDocument document, YamlDocument::parse(text, name));
  return read(document, name, "");
}

Result<std::string> read_model_file(const ModelContract& contract) {
  std::error_code error;
  if (!std::filesystem::exists(contract.file, error)) {
    return fail(Code::kConfiguration, contract.contract_file + ": the model's file " + contract.file +
                                          " is not there; put it there, change 'file', or give its path on the "
                                          "command line (--model STAGE=FILE, --file FILE)");
  }
  TAKT_ASSIGN(std::string bytes, read_file(contract.file));
  const std::string found = digest(bytes).hex();
  if (found != contract.hash) {
    return fail(Code::kConfiguration, contract.contract_file + ": " + contract.file +
                                          " is not the file of this contract: expected hash " + contract.hash +
                                          ", found " + found + "; check the file, or change 'hash' if it is meant");
  }
  return bytes;
}

}  // namespace takt::pipeline
