#include "compiler/passes/passes.h"

#include <algorithm>

namespace takt::compiler {
namespace {

constexpr Pass kPasses[] = {
    {"fold", fold_constants},
    {"identities", remove_identities},
    {"affine", fold_affine},
    {"pads", fold_pads},
    {"activations", recognise_activations},
    {"norms", recognise_norms},
    {"tokens", recognise_tokens},
    {"channels", recognise_channel_gathers},
    {"fuse", fuse_convolutions},
    {"sparse", fuse_sparse},
    {"common", merge_common},
    {"dead", remove_dead},
    {"order", order_for_peak},
};

}  // namespace

std::span<const Pass> passes() { return kPasses; }

Status run_passes(ir::Graph& graph, const PassOptions& options) {
  for (const std::string& name : options.off) {
    const bool known =
        std::any_of(std::begin(kPasses), std::end(kPasses), [&](const Pass& p) { return p.name == name; });
    if (!known) return fail(Code::kUsage, "there is no pass \"" + ir::printable(name) + "\"");
  }
  for (const Pass& pass : kPasses) {
    if (options.off.count(std::string(pass.name)) != 0) continue;
    if (options.stop != nullptr && *options.stop) {
      return fail(Code::kInterrupted, "stopped before pass " + std::string(pass.name));
    }
    TAKT_RETURN_IF_ERROR(pass.run(graph));
    graph.compact();
    if (options.verify) {
      if (Status ok = ir::verify(graph); !ok) {
        return fail(std::move(ok).error().with_context("after pass " + std::string(pass.name)));
      }
    }
    if (options.after) options.after(pass.name, graph);
  }
  return {};
}

}  // namespace takt::compiler
