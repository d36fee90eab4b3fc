// `takt compile`, `takt plan run` and `takt plan diff` on takt's own network, compositions, and the programs of
// docs/cpp_api.md.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <algorithm>
#include <csignal>
#include <cstring>
#include <fstream>
#include <limits>

#include "runtime/base/file.h"
#include "runtime/base/npy.h"
#include "tests/integration/program.h"
#include "tests/support/onnx_model.h"

namespace takt::test {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

const std::string kModels = std::string(TAKT_SOURCE_DIR) + "/configs/models/";

class PlanCommand : public Program {
 protected:
  void SetUp() override {
    Program::SetUp();
    const Answer answer = compile("net.plan");
    if (answer.code == 5) GTEST_SKIP() << answer.err;
    ASSERT_EQ(answer.code, 0) << answer.err;
  }
  [[nodiscard]] Answer compile(const std::string& out, const std::vector<std::string>& more = {}) const {
    std::vector<std::string> words = {"compile", kModels + "sim_camera.onnx", "--fix", "height=64", "width=96", "-o",
                                      path(out)};
    words.insert(words.end(), more.begin(), more.end());
    return takt(words);
  }
  // Adds to element `at` of a dumped tensor.
  void spoil(const std::string& file, std::size_t at, float by) const {
    NpyArray array = read_npy(path(file)).value();
    float value = 0;
    std::memcpy(&value, array.bytes.data() + at * sizeof value, sizeof value);
    value += by;
    std::memcpy(array.bytes.data() + at * sizeof value, &value, sizeof value);
    ASSERT_TRUE(write_file_atomically(path(file), npy_bytes(array)));
  }
};

TEST_F(PlanCommand, OptimisedAndUnoptimisedAgree) {
  ASSERT_EQ(compile("plain.plan", {"--unoptimised"}).code, 0);
  const Answer answer = takt({"plan", "diff", path("net.plan"), path("plain.plan")});
  EXPECT_EQ(answer.code, 0) << answer.err;
  EXPECT_THAT(answer.out, HasSubstr(" 0 of the first without a partner"));
  EXPECT_EQ(takt({"plan", "diff", path("net.plan"), path("plain.plan"), "--tolerance", "0"}).code, 1)
      << "folding normalisations rounds otherwise";
}

// The graph of the fusion stage lies in no model file; the pipeline's plan of it can be looked at all the same.
TEST_F(PlanCommand, AStageOfAPipelineGivesItsPlan) {
  const std::string pipeline = std::string(TAKT_SOURCE_DIR) + "/configs/pipelines/sim.yaml";
  const Answer written = takt({"compile", pipeline, "--stage", "fusion", "-o", path("fusion.plan")});
  ASSERT_EQ(written.code, 0) << written.err;
  const Answer shown = takt({"plan", "show", path("fusion.plan")});
  EXPECT_EQ(shown.code, 0) << shown.err;
  for (const char* word : {"gate_f64", "assign_f64", "kalman_update_f64", "birth_f64", "death_f64", "motion", "used"}) {
    EXPECT_THAT(shown.out, HasSubstr(word));
  }
  EXPECT_EQ(takt({"plan", "run", path("fusion.plan")}).code, 0) << "on made-up lists";
  EXPECT_EQ(takt({"compile", pipeline, "--stage", "camera_detect/lite", "-o", path("lite.plan")}).code, 0);
  const Answer unknown = takt({"compile", pipeline, "--stage", "fusoin", "-o", path("none.plan")});
  EXPECT_EQ(unknown.code, 2);
  EXPECT_THAT(unknown.err, HasSubstr("fusion/full"));
  EXPECT_FALSE(fs::exists(path("none.plan")));
  EXPECT_EQ(takt({"compile", pipeline, "--stage", "fusion", "--target", "cpu:neon"}).code, 2);
  const Answer whole = takt({"compile", pipeline, "-o", path("none.plan")});
  EXPECT_EQ(whole.code, 2);
  EXPECT_THAT(whole.err, HasSubstr("this is a pipeline: name the stage whose plan to write with --stage"));
}

TEST_F(PlanCommand, TheFirstWrongTensorOfAnotherRuntimeIsNamed) {
  ASSERT_EQ(takt({"plan", "run", path("net.plan"), "--dump-tensors", path("theirs")}).code, 0);
  const Answer same = takt({"plan", "diff", path("net.plan"), path("theirs"), "--tolerance", "0"});
  EXPECT_EQ(same.code, 0) << same.err;
  // By name "box" comes first, by step "heatmap"'s network does: two files of which the later one by name is earlier.
  ASSERT_TRUE(fs::exists(path("theirs/box.npy")));
  std::vector<std::string> files;
  for (const auto& entry : fs::directory_iterator(path("theirs"))) files.push_back(entry.path().filename().string());
  std::sort(files.begin(), files.end());
  const auto relu = std::find_if(files.begin(), files.end(), [](const std::string& f) {
    return f.find("stem") != std::string::npos && f > "box.npy";
  });
  const std::string early = relu != files.end() ? *relu : files.front();
  spoil("theirs/box.npy", 7, 1000);
  spoil("theirs/" + early, 3, 1000);
  for (const bool turned : {false, true}) {
    const Answer answer = turned ? takt({"plan", "diff", path("theirs"), path("net.plan")})
                                 : takt({"plan", "diff", path("net.plan"), path("theirs")});
    EXPECT_EQ(answer.code, 1);
    EXPECT_THAT(answer.err, HasSubstr("is " + early + " (step "));
    EXPECT_THAT(answer.err, HasSubstr("at element [0,0,0,3]"));
  }
  // Doubles, and a folder against a folder.
  NpyArray array = read_npy(path("theirs/heatmap.npy")).value();
  std::vector<std::byte> wide(array.bytes.size() * 2);
  for (std::size_t i = 0; i < array.bytes.size() / 4; ++i) {
    float narrow = 0;
    std::memcpy(&narrow, array.bytes.data() + i * 4, 4);
    const auto value = static_cast<double>(narrow);
    std::memcpy(wide.data() + i * 8, &value, 8);
  }
  fs::create_directory(path("doubles"));
  ASSERT_TRUE(write_file_atomically(path("doubles/heatmap.npy"), npy_bytes({"<f8", array.shape, wide})));
  const Answer doubles = takt({"plan", "diff", path("doubles"), path("theirs"), "--tolerance", "0"});
  EXPECT_EQ(doubles.code, 0) << doubles.err;
  EXPECT_THAT(doubles.out, HasSubstr("1 tensors compared"));
  std::ofstream(path("doubles/heatmap.npy")) << "no array";
  const Answer broken = takt({"plan", "diff", path("doubles"), path("theirs")});
  EXPECT_EQ(broken.code, 3);
  EXPECT_THAT(broken.err, HasSubstr("doubles/heatmap.npy"));
}

TEST_F(PlanCommand, TheFirstNaNIsNamed) {
  const Answer clean = takt({"plan", "run", path("net.plan"), "--watch-nan"});
  EXPECT_EQ(clean.code, 0) << clean.err;
  EXPECT_THAT(clean.out, HasSubstr("every value of every step is finite"));
  std::vector<float> values(std::size_t{3} * 64 * 96, 0.5F);
  const auto bytes = std::as_bytes(std::span(values));
  values[64 * 96 + 2 * 96 + 5] = std::numeric_limits<float>::infinity();
  NpyArray array{"<f4", {1, 3, 64, 96}, {bytes.begin(), bytes.end()}};
  ASSERT_TRUE(write_file_atomically(path("x.npy"), npy_bytes(array)));
  const Answer input = takt({"plan", "run", path("net.plan"), "--input", path("x.npy"), "--watch-nan"});
  EXPECT_EQ(input.code, 1);
  EXPECT_THAT(input.err,
              HasSubstr("image[0,1,2,5] is infinity, one of 1 such values of 18432; it came in as an input"));
  // Finite, but too large for a step.
  values.assign(values.size(), 3e38F);
  array.bytes.assign(bytes.begin(), bytes.end());
  ASSERT_TRUE(write_file_atomically(path("x.npy"), npy_bytes(array)));
  const Answer step = takt({"plan", "run", path("net.plan"), "--input", path("x.npy"), "--watch-nan"});
  EXPECT_EQ(step.code, 1);
  EXPECT_THAT(step.err, HasSubstr("step 0 (conv_first_f32) wrote it, for node"));
}

TEST_F(PlanCommand, APlanIsExchangedOrRefusedInWords) {
  ASSERT_EQ(compile("plain.plan", {"--unoptimised"}).code, 0);
  const Answer swapped = takt({"plan", "swap", path("net.plan"), path("plain.plan"), "--maintenance-ms", "1000"});
  EXPECT_EQ(swapped.code, 0) << swapped.err;
  EXPECT_THAT(swapped.out, HasSubstr("warmed up in 1 maintenance slot (longest"));
  EXPECT_THAT(swapped.out, HasSubstr("first job of the new plan"));
  const Answer larger =
      takt({"compile", kModels + "sim_camera.onnx", "--fix", "height=96", "width=96", "-o", path("l.plan")});
  ASSERT_EQ(larger.code, 0) << larger.err;
  const Answer other = takt({"plan", "swap", path("net.plan"), path("l.plan"), "--maintenance-ms", "1000"});
  EXPECT_EQ(other.code, 4);
  EXPECT_THAT(other.err, HasSubstr("input 0 ('image') has another type or shape"));
  const Answer shorter = takt({"plan", "swap", path("net.plan"), path("plain.plan"), "--slot-ms", "0.001"});
  EXPECT_EQ(shorter.code, 4);
  EXPECT_THAT(shorter.err, HasSubstr("longer than the 0.001 ms of the stage's slot"));
  EXPECT_THAT(shorter.err, HasSubstr("--slot-ms and --maintenance-ms say what the table has"));
  // What cannot be exchanged at all is said before what it would cost.
  EXPECT_THAT(takt({"plan", "swap", path("net.plan"), path("l.plan"), "--maintenance-ms", "0.001"}).err,
              HasSubstr("input 0 ('image') has another type or shape"));
  // Of a pipeline with modes every table that runs the variant is asked.
  const auto in = [&](const std::string& stage, const std::string& lite_ms, const std::string& old_plan = "lite.plan") {
    const std::string configs = std::string(TAKT_SOURCE_DIR) + "/configs/";
    std::string text = test::slurp(configs + "pipelines/sim_modes.yaml");
    const auto replace = [&text](const std::string& from, const std::string& to) {
      ASSERT_NE(text.find(from), std::string::npos) << from;
      for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) {
        text.replace(at, from.size(), to);
      }
    };
    replace(" ../", " " + configs);
    replace("sim_camera_lite.yaml, budgets: [{ cores: 1, ms: 4 }]",
            "sim_camera_lite.yaml, budgets: [{ cores: 1, ms: " + lite_ms + " }]");
    std::ofstream(path("modes.yaml")) << text;
    return takt({"plan", "swap", path(old_plan), path(old_plan), "--stage", stage, "--pipeline", path("modes.yaml"),
                 "--maintenance-ms", "1000"});
  };
  EXPECT_EQ(takt({"compile", std::string(TAKT_SOURCE_DIR) + "/configs/pipelines/sim_modes.yaml", "--stage",
                  "camera_detect/lite", "-o", path("lite.plan")})
                .code,
            0);
  const Answer which = in("camera_detect", "4");
  EXPECT_EQ(which.code, 2);
  EXPECT_THAT(which.err, HasSubstr("variant 'full' (mode 'day') and variant 'lite' (modes 'lean' and 'coasting')"));
  EXPECT_THAT(which.err, HasSubstr("--stage camera_detect/full"));
  const Answer unknown = in("camera_detect/light", "4");
  EXPECT_EQ(unknown.code, 2);
  EXPECT_THAT(unknown.err, HasSubstr("runs no variant 'light'"));
  // Of a stage without plans, and of one that runs another plan, nothing can be said.
  const Answer none = in("radar_detect", "4");
  EXPECT_EQ(none.code, 2);
  EXPECT_THAT(none.err, HasSubstr("stage 'radar_detect', variant 'full' runs no plan that could be exchanged"));
  const Answer elsewhere = in("camera_detect/lite", "4", "net.plan");
  EXPECT_EQ(elsewhere.code, 2);
  EXPECT_THAT(elsewhere.err, HasSubstr("does not run the old plan"));
  EXPECT_THAT(elsewhere.err, HasSubstr("--stage camera_detect/lite -o OLD.plan writes the one that it runs"));
  const Answer refused = in("camera_detect/lite", "0.001");
  EXPECT_EQ(refused.code, 1);
  EXPECT_THAT(refused.err, HasSubstr("mode 'lean' does not hold with plan"));
  EXPECT_THAT(refused.err, HasSubstr("w + budget + p is"));
#ifndef TAKT_SANITIZED
  const Answer lite = in("camera_detect/lite", "20");  // whatever else the machine does
  EXPECT_EQ(lite.code, 0) << lite.err;
  EXPECT_THAT(lite.out, HasSubstr("holds with each of them in stage 'camera_detect', variant 'lite' (modes 'lean' and "
                                  "'coasting')"));
#endif
}

// Neither the ONNX file nor the weights that lie beside it.
// A plan for a GPU in f16: where a board's guard cuts it, and how long its segments took on the harness.
TEST_F(PlanCommand, APlanForAGpuIsCutByAGuard) {
  const Answer refused = compile("no.plan", {"--target", "cpu:avx2", "--precision", "f16"});
  EXPECT_EQ(refused.code, 2);
  EXPECT_THAT(refused.err, HasSubstr("cpu:avx2 has no kernels in f16"));
  ASSERT_EQ(compile("gpu.plan", {"--target", "cuda:sm_87", "--precision", "f16"}).code, 0);

  const std::string board = std::string(TAKT_SOURCE_DIR) + "/configs/boards/orin_agx.yaml";
  const Answer whole = takt({"plan", "show", path("gpu.plan"), "--board", board});
  EXPECT_EQ(whole.code, 0) << whole.err;
  EXPECT_THAT(whole.out, HasSubstr("conv_first_f16"));
  EXPECT_THAT(whole.out, HasSubstr("on orin_agx (gpu: 5300 GFLOP/s, 204.8 GB/s, 5 us a step): "));
  EXPECT_THAT(whole.out, HasSubstr("a guard of 1.000 ms: 1 segment, "));
  const Answer cut = takt({"plan", "show", path("gpu.plan"), "--board", board, "--guard-ms", "0.05"});
  EXPECT_THAT(cut.out, HasSubstr("a guard of 0.050 ms: 6 segments, the longest 0.050 ms at least (steps 0 to 9)"));
  EXPECT_THAT(takt({"plan", "show", path("gpu.plan"), "--board", board, "--json"}).out,
              HasSubstr("\"predicted\": {\n    \"board\": \"orin_agx\""));
  const Answer short_guard = takt({"plan", "show", path("gpu.plan"), "--board", board, "--guard-ms", "0.001"});
  EXPECT_EQ(short_guard.code, 4);
  EXPECT_THAT(short_guard.err, HasSubstr("step 0 (cast_f16) alone takes 0.005 ms, more than the guard of 0.001 ms"));
  EXPECT_EQ(takt({"plan", "show", path("net.plan"), "--board", board}).code, 2);
  EXPECT_EQ(takt({"plan", "show", path("gpu.plan"), "--guard-ms", "1"}).code, 2);
  const Answer negative = takt({"plan", "show", path("gpu.plan"), "--board", board, "--guard-ms", "-1"});
  EXPECT_EQ(negative.code, 2);
  EXPECT_THAT(negative.err, HasSubstr("takt plan show --help"));
  EXPECT_EQ(takt({"plan", "bench", path("gpu.plan"), "--guard-ms", "1"}).code, 2);

  const Answer timed =
      takt({"plan", "bench", path("gpu.plan"), "--device", "cuda-host", "--runs", "2", "--guard-ms", "60000"});
  if (timed.err.find("built without the harness") != std::string::npos) GTEST_SKIP() << timed.err;
  EXPECT_EQ(timed.code, 0) << timed.err;
  EXPECT_THAT(timed.out, HasSubstr("on cuda-host, 2 runs: as one segment at most "));
  EXPECT_THAT(timed.out, HasSubstr("a guard of 60000.000 ms: 1 segment, the longest took at most "));
}

TEST_F(PlanCommand, APlanIsNotWrittenOverItsModel) {
  OnnxModel model(13);
  model.input("x", {3}).floats("w", {3}, {}).node("Add", {"x", "w"}, {"y"}).output("y");
  auto* tensor = model.model.mutable_graph()->mutable_initializer(0);
  tensor->set_data_location(::onnx::TensorProto::EXTERNAL);
  auto* entry = tensor->add_external_data();
  entry->set_key("location");
  entry->set_value("w.bin");
  const std::string weights(12, '\0');
  ASSERT_TRUE(write_file_atomically(path("w.bin"), weights));
  ASSERT_TRUE(write_file_atomically(path("m.onnx"), model.bytes()));
  for (const char* name : {"w.bin", "m.onnx"}) {
    const Answer answer = takt({"compile", path("m.onnx"), "-o", path(name)});
    EXPECT_EQ(answer.code, 2) << name;
    EXPECT_THAT(answer.err, HasSubstr("is of the model itself"));
  }
  EXPECT_EQ(slurp(path("w.bin")), weights);
  EXPECT_EQ(takt({"compile", path("m.onnx"), "-o", path("m.plan")}).code, 0);
}

TEST_F(PlanCommand, CompositionsCompileAndAreRefusedWithTheirPlace) {
  const std::string pair = kModels + "sim_camera_pair.yaml";
  const Answer compiled = takt({"compile", pair, "-o", path("pair.plan")});
  ASSERT_EQ(compiled.code, 0) << compiled.err;
  EXPECT_THAT(compiled.out, HasSubstr("sim_camera_pair"));
  EXPECT_EQ(takt({"plan", "run", path("pair.plan"), "-o", path("results")}).code, 0);
  EXPECT_TRUE(fs::exists(path("results/wide_heatmap.npy")));

  EXPECT_EQ(takt({"compile", pair, "--fix", "height=1", "-o", path("p.plan")}).code, 2);
  EXPECT_EQ(takt({"compile", pair, "--file", kModels + "sim_camera.onnx", "-o", path("p.plan")}).code, 2);
  const Answer other = takt({"compile", pair, "--file", "fine=" + pair, "-o", path("p.plan")});
  EXPECT_EQ(other.code, 4);
  EXPECT_THAT(other.err, HasSubstr("sim_camera_pair.yaml:12:11: parts.fine.hash: expected hash"));
  EXPECT_THAT(other.err, HasSubstr(", " + pair + " has ")) << "the file that was read";
  const Answer over = takt({"compile", pair, "--file", "fine=" + kModels + "sim_camera.onnx", "-o", pair});
  EXPECT_EQ(over.code, 2);

  std::string text = slurp(pair);
  text.replace(text.find("fine.box"), 8, "fine.bax");
  for (std::size_t at = 0; (at = text.find(": sim_camera", at)) != std::string::npos; at += 2) {
    if (text.compare(at + 12, 5, "_pair") != 0) text.insert(at + 2, kModels);
  }
  std::ofstream(path("typo.yaml")) << text;
  const Answer typo = takt({"compile", path("typo.yaml"), "-o", path("p.plan")});
  EXPECT_EQ(typo.code, 4);
  EXPECT_THAT(typo.err, HasSubstr("typo.yaml:27:8: 'fine' has no output 'bax'; did you mean 'box'?"));
  EXPECT_FALSE(fs::exists(path("p.plan")));
}

// y is x twice: what goes in has to come out, whatever the type.
TEST_F(PlanCommand, EveryElementTypeGoesInAndOut) {
  using Proto = ::onnx::TensorProto;
  const std::pair<std::int32_t, const char*> types[] = {
      {Proto::FLOAT, "<f4"},   {Proto::FLOAT16, "<f2"}, {Proto::DOUBLE, "<f8"}, {Proto::INT8, "|i1"},
      {Proto::INT16, "<i2"},   {Proto::INT32, "<i4"},   {Proto::INT64, "<i8"},  {Proto::UINT8, "|u1"},
      {Proto::UINT16, "<u2"},  {Proto::UINT32, "<u4"},  {Proto::UINT64, "<u8"}, {Proto::BOOL, "|b1"},
      {Proto::BFLOAT16, "<f4"}};
  for (const auto& [type, npy] : types) {
    SCOPED_TRACE(std::string(npy) + " of ONNX type " + std::to_string(type));
    OnnxModel model(13);
    model.input("x", {4}, type).node("Concat", {"x", "x"}, {"y"}).with("axis", std::int64_t{0}).output("y");
    ASSERT_TRUE(write_file_atomically(path("type.onnx"), model.bytes()));
    const Answer compiled = takt({"compile", path("type.onnx"), "-o", path("type.plan")});
    ASSERT_EQ(compiled.code, 0) << compiled.err;
    NpyArray x{npy, {4}, std::vector<std::byte>(4 * npy_element_size(npy), std::byte{1})};
    if (type == Proto::FLOAT || type == Proto::BFLOAT16) {
      const float values[] = {1, -2.5F, 1e30F, std::numeric_limits<float>::infinity()};
      std::memcpy(x.bytes.data(), values, sizeof values);
      if (type == Proto::BFLOAT16) x.bytes[8] = x.bytes[9] = std::byte{0};  // exact in bf16
    }
    ASSERT_TRUE(write_file_atomically(path("x.npy"), npy_bytes(x)));
    const Answer ran = takt(
        {"plan", "run", path("type.plan"), "--input", path("x.npy"), "-o", path("o"), "--dump-tensors", path("steps")});
    ASSERT_EQ(ran.code, 0) << ran.err;
    std::vector<std::byte> twice = x.bytes;
    twice.insert(twice.end(), x.bytes.begin(), x.bytes.end());
    for (const char* const file : {"o/y.npy", "steps/y.npy"}) {
      const auto y = read_npy(path(file));
      ASSERT_TRUE(y) << y.error().message;
      EXPECT_EQ(y->type, npy);
      EXPECT_EQ(y->bytes, twice);
    }
    const Answer same = takt({"plan", "diff", path("type.plan"), path("o"), "--input", path("x.npy")});
    EXPECT_EQ(same.code, 0) << same.err;
    fs::remove_all(path("o"));
    fs::remove_all(path("steps"));
  }
}

TEST_F(PlanCommand, WhatContradictsItselfIsRefused) {
  const auto refused = [&](const std::vector<std::string>& words, const std::string& text) {
    const Answer answer = takt(words);
    EXPECT_EQ(answer.code, 2) << text;
    EXPECT_THAT(answer.err, HasSubstr(text));
  };
  const NpyArray image{"<f4", {1, 3, 64, 96}, std::vector<std::byte>(std::size_t{3} * 64 * 96 * 4)};
  ASSERT_TRUE(write_file_atomically(path("x.npy"), npy_bytes(image)));
  const std::string given = "image=" + path("x.npy");
  refused({"plan", "run", path("net.plan"), "--input", given, "--input", given}, "--input image is given twice");
  refused({"plan", "run", path("net.plan"), "-o", path("o"), "--dump-tensors", path("o") + "/"}, "name one folder");
  const auto compiling = [&](const std::vector<std::string>& more) {
    std::vector<std::string> words = {
        "compile", kModels + "sim_camera.onnx", "--fix", "height=64", "width=96", "-o", path("p.plan")};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  };
  refused(compiling({"--json", "--dump-after", "import"}), "--json describes the plan on stdout");
  refused(compiling({"--json", "--statistics-after", "import"}), "--json describes the plan on stdout");
  refused(compiling({"--unoptimised", "--dump-after", "fuse"}), "--unoptimised leaves the passes out");
  refused({"compile", kModels + "sim_camera_pair.yaml", "--loop", "fime/l=3", "-o", path("p.plan")},
          "in a composition it is PART/NAME, of a network; did you mean 'fine'?");
  refused({"compile", kModels + "sim_camera_pair.yaml", "--state", "fine/a=wide/b", "-o", path("p.plan")},
          "the output is one of the same part, fine/OUTPUT");
  const std::string sim = kModels + "sim_camera.onnx";
  refused({"compile", sim, "--fix", "height=64,128", "width=96,192,384", "-o", path("p.plan")},
          "--fix height has 2 values, another has 3");
  refused({"compile", sim, "--fix", "height=64,64", "width=96", "-o", path("p.plan")}, "has 64 twice");
  refused({"compile", sim, "--fix", "height=64,", "width=96", "-o", path("p.plan")}, "fixes nothing");
  refused({"compile", sim, "--fix", "image=1x3x64x96,64", "-o", path("p.plan")}, "fixes nothing");
  refused({"compile", kModels + "sim_camera_full.yaml", "--fix", "image=1x3x256x416", "-o", path("p.plan")},
          "--fix image: the model's contract fixes it already; leave it out");
  EXPECT_FALSE(fs::exists(path("p.plan")));
}

TEST_F(PlanCommand, SeveralSizesAreSeveralPlansOrNone) {
  const std::string model = kModels + "sim_camera.onnx";
  const Answer both =
      takt({"compile", model, "--fix", "height=64,128", "width=96,160", "-o", path("n.plan"), "--json"});
  ASSERT_EQ(both.code, 0) << both.err;
  EXPECT_EQ(both.out.front(), '[');
  EXPECT_EQ(slurp(path("n.height64.width96.plan")), slurp(path("net.plan")));
  ASSERT_TRUE(fs::exists(path("n.height128.width160.plan")));
  EXPECT_THAT(takt({"plan", "show", path("n.height128.width160.plan")}).out, HasSubstr("f32[1,3,128,160]"));
  EXPECT_FALSE(fs::exists(path("n.plan")));
  // A dimension that has one value holds for all of them.
  ASSERT_EQ(takt({"compile", model, "--fix", "height=64,128", "width=96", "-o", path("m.plan")}).code, 0);
  EXPECT_TRUE(fs::exists(path("m.height64.plan")) && fs::exists(path("m.height128.plan")));
  // The second size does not fit the network: it halves four times, and adds what it had before.
  const Answer odd = takt({"compile", model, "--fix", "height=64,72", "width=96", "-o", path("o.plan")});
  EXPECT_EQ(odd.code, 3) << odd.err;
  EXPECT_THAT(odd.err, HasSubstr("bucket height72"));
  EXPECT_FALSE(fs::exists(path("o.height64.plan"))) << "all of them or none";
  // The second cannot be written.
  fs::create_directory(path("w.height128.plan"));
  const Answer blocked = takt({"compile", model, "--fix", "height=64,128", "width=96", "-o", path("w.plan")});
  EXPECT_EQ(blocked.code, 5);
  EXPECT_THAT(blocked.err, HasSubstr("w.height128.plan: is a folder"));
  EXPECT_FALSE(fs::exists(path("w.height64.plan")));
}

TEST_F(PlanCommand, StoppedOrWithoutRoomItWritesNothing) {
  // A pipe in the model's place: the command waits for it while it is interrupted.
  ASSERT_EQ(mkfifo(path("slow.onnx").c_str(), 0600), 0);
  const pid_t pid = start({"compile", path("slow.onnx"), "--fix", "height=64", "width=96", "-o", path("s.plan")});
  {
    std::ofstream writer(path("slow.onnx"), std::ios::binary);  // opens when the command reads
    kill(pid, SIGINT);
    writer << slurp(kModels + "sim_camera.onnx");
  }
  const Answer stopped = finish(pid);
  EXPECT_EQ(stopped.code, 130) << stopped.err;
  EXPECT_FALSE(fs::exists(path("s.plan")));

  const Answer full = finish(start({"-c", "ulimit -f 16; exec \"$0\" compile \"$1\" --fix height=64 width=96 -o \"$2\"",
                                    TAKT_PROGRAM, kModels + "sim_camera.onnx", path("f.plan")},
                                   "/bin/sh"));
  EXPECT_EQ(full.code, 5) << full.err;
  EXPECT_THAT(full.err, HasSubstr("File too large"));
  for (const auto& entry : fs::directory_iterator(folder_)) {
    EXPECT_EQ(entry.path().string().find(".part"), std::string::npos) << entry.path();
    EXPECT_NE(entry.path().filename(), "f.plan");
  }
}

TEST_F(PlanCommand, AnInputWithAValueInTheFileIsAConstantAndThatIsSaid) {
  OnnxModel model(13);
  model.input("x", {2}).input("gain", {2}).floats("gain", {2}, {3, 4});
  model.node("Mul", {"x", "gain"}, {"y"}).output("y");
  ASSERT_TRUE(write_file_atomically(path("default.onnx"), model.bytes()));
  const Answer newer = takt({"compile", path("default.onnx"), "-o", path("d.plan")});
  EXPECT_EQ(newer.code, 0);
  EXPECT_THAT(newer.err, HasSubstr("default.onnx: constant, since the file has their values (initializers), are the "
                                   "inputs gain\n"));
  const Answer fixed = takt({"compile", path("default.onnx"), "--fix", "gain=1x2", "-o", path("d.plan")});
  EXPECT_EQ(fixed.code, 3);
  EXPECT_THAT(fixed.err, HasSubstr("input gain has a value in the file"));
  const Answer given = takt({"plan", "run", path("d.plan"), "--input", "gain=" + path("x.npy")});
  EXPECT_EQ(given.code, 2);
  EXPECT_THAT(given.err, HasSubstr("an input with a value in the model's file became a constant"));
  model.model.set_ir_version(3);  // where every initializer is an input too
  ASSERT_TRUE(write_file_atomically(path("default.onnx"), model.bytes()));
  EXPECT_EQ(takt({"compile", path("default.onnx"), "-o", path("d.plan")}).err, "");
}

TEST_F(PlanCommand, TooLittleMemoryIsAnEnvironmentError) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer's shadow memory is larger than any limit";
#endif
  OnnxModel model(13);
  model.input("x", {1 << 26}).node("Relu", {"x"}, {"y"}).output("y");
  ASSERT_TRUE(write_file_atomically(path("large.onnx"), model.bytes()));
  ASSERT_EQ(takt({"compile", path("large.onnx"), "-o", path("large.plan")}).code, 0);
  const Answer answer = finish(
      start({"-c", "ulimit -v 300000; exec \"$0\" plan run \"$1\"", TAKT_PROGRAM, path("large.plan")}, "/bin/sh"));
  EXPECT_EQ(answer.code, 5) << answer.err;
  EXPECT_THAT(answer.err, HasSubstr("memory"));
}

TEST_F(PlanCommand, TheProgramsOfTheDocumentationRun) {
  const Answer ran = finish(start({path("net.plan"), "3"}, TAKT_EXAMPLE_RUN));
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("heatmap: 768 values, "));
  EXPECT_THAT(ran.out, HasSubstr("conv_first_f32"));
  EXPECT_EQ(finish(start({path("none.plan")}, TAKT_EXAMPLE_RUN)).code, 3);
  const Answer compiled = finish(start({kModels + "sim_camera.onnx", "height=64", "width=96"}, TAKT_EXAMPLE_COMPILE));
  EXPECT_EQ(compiled.code, 0) << compiled.err;
  EXPECT_THAT(compiled.out, HasSubstr(" steps, arena of "));
}

// What docs/cpp_api.md shows stands in those programs, line for line.
TEST(CppApi, TheDocumentShowsTheProgramsCode) {
  const std::string docs = std::string(TAKT_SOURCE_DIR) + "/docs/";
  const std::string programs = slurp(docs + "cpp_api/run_plan.cpp") + slurp(docs + "cpp_api/compile_model.cpp");
  const std::string text = slurp(docs + "cpp_api.md");
  std::size_t blocks = 0;
  const std::string open = "```cpp\n";
  for (std::size_t at = text.find(open); at != std::string::npos; at = text.find(open, at + 1), ++blocks) {
    const std::size_t begin = at + open.size();
    const std::string block = text.substr(begin, text.find("```", begin) - begin);
    EXPECT_NE(programs.find(block), std::string::npos) << block;
  }
  EXPECT_GE(blocks, 4U);
}

}  // namespace
}  // namespace takt::test
