#include "pipeline/stages/camera_network.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "pipeline/models/detection_head.h"
#include "pipeline/models/usual_extent.h"
#include "pipeline/stages/adversarial.h"
#include "pipeline/stages/camera_view.h"
#include "pipeline/stages/object_output.h"
#include "pipeline/stages/parameter.h"
#include "pipeline/stages/stage_plan.h"
#include "runtime/plan/plan.h"

namespace takt::pipeline {

namespace {

constexpr float kSideViewM = 2.8F;  // a vehicle that looks wider is seen from its side
constexpr float kBorderPx = 1.5F;   // a box that ends this near to the border of the picture may go on outside

// Both are read from the same number: pixel formats of messages are sources of the preprocessing kernel.
template <sensors::PixelFormat format, kernels::PixelSource source>
constexpr bool kSame = static_cast<std::uint32_t>(format) == static_cast<std::uint32_t>(source);
static_assert(kSame<sensors::PixelFormat::kRgb8, kernels::PixelSource::kRgb8>);
static_assert(kSame<sensors::PixelFormat::kBgr8, kernels::PixelSource::kBgr8>);
static_assert(kSame<sensors::PixelFormat::kMono8, kernels::PixelSource::kMono8>);
static_assert(kSame<sensors::PixelFormat::kNv12, kernels::PixelSource::kNv12>);
static_assert(kSame<sensors::PixelFormat::kBayerRggb8, kernels::PixelSource::kBayerRggb8>);

std::uint32_t bytes_per_pixel(kernels::PixelSource format) {
  return format == kernels::PixelSource::kRgb8 || format == kernels::PixelSource::kBgr8 ? 3 : 1;
}

std::vector<NamedTensor> outputs_of(const plan::Plan& plan) {
  std::vector<NamedTensor> out;
  for (const std::uint32_t id : plan.description().outputs) {
    const plan::Tensor& t = plan.description().tensors[id];
    out.push_back({t.name, t.dtype, t.shape});
  }
  return out;
}

// A plan where it runs, and the head that reads it.
struct Network {
  StagePlan plan;
  DetectionHead head;
  std::vector<const float*> tensors;  // what the head wants

  DetectionHead::Boxes decode() { return head.decode(tensors); }
};

Result<Network> make_network(const StageSpec& spec, const CameraPicture& picture) {
  TAKT_ASSIGN(DetectionHead head,
              DetectionHead::create(*spec.model, outputs_of(*spec.plan), picture.width, picture.height));
  TAKT_ASSIGN(StagePlan plan, StagePlan::create(spec, {{{0}}, {}}));
  Network network{std::move(plan), std::move(head), {}};
  for (const std::size_t slot : network.head.wanted()) network.tensors.push_back(network.plan.output<float>(slot));
  return network;
}

class CameraNetwork final : public Stage {
 public:
  CameraNetwork(const StageSpec& spec, const DetectionInputs& inputs, const NetworkConfig& config,
                const CameraPicture& picture, Network network)
      : spec_(spec),
        inputs_(inputs),
        config_(config),
        picture_(picture),
        bytes_(picture_bytes(picture)),
        view_(*spec.inputs[inputs.sample].sensor->camera, spec.inputs[inputs.sample].sensor->vehicle_from_sensor, 1),
        network_(std::move(network)),
        phases_(network_.plan.phases()),
        objects_(spec.model->head.objects_max) {}

  // Take the picture; the plan; boxes.
  [[nodiscard]] int phases() const override { return phases_ + 2; }
  [[nodiscard]] bool parallel(int phase) const override {
    return network_.plan.parallel() && phase > 0 && phase <= phases_;
  }
  [[nodiscard]] std::uint32_t output_schema() const override { return kObjectListSchema; }
  [[nodiscard]] std::uint64_t output_bytes() const override { return sizeof(ObjectList); }
  [[nodiscard]] exec::Session* session() override { return &network_.plan.session(); }
  [[nodiscard]] exec::Offload* offload() const override { return network_.plan.offload(); }
  [[nodiscard]] int behind_device() const override {
    return offload() != nullptr ? 1 + network_.plan.behind_device() : 0;
  }

  void run(int phase, int part, int parts, StageJob& job) override {
    if (phase == 0) {
      take(job);
    } else if (phase <= phases_) {
      if (usable_) network_.plan.run(phase - 1, part, parts, job);
    } else if (!job.failed) {
      write(job);
    }
  }

  void adversarial_input(std::size_t input, std::uint32_t seed, transport::ChunkHeader& header,
                         std::span<std::byte> payload) const override;

 private:
  void take(const StageJob& job);
  void write(StageJob& job);
  [[nodiscard]] Object object_of(const ImageBox& box) const;
  void stand_on_ground(Object& object) const;

  StageSpec spec_;
  DetectionInputs inputs_;
  NetworkConfig config_;
  CameraPicture picture_;
  std::uint64_t bytes_;  // of a payload
  CameraView view_;
  Network network_;
  int phases_;
  std::vector<Object> objects_;
  bool usable_ = false;
};

// The picture as it was promised when the plan was compiled; anything else is left out.
void CameraNetwork::take(const StageJob& job) {
  usable_ = false;
  const sensors::Image* image = image_of(job.inputs[inputs_.sample]);
  if (image == nullptr || image->width != picture_.width || image->height != picture_.height ||
      image->row_pitch != picture_.pitch || image->data_offset != picture_.offset ||
      static_cast<std::uint32_t>(image->format) != static_cast<std::uint32_t>(picture_.format)) {
    return;
  }
  const transport::ChunkView& chunk = job.inputs[inputs_.sample].chunk;
  usable_ = network_.plan.bind_input(0, {chunk.payload, chunk.header->payload_bytes});
}

Object CameraNetwork::object_of(const ImageBox& box) const {
  Object o;
  o.object_class = spec_.model->classes[box.channel].meaning.value_or(ObjectClass::kUnknown);
  o.score = box.score;
  o.u0 = box.u0;
  o.v0 = box.v0;
  o.u1 = box.u1;
  o.v1 = box.v1;
  o.flags = kHasImageBox;
  stand_on_ground(o);
  return o;
}

// The middle of the lower edge is where the near side stands; the centre lies half of the hidden extent further along
// the ray. A box cut by the border of the picture says nothing of where its object stands.
void CameraNetwork::stand_on_ground(Object& o) const {
  if (o.u0 < kBorderPx || o.u1 > static_cast<float>(picture_.width) - kBorderPx ||
      o.v1 > static_cast<float>(picture_.height) - kBorderPx) {
    return;
  }
  // Box edges lie between pixels, camera models count from the centre of pixel 0.
  const float u = (o.u0 + o.u1) / 2 - 0.5F, v = o.v1 - 0.5F;
  const auto foot = view_.ground(u, v, config_.range_max_m);
  if (!foot) return;
  const auto depth = view_.pixel(*foot);
  if (!depth) return;
  const Extent usual = usual_extent(o.object_class);
  const float seen_width = (o.u1 - o.u0) * depth->depth / view_.focal();
  const bool from_side = o.object_class == ObjectClass::kVehicle && seen_width > kSideViewM;
  const auto hidden = static_cast<float>((from_side ? usual.width : usual.length) / 2);
  const Point3 eye = view_.origin();
  const float rx = foot->x - eye.x, ry = foot->y - eye.y;
  const float range = std::sqrt(rx * rx + ry * ry);
  if (!(range > 0)) return;
  o.x = foot->x + rx / range * hidden;
  o.y = foot->y + ry / range * hidden;
  o.z = static_cast<float>(usual.height / 2);
  o.length = static_cast<float>(usual.length);
  o.width = static_cast<float>(usual.width);
  o.height = static_cast<float>(usual.height);
  // One row is range^2 / (focal length * camera height) deep, one column range / focal length wide.
  const float along = range * range / (view_.focal() * eye.z) * config_.foot_sigma_px;
  const float across = range / view_.focal() * config_.foot_sigma_px;
  o.position_variance = (along * along + across * across) / 2 + hidden * hidden / 16;
  o.flags |= kHasPosition;
}

void CameraNetwork::write(StageJob& job) {
  std::size_t count = 0;
  ListFacts facts;
  if (usable_) {
    const DetectionHead::Boxes boxes = network_.decode();
    for (const ImageBox& box : boxes.kept) objects_[count++] = object_of(box);
    facts.input_points = picture_.width * picture_.height;
    facts.dropped = boxes.dropped;
  }
  job.repaired = !usable_ && job.inputs[inputs_.sample].chunk;
  write_objects(job, {objects_.data(), count}, facts, spec_.inputs, inputs_.sample, inputs_.ego);
}

// The steps of a plan take the same time for any picture; boxes do not. Of noise in several grains and of a street of
// random blocks the one with the most candidates is taken.
void CameraNetwork::adversarial_input(std::size_t input, std::uint32_t seed, transport::ChunkHeader& header,
                                      std::span<std::byte> payload) const {
  if (input != inputs_.sample) {
    write_ego_input(header, payload);
    return;
  }
  if (payload.size() < bytes_) return;
  header.schema = sensors::kImageSchema;
  header.payload_bytes = bytes_;
  header.capture_ns = header.arrival_ns = 0;
  auto& image = *reinterpret_cast<sensors::Image*>(payload.data());
  image = {};
  image.width = picture_.width;
  image.height = picture_.height;
  image.row_pitch = picture_.pitch;
  image.format = static_cast<sensors::PixelFormat>(picture_.format);
  const std::size_t rows = (bytes_ - picture_.offset) / picture_.pitch;
  const std::uint32_t step = bytes_per_pixel(picture_.format);
  const auto fill = [&](std::uint32_t grain) {
    for (std::size_t v = 0; v < rows; ++v) {
      auto* row = reinterpret_cast<std::uint8_t*>(payload.data()) + picture_.offset + v * picture_.pitch;
      std::fill_n(row, picture_.pitch, std::uint8_t{0});
      for (std::uint32_t i = 0; i < picture_.width * step; ++i) {
        const std::uint64_t block = (v / grain) * 0x10001 + i / step / grain;
        row[i] = static_cast<std::uint8_t>(SplitMix((std::uint64_t{seed} << 48) + (block << 2) + i % step).next());
      }
    }
  };
  Result<Network> network = make_network(spec_, picture_);
  constexpr std::uint32_t kGrains[] = {1, 4, 12, 24, 48, 96};  // pixels
  std::uint32_t best = kGrains[0];
  std::uint32_t most = 0;
  for (const std::uint32_t grain : kGrains) {
    fill(grain);
    if (!network || !network->plan.bind_input(0, payload) || !network->plan.run()) break;
    const std::uint32_t candidates = network->decode().candidates;
    if (candidates > most) {
      most = candidates;
      best = grain;
    }
  }
  fill(best);
}

}  // namespace

NetworkConfig read_network_config(const YamlNode& params) {
  NetworkConfig config;
  read_parameter(params, "range_max_m", config.range_max_m, 5, 200);
  read_parameter(params, "foot_sigma_px", config.foot_sigma_px, 0.1, 50);
  return config;
}

CameraPicture picture_of(const sensors::CameraModel& camera, sensors::PixelFormat format) {
  CameraPicture picture;
  picture.format = static_cast<kernels::PixelSource>(format);
  picture.width = camera.width;
  picture.height = camera.height;
  picture.pitch = sensors::Image::pitch_for(camera.width, bytes_per_pixel(picture.format));
  picture.offset = sensors::Image{}.data_offset;
  return picture;
}

Result<std::unique_ptr<Stage>> create_camera_network(const StageSpec& spec, const NetworkConfig& config) {
  TAKT_ASSIGN(const DetectionInputs inputs, find_inputs(spec, sensors::SensorKind::kCamera));
  if (!spec.plan || !spec.model) {
    return fail(Code::kConfiguration, "stage '" + spec.name + "' (camera_network), variant '" + spec.variant +
                                          "': no model is given; name its contract with 'model: FILE.yaml'");
  }
  const sensors::RigSensor& sensor = *spec.inputs[inputs.sample].sensor;
  if (!sensor.camera) {
    return fail(Code::kConfiguration, "stage '" + spec.name + "' (camera_network): sensor '" + sensor.name +
                                          "' has no camera model in the rig");
  }
  const CameraPicture picture = picture_of(*sensor.camera, spec.pixel_format);
  const plan::Description& description = spec.plan->description();
  if (description.inputs.size() != 1 || description.tensors[description.inputs[0]].bytes != picture_bytes(picture)) {
    return fail(Code::kConfiguration, "stage '" + spec.name + "': the plan was not compiled for pictures of sensor '" +
                                          sensor.name + "', " + std::to_string(picture.width) + "x" +
                                          std::to_string(picture.height));
  }
  auto network = make_network(spec, picture);
  if (!network) return fail(std::move(network).error().with_context("stage '" + spec.name + "'"));
  return std::make_unique<CameraNetwork>(spec, inputs, config, picture, *std::move(network));
}

}  // namespace takt::pipeline
