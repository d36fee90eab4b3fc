#include "runtime/base/digest.h"

#include <xxhash.h>
#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <vector>

namespace takt {
namespace {

Digest from_xxh(XXH128_hash_t h) { return {h.high64, h.low64}; }

}  // namespace

std::string Digest::hex() const {
  std::array<char, 33> text{};
  std::snprintf(text.data(), text.size(), "%016llx%016llx", static_cast<unsigned long long>(high),
                static_cast<unsigned long long>(low));
  return text.data();
}

Digest digest(std::span<const std::byte> bytes) { return from_xxh(XXH3_128bits(bytes.data(), bytes.size())); }
Digest digest(std::string_view text) { return from_xxh(XXH3_128bits(text.data(), text.size())); }

Result<Digest> digest_file(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code error;
  if (fs::is_directory(path, error)) {
    std::vector<std::string> names;
    for (auto it = fs::recursive_directory_iterator(path, error); it != fs::recursive_directory_iterator();
         it.increment(error)) {
      if (error) break;
      if (it->is_regular_file(error)) names.push_back(it->path().lexically_relative(path).generic_string());
    }
    if (error) return fail(Code::kInput, path + ": the folder cannot be read: " + error.message());
    std::sort(names.begin(), names.end());
    Digester digester;
    for (const std::string& name : names) {
      TAKT_ASSIGN(const Digest file, digest_file(path + "/" + name));
      digester.add(
          std::as_bytes(std::span(name.data(), name.size() + 1)));  // with its end, so that names do not run on
      digester.add_value(file);
    }
    return digester.finish();
  }
  std::ifstream file(path, std::ios::binary);
  if (!file) return fail(Code::kInput, path + ": cannot be opened for reading");
  Digester digester;
  std::vector<char> block(1 << 20);
  while (file.read(block.data(), static_cast<std::streamsize>(block.size())) || file.gcount() > 0) {
    digester.add(std::as_bytes(std::span(block.data(), static_cast<std::size_t>(file.gcount()))));
  }
  if (file.bad()) return fail(Code::kInput, path + ": reading failed");
  return digester.finish();
}

struct Digester::State {
  XXH3_state_t* xxh = XXH3_createState();
  State() = default;
  ~State() { XXH3_freeState(xxh); }
  State(const State&) = delete;
  State& operator=(const State&) = delete;
};

Digester::Digester() : state_(std::make_unique<State>()) { reset(); }
Digester::~Digester() = default;
Digester::Digester(Digester&&) noexcept = default;
Digester& Digester::operator=(Digester&&) noexcept = default;
void Digester::reset() { XXH3_128bits_reset(state_->xxh); }
void Digester::add(std::span<const std::byte> bytes) { XXH3_128bits_update(state_->xxh, bytes.data(), bytes.size()); }
Digest Digester::finish() const { return from_xxh(XXH3_128bits_digest(state_->xxh)); }

}  // namespace takt
