// Runs a fuzz target without libFuzzer: every file of a corpus folder, then deterministic mutations of them.
//   fuzz_x FOLDER [MUTATIONS]
// The target itself asserts (or crashes, or trips a sanitizer); reaching the end is success. The same inputs on every
// machine: a failure prints the mutation number and leaves the input in fuzz_failure.bin for a replay.
#include <algorithm>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

using Bytes = std::vector<std::uint8_t>;

Bytes current;
long current_number = 0;

// Best effort in a dying process: writing is not async-signal-safe, but without the input a crash says little.
void report_crash(int signal_number) {
  std::fprintf(stderr, "signal %d in mutation %ld; input saved as fuzz_failure.bin\n", signal_number, current_number);
  if (std::FILE* file = std::fopen("fuzz_failure.bin", "wb")) {
    std::fwrite(current.data(), 1, current.size(), file);
    std::fclose(file);
  }
  std::signal(signal_number, SIG_DFL);
  std::raise(signal_number);
}

// xorshift64* (Vigna 2016): the same numbers everywhere.
class Random {
 public:
  std::uint64_t next() {
    state_ ^= state_ >> 12;
    state_ ^= state_ << 25;
    state_ ^= state_ >> 27;
    return state_ * 0x2545F4914F6CDD1DULL;
  }
  std::size_t below(std::size_t n) { return n == 0 ? 0 : static_cast<std::size_t>(next() % n); }

 private:
  std::uint64_t state_ = 0x9E3779B97F4A7C15ULL;
};

std::ptrdiff_t at(std::size_t index) { return static_cast<std::ptrdiff_t>(index); }

void mutate(Bytes& bytes, const std::vector<Bytes>& corpus, Random& random) {
  static constexpr std::uint8_t kInteresting[] = {0x00, 0x01, 0x7f, 0x80, 0xff, '\n', ':', '"', '{', '['};
  const std::size_t position = random.below(bytes.size() + 1);
  const std::size_t length = std::min(bytes.size() - position, random.below(64) + 1);
  switch (random.below(7)) {
    case 0:  // flip a bit
      if (position < bytes.size()) bytes[position] ^= static_cast<std::uint8_t>(1U << random.below(8));
      break;
    case 1:  // a value that lengths and parsers care about
      if (position < bytes.size()) bytes[position] = kInteresting[random.below(std::size(kInteresting))];
      break;
    case 2:  // a run of them, such as a length field of all ones
      std::fill_n(bytes.begin() + at(position), std::min<std::size_t>(length, 8),
                  kInteresting[random.below(std::size(kInteresting))]);
      break;
    case 3: bytes.erase(bytes.begin() + at(position), bytes.begin() + at(position + length)); break;
    case 4: {  // repeat a piece
      const Bytes piece(bytes.begin() + at(position), bytes.begin() + at(position + length));
      bytes.insert(bytes.begin() + at(random.below(bytes.size() + 1)), piece.begin(), piece.end());
      break;
    }
    case 5: bytes.resize(position); break;
    default: {  // splice with another input
      const Bytes& other = corpus[random.below(corpus.size())];
      bytes.resize(position);
      bytes.insert(bytes.end(), other.begin() + at(random.below(other.size() + 1)), other.end());
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: %s FOLDER [MUTATIONS]\n", argv[0]);
    return 2;
  }
  for (const int signal_number : {SIGSEGV, SIGABRT, SIGFPE, SIGBUS, SIGILL}) std::signal(signal_number, report_crash);

  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(argv[1])) {
    if (entry.is_regular_file()) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  std::vector<Bytes> corpus;
  for (const auto& path : files) {
    std::ifstream file(path, std::ios::binary);
    corpus.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  if (corpus.empty()) {
    std::fprintf(stderr, "%s: no corpus file\n", argv[1]);
    return 1;
  }
  corpus.emplace_back();  // the empty input
  for (const Bytes& input : corpus) {
    current = input;
    LLVMFuzzerTestOneInput(current.data(), current.size());
  }
  Random random;
  const long mutations = argc > 2 ? std::atol(argv[2]) : 1000;
  for (current_number = 1; current_number <= mutations; ++current_number) {
    current = corpus[random.below(corpus.size())];
    for (std::size_t rounds = random.below(4) + 1; rounds > 0; --rounds) mutate(current, corpus, random);
    LLVMFuzzerTestOneInput(current.data(), current.size());
  }
  std::printf("%zu corpus inputs and %ld mutations\n", corpus.size(), mutations);
  return 0;
}
