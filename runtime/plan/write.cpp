#include <cstring>

#include "runtime/base/sizes.h"
#include "runtime/plan/crc32c.h"
#include "runtime/plan/format.h"
#include "runtime/plan/plan.h"
#include "runtime/plan/plan_generated.h"

namespace takt::plan {
Digest state_schema(const Description& description) {
  Digester digester;
  const auto add = [&](std::uint64_t value) { digester.add_value(value); };
  add(description.states.size());
  for (const State& state : description.states) {
    add(state.name.size());
    digester.add(std::as_bytes(std::span(state.name)));
    add(static_cast<std::uint64_t>(state.dtype));
    add(static_cast<std::uint64_t>(state.shape.rank));
    for (int d = 0; d < state.shape.rank; ++d) add(static_cast<std::uint64_t>(state.shape.dims[d]));
  }
  return digester.finish();
}

namespace {

using flatbuffers::FlatBufferBuilder;
using flatbuffers::Offset;

Offset<flatbuffers::Vector<std::int64_t>> dims(FlatBufferBuilder& out, const kernels::Shape& shape) {
  return out.CreateVector(shape.dims, static_cast<std::size_t>(shape.rank));
}

Offset<fb::Tensor> encode(FlatBufferBuilder& out, const Tensor& t) {
  const auto name = out.CreateString(t.name);
  const auto extents = dims(out, t.shape);
  return fb::CreateTensor(out, name, static_cast<std::uint8_t>(t.dtype), t.layout.block, extents,
                          static_cast<std::uint8_t>(t.storage), t.slot, t.offset, t.bytes, t.view_of, t.first_step,
                          t.last_step, t.count, t.count_axis);
}

Offset<fb::Step> encode(FlatBufferBuilder& out, const Step& s) {
  const auto params = out.CreateVector(reinterpret_cast<const std::uint8_t*>(s.params.data()), s.params.size());
  const auto operands = out.CreateVector(s.operands);
  const auto nodes = out.CreateVectorOfStrings(s.nodes);
  return fb::CreateStep(out, s.kernel, s.version, params, operands, s.flops, s.bytes_moved, nodes, s.guard);
}

Offset<fb::State> encode(FlatBufferBuilder& out, const State& s) {
  const auto name = out.CreateString(s.name);
  const auto extents = dims(out, s.shape);
  return fb::CreateState(out, name, static_cast<std::uint8_t>(s.dtype), extents, s.bytes, s.initial);
}

template <class T>
auto encode_all(FlatBufferBuilder& out, const std::vector<T>& items) {
  std::vector<decltype(encode(out, items[0]))> offsets;
  offsets.reserve(items.size());
  for (const T& item : items) offsets.push_back(encode(out, item));
  return out.CreateVector(offsets);
}

// Metadata with the sections as given. Its size does not depend on their values.
std::vector<std::byte> metadata(const Description& d, const std::vector<fb::Section>& sections) {
  FlatBufferBuilder out(4096);
  out.ForceDefaults(true);  // every scalar is stored, so that sizes do not depend on values
  const auto name = out.CreateString(d.name);
  const auto tensors = encode_all(out, d.tensors);
  const auto steps = encode_all(out, d.steps);
  const auto states = encode_all(out, d.states);
  const auto section_list = out.CreateVectorOfStructs(sections);
  const auto inputs = out.CreateVector(d.inputs);
  const auto outputs = out.CreateVector(d.outputs);
  const auto parts = out.CreateVector(d.parts);
  std::vector<fb::Guard> conditions;
  for (const Guard& g : d.guards) conditions.emplace_back(g.condition, g.parent, static_cast<std::uint8_t>(g.when));
  const auto guards = out.CreateVectorOfStructs(conditions);
  const Digest states_digest = state_schema(d);
  const fb::Digest schema(states_digest.high, states_digest.low);
  const fb::Digest source(d.source.high, d.source.low), contract(d.contract.high, d.contract.low);
  const Statistics& s = d.statistics;
  const auto statistics = fb::CreateStatistics(out, s.operators_before, s.operators_after, s.views, s.placements,
                                               s.in_place, s.reorders, s.copies);
  out.Finish(fb::CreatePlan(out, name, static_cast<std::uint8_t>(d.target), &source, &contract, statistics, tensors,
                            steps, states, section_list, inputs, outputs, d.arena_bytes, d.lower_bound,
                            static_cast<std::uint8_t>(d.proof), parts, guards, &schema));
  const auto* begin = reinterpret_cast<const std::byte*>(out.GetBufferPointer());
  return {begin, begin + out.GetSize()};
}

}  // namespace

Result<std::vector<std::byte>> write(const Description& description, std::span<const std::vector<std::byte>> sections) {
  if (description.sections.size() != sections.size()) {
    return fail(Code::kInternal, "a plan describes " + std::to_string(description.sections.size()) +
                                     " sections and was given " + std::to_string(sections.size()));
  }
  Head head{};
  head.metadata_offset = sizeof(Head);
  head.metadata_bytes = metadata(description, std::vector<fb::Section>(sections.size())).size();
  std::vector<fb::Section> placed;
  std::uint64_t end = head.metadata_offset + head.metadata_bytes;
  for (const std::vector<std::byte>& section : sections) {
    const std::uint64_t begin = round_up(end, kAlignment);
    placed.emplace_back(begin, section.size(), crc32c(section));
    end = begin + section.size();
  }
  const std::vector<std::byte> described = metadata(description, placed);
  if (described.size() != head.metadata_bytes) {
    return fail(Code::kInternal, "the size of a plan's metadata depends on its sections");
  }
  std::memcpy(head.magic, kMagic, sizeof kMagic);
  head.version = kFormatVersion;
  head.file_bytes = end;
  head.metadata_crc = crc32c(described);
  head.head_crc = crc32c(std::as_bytes(std::span(&head, 1)).first(offsetof(Head, head_crc)));

  std::vector<std::byte> file(end);
  std::memcpy(file.data(), &head, sizeof head);
  std::memcpy(file.data() + head.metadata_offset, described.data(), described.size());
  for (std::size_t i = 0; i < sections.size(); ++i) {
    if (!sections[i].empty()) std::memcpy(file.data() + placed[i].offset(), sections[i].data(), sections[i].size());
  }
  return file;
}

}  // namespace takt::plan
