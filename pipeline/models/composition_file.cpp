#include "pipeline/models/composition_file.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <optional>
#include <set>
#include <utility>

#include "pipeline/models/compile_model.h"
#include "pipeline/models/contract_file.h"
#include "runtime/base/digest.h"
#include "runtime/base/file.h"
#include "runtime/base/suggest.h"
#include "runtime/base/yaml.h"
#include "sensors/messages/messages.h"

namespace takt::pipeline {
namespace {

using compiler::Composition;

constexpr std::int64_t kMostPixels = 16384;      // of one side of a picture
constexpr std::int64_t kMostElements = 1 << 16;  // of a constant that stands in the file

const std::vector<std::string> kFormats = {"rgb8", "bgr8", "mono8", "nv12", "bayer_rggb8"};
constexpr kernels::PixelSource kSources[] = {kernels::PixelSource::kRgb8, kernels::PixelSource::kBgr8,
                                             kernels::PixelSource::kMono8, kernels::PixelSource::kNv12,
                                             kernels::PixelSource::kBayerRggb8};  // of kFormats
const std::vector<std::string> kTypes = {"f32", "f64", "i64", "i32", "i8", "u8", "bool"};

// As images lie in their chunks.
CameraPicture picture_of(kernels::PixelSource format, std::uint32_t width, std::uint32_t height) {
  const bool three = format == kernels::PixelSource::kRgb8 || format == kernels::PixelSource::kBgr8;
  return {format, width, height, sensors::Image::pitch_for(width, three ? 3 : 1), sensors::Image{}.data_offset};
}

class Reader {
 public:
  Reader(YamlNode root, const ReadFile& read) : root_(std::move(root)), read_(read) {}

  Composition run() {
    out_.name = named(root_.at("composition"));
    for (const auto& [name, node] : root_.at("inputs").entries()) input(name, node);
    std::vector<std::pair<std::string, YamlNode>> parts = root_.at("parts").entries();
    for (const auto& [name, node] : parts) {
      check_name(name, node);
      if (!names_.insert(name).second) node.error("'" + name + "' is the name of an input already");
    }
    for (const auto& [name, node] : parts) part(name, node);
    for (const auto& [name, node] : root_.at("outputs").entries()) {
      check_name(name, node);
      out_.outputs.push_back({name, source(node)});
    }
    if (out_.outputs.empty()) root_.error("a composition has outputs");
    return std::move(out_);
  }

 private:
  static void check_name(const std::string& name, const YamlNode& node) {
    const bool plain = !name.empty() && name.size() <= 64 && std::ranges::all_of(name, [](char c) {
      return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-';
    });
    if (!plain) node.error("a name is of letters, digits, '_' and '-': it is referred to as name.output");
  }
  static std::string named(const YamlNode& node) {
    std::string name = node.text();
    if (!name.empty()) check_name(name, node);
    return name;
  }

  static ir::Shape shape_of(const YamlNode& node) {
    ir::Shape shape;
    for (const YamlNode& item : node.items()) {
      const std::int64_t extent = std::max<std::int64_t>(1, item.integer(1, ir::kMaxElements));
      if (shape.rank == kernels::kMaxRank) {
        node.error("a shape of more than " + std::to_string(kernels::kMaxRank) + " dimensions");
        return shape;
      }
      shape.dims[shape.rank++] = extent;
    }
    if (!ir::within_limits(shape)) {
      node.error("a shape of more than 2^31 - 1 elements");
      return {};
    }
    return shape;
  }

  static ir::DType type_named(const std::string& name) {
    using kernels::DType;
    for (const DType type :
         {DType::kF32, DType::kF64, DType::kI64, DType::kI32, DType::kI8, DType::kU8, DType::kBool}) {
      if (name == kernels::name_of(type)) return type;
    }
    return DType::kF32;
  }

  void input(const std::string& name, const YamlNode& node) {
    check_name(name, node);
    names_.insert(name);
    Composition::Input input{name, {}, node.where()};
    if (const auto picture = node.find("picture")) {
      const std::string format = picture->one_of(kFormats);
      const auto known = std::ranges::find(kFormats, format);
      const auto extent = [&](const char* key) {
        return static_cast<std::uint32_t>(std::max<std::int64_t>(1, node.at(key).integer(1, kMostPixels)));
      };
      const std::uint32_t width = extent("width"), height = extent("height");
      const CameraPicture p = picture_of(
          known == kFormats.end() ? kernels::PixelSource::kRgb8 : kSources[known - kFormats.begin()], width, height);
      input.type.dtype = ir::DType::kU8;
      input.type.shape = {1, {static_cast<std::int64_t>(picture_bytes(p))}};
      pictures_[name] = p;
    } else {
      input.type.dtype = type_named(node.at("type").one_of(kTypes));
      input.type.shape = shape_of(node.at("shape"));
      if (const auto counted = node.find("counted")) input.counted = named(*counted);
    }
    out_.inputs.push_back(std::move(input));
  }

  // "part", "part.output", "input", numbers: {f32: [...], shape: [...]} (or f64, i64), or ~ for none.
  Composition::Source source(const YamlNode& node) {
    Composition::Source out;
    out.where = node.where();
    if (node.is_map()) {
      out.constant = constant(node);
      return out;
    }
    // An optional input of an operator that is left out.
    if (!node.is_scalar() && !node.is_sequence()) return out;
    const std::string text = node.text();
    const std::size_t dot = text.find('.');
    out.of = text.substr(0, dot);
    if (dot != std::string::npos) out.output = text.substr(dot + 1);
    return out;
  }

  static std::shared_ptr<const ir::Constant> constant(const YamlNode& node) {
    ir::Constant out;
    const auto floats = node.find("f32");
    const auto doubles = node.find("f64");
    const auto values = floats ? *floats : doubles ? *doubles : node.at("i64");
    const std::vector<YamlNode> items = values.items();
    if (static_cast<std::int64_t>(items.size()) > kMostElements) {
      values.error("more than " + std::to_string(kMostElements) + " numbers; put them into a network");
    }
    ir::Shape shape{1, {static_cast<std::int64_t>(items.size())}};
    if (const auto given = node.find("shape")) shape = shape_of(*given);
    if (items.empty() || shape.elements() != static_cast<std::int64_t>(items.size())) {
      values.error(std::to_string(items.size()) + " numbers for " + std::to_string(shape.elements()) + " elements");
      return std::make_shared<const ir::Constant>(ir::Constant::scalar(0));
    }
    if (floats) {
      std::vector<float> numbers;
      for (const YamlNode& item : items) numbers.push_back(static_cast<float>(item.number(-3e38, 3e38)));
      return std::make_shared<const ir::Constant>(ir::Constant::of(numbers, shape));
    }
    if (doubles) {
      out = ir::Constant::allocate(ir::DType::kF64, shape);
      for (std::size_t i = 0; i < items.size(); ++i) out.tensor().as<double>()[i] = items[i].number(-1e300, 1e300);
      return std::make_shared<const ir::Constant>(std::move(out));
    }
    std::vector<std::int64_t> numbers;
    for (const YamlNode& item : items) numbers.push_back(item.integer(INT64_MIN, INT64_MAX));
    out = ir::Constant::of(numbers);
    out.shape = shape;
    return std::make_shared<const ir::Constant>(std::move(out));
  }

  static std::optional<std::int64_t> whole(const std::string& text) {
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
    return value;
  }
  static std::optional<float> real(const std::string& text) {
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) return std::nullopt;
    return static_cast<float>(value);
  }

  // What looks like a whole number is one, what looks like a number is one.
  static ir::Attribute attribute(const YamlNode& node) {
    if (!node.is_sequence()) {
      const std::string text = node.text();
      if (const auto v = whole(text)) return *v;
      if (const auto v = real(text)) return *v;
      return text;
    }
    std::vector<std::int64_t> integers;
    std::vector<float> numbers;
    bool all_whole = true;
    for (const YamlNode& item : node.items()) {
      const std::string text = item.text();
      const auto v = real(text);
      if (!v) {
        item.error("a list is of numbers");
        continue;
      }
      const auto w = whole(text);
      all_whole = all_whole && w;
      integers.push_back(w.value_or(0));
      numbers.push_back(*v);
    }
    if (all_whole) return integers;
    return numbers;
  }

  void part(const std::string& name, const YamlNode& node) {
    Composition::Part part;
    part.name = name;
    part.where = node.where();
    if (const auto model = node.find("model")) {
      network_of_contract(*model, node, part);
    } else if (const auto onnx = node.find("onnx")) {
      part.source = onnx->text();
      const YamlNode hash = node.at("hash");
      const std::string wanted = hash.text();
      feeds_by_name(node, part);
      part.loops = read_loops(node);
      part.states = read_states(node);
      bytes(*onnx, wanted, hash, part);
    } else {
      operation(node, part);
    }
    out_.parts.push_back(std::move(part));
  }

  void feeds_by_name(const YamlNode& node, Composition::Part& part) {
    for (const auto& [input, from] : node.at("inputs").entries()) part.feeds.push_back({input, source(from)});
  }

  void bytes(const YamlNode& node, const std::string& wanted, const YamlNode& hash, Composition::Part& part) {
    if (part.source.empty()) return;
    auto read = read_(part.name, part.source);
    if (!read) {
      node.error(read.error().message);
      return;
    }
    const std::string found = digest(*read).hex();
    if (found != wanted) {
      hash.error("expected hash " + wanted + ", " + part.source + " has " + found +
                 "; check the file, or change 'hash' if it is meant");
    }
    part.onnx = *std::move(read);
  }

  // A contract says what file, and how a picture gets into the network.
  void network_of_contract(const YamlNode& model, const YamlNode& node, Composition::Part& part) {
    feeds_by_name(node, part);
    std::string file = model.text();
    if (file.empty()) return;
    auto text = read_("", file);
    if (!text) return model.error(text.error().message);
    auto contract = parse_model(*text, file);
    if (!contract) return model.error(contract.error().message);
    const std::filesystem::path onnx(contract->file);
    part.source = onnx.is_absolute() ? contract->file
                                     : (std::filesystem::path(file).parent_path() / onnx).lexically_normal().string();
    bytes(model, contract->hash, model, part);
    part.loops = contract->loops;
    part.states = contract->states;
    for (Composition::Feed& feed : part.feeds) {
      const auto picture = pictures_.find(feed.from.of);
      if (feed.input != contract->input.tensor || picture == pictures_.end()) continue;
      Composition::Part preprocess;
      preprocess.name = part.name + "/preprocess";  // no name of a file's part
      preprocess.where = feed.from.where;
      preprocess.op = "takt.Preprocess";
      preprocess.attributes = attributes_of(preprocess_for(contract->input, picture->second));
      preprocess.attributes["out_width"] = std::int64_t{contract->input.width};
      preprocess.attributes["out_height"] = std::int64_t{contract->input.height};
      preprocess.feeds.push_back({"", feed.from});
      feed.from.of = preprocess.name;
      out_.parts.push_back(std::move(preprocess));
    }
  }

  void operation(const YamlNode& node, Composition::Part& part) {
    part.op = node.at("operator").text();
    for (const YamlNode& from : node.at("inputs").items()) part.feeds.push_back({"", source(from)});
    if (const auto attributes = node.find("attributes")) {
      for (const auto& [key, value] : attributes->entries()) part.attributes[key] = attribute(value);
    }
    if (const auto outputs = node.find("outputs")) {
      for (const YamlNode& output : outputs->items()) part.outputs.push_back(named(output));
    }
    // A picture tells the geometry that it has.
    if (part.op != "takt.Preprocess" || part.feeds.empty()) return;
    const auto picture = pictures_.find(part.feeds[0].from.of);
    if (picture == pictures_.end()) return;
    const auto known = attributes_of(preprocess_for({}, picture->second));
    part.attributes.insert(known.begin(), known.end());
  }

  YamlNode root_;
  const ReadFile& read_;
  Composition out_;
  std::set<std::string> names_;
  std::map<std::string, CameraPicture> pictures_;
};

Result<Composition> read(const YamlDocument& document, const ReadFile& read_file) {
  Composition composition = Reader(document.root(), read_file).run();
  TAKT_RETURN_IF_ERROR(document.finish());
  return composition;
}

}  // namespace

Result<bool> is_composition(const std::string& path) {
  TAKT_ASSIGN(const YamlDocument document, YamlDocument::load(path));
  return document.root().is_map() && document.root().find("composition").has_value();
}

Result<Composition> load_composition(const std::string& path, const std::map<std::string, std::string>& files) {
  TAKT_ASSIGN(const YamlDocument document, YamlDocument::load(path));
  std::set<std::string> unused;
  for (const auto& [part, file] : files) unused.insert(part);
  const ReadFile read_beside = [&](const std::string& part, std::string& file) -> Result<std::string> {
    const auto given = files.find(part);
    if (given != files.end()) {
      unused.erase(part);
      file = given->second;
      return read_file(file);
    }
    const std::filesystem::path beside(file);
    const std::string full =
        beside.is_absolute() ? file : (std::filesystem::path(path).parent_path() / beside).lexically_normal().string();
    auto bytes = read_file(full);
    if (!bytes) {
      bytes.error().message += "; put it there, or give its path on the command line (--file PART=FILE)";
    }
    return bytes;
  };
  TAKT_ASSIGN(Composition composition, read(document, read_beside));
  if (!unused.empty()) {
    std::vector<std::string> networks;
    for (const Composition::Part& part : composition.parts) {
      if (part.op.empty()) networks.push_back(part.name);
    }
    return fail(Code::kUsage, "--file " + *unused.begin() + "=...: " + path + " has no such network" +
                                  did_you_mean(*unused.begin(), networks));
  }
  return composition;
}

Result<Composition> parse_composition(const std::string& text, const std::string& name, const ReadFile& read_file) {
  TAKT_ASSIGN(const YamlDocument document, YamlDocument::parse(text, name));
  return read(document, read_file);
}

}  // namespace takt::pipeline
