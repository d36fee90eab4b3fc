// The iceoryx back end (2.0.x): every topic is the service {"takt", run token, topic}, export topics
// {"takt", "export", topic}. Ports are used directly instead
// of through UntypedPublisher/UntypedSubscriber, which hide how many subscribers a publisher has.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <mutex>
#include <new>
#include <optional>
#include <streambuf>
#include <thread>
#include <utility>

#include "iceoryx_hoofs/error_handling/error_handling.hpp"
#include "iceoryx_hoofs/internal/relocatable_pointer/relative_pointer.hpp"
#include "iceoryx_hoofs/log/logmanager.hpp"
#include "iceoryx_hoofs/platform/platform_settings.hpp"
#include "iceoryx_posh/iceoryx_posh_types.hpp"
#include "iceoryx_posh/internal/popo/ports/publisher_port_user.hpp"
#include "iceoryx_posh/internal/popo/ports/subscriber_port_user.hpp"
#include "iceoryx_posh/internal/roudi/memory/port_pool_memory_block.hpp"
#include "iceoryx_posh/internal/roudi/roudi.hpp"
#include "iceoryx_posh/internal/runtime/posh_runtime_impl.hpp"
#include "iceoryx_posh/roudi/iceoryx_roudi_components.hpp"
#include "iceoryx_posh/roudi/memory/default_roudi_memory.hpp"
#include "iceoryx_posh/runtime/posh_runtime_single_process.hpp"
#include "runtime/transport/backends.h"
#include "runtime/transport/layout.h"

namespace takt::transport {
namespace {

using IoxHeader = iox::mepoo::ChunkHeader;
using PublisherData = iox::PublisherPortUserType::MemberType_t;
using SubscriberData = iox::SubscriberPortUserType::MemberType_t;

static_assert(sizeof(IoxHeader) == limits::kLibraryHeader);
static_assert(iox::MAX_CHUNKS_ALLOCATED_PER_PUBLISHER_SIMULTANEOUSLY == limits::kLoans);
static_assert(iox::MAX_SUBSCRIBER_QUEUE_CAPACITY == limits::kQueue);
static_assert(iox::MAX_CHUNKS_HELD_PER_SUBSCRIBER_SIMULTANEOUSLY == limits::kHeld);
static_assert(iox::MAX_NUMBER_OF_MEMPOOLS == limits::kPools);
static_assert(iox::MAX_SUBSCRIBERS_PER_PUBLISHER == limits::kSubscribersPerTopic);
static_assert(iox::MAX_PUBLISHERS - iox::NUMBER_OF_INTERNAL_PUBLISHERS == limits::kPublishers + 1);
static_assert(iox::MAX_SUBSCRIBERS == limits::kSubscribers);
static_assert(iox::capro::IdString_t::capacity() == limits::kName);

constexpr auto kConnectTimeout = std::chrono::seconds(5);
constexpr auto kStartTimeout = std::chrono::seconds(20);  // of another RouDi: it reserves and clears its memory
constexpr auto kPollInterval = std::chrono::milliseconds(2);

template <std::size_t N>
iox::cxx::string<N> iox_string(const std::string& text) {
  return iox::cxx::string<N>(iox::cxx::TruncateToCapacity, text.c_str());
}

iox::mepoo::MePooConfig pool_config(const std::vector<Pool>& pools) {
  iox::mepoo::MePooConfig config;
  for (const Pool& pool : pools) {
    config.addMemPool({static_cast<std::uint32_t>(pool.chunk_bytes - limits::kLibraryHeader), pool.chunks});
  }
  return config;
}

iox::RouDiConfig_t segment_config(const std::vector<Pool>& pools) {
  const auto group = iox::posix::PosixGroup::getGroupOfCurrentProcess().getName();
  iox::RouDiConfig_t config;
  config.m_sharedMemorySegments.push_back({group, group, pool_config(pools)});
  return config;
}

// What the library writes on std::cerr, where nothing of takt writes: raw lines, twice a second when RouDi has died.
// They are counted instead, and told in one line of takt's own when the last user is gone or the library ends the
// process.
class LibraryErrors final : public std::streambuf {
 public:
  static LibraryErrors& instance() {
    static LibraryErrors* const errors = new LibraryErrors;  // never destroyed: threads of the library may write late
    return *errors;
  }
  void enter() {
    const std::lock_guard lock(mutex_);
    if (users_++ == 0) terminal_ = std::cerr.rdbuf(this);
  }
  void leave() {
    const std::lock_guard lock(mutex_);
    if (--users_ > 0) return;
    std::cerr.rdbuf(terminal_);
    tell();
  }
  // Without the lock: of a process that ends.
  void tell() {
    if (length_ > 0) ++lines_;  // one without an end
    if (lines_ > 0) {
      std::fprintf(stderr,
                   "takt: iceoryx reported %zu error(s), as it does when RouDi ends before its clients; first: %s\n",
                   lines_, first_);
    }
    lines_ = length_ = 0;
  }

 protected:
  int_type overflow(int_type character) override {
    const char c = traits_type::to_char_type(character);
    if (!traits_type::eq_int_type(character, traits_type::eof())) xsputn(&c, 1);
    return traits_type::not_eof(character);
  }
  std::streamsize xsputn(const char* text, std::streamsize size) override {
    const std::lock_guard lock(mutex_);
    for (std::streamsize i = 0; i < size; ++i) {
      if (text[i] == '\n') {
        lines_ += length_ > 0 ? 1 : 0;
        length_ = 0;
        continue;
      }
      if (lines_ == 0 && length_ + 1 < sizeof first_) {
        first_[length_] = text[i];
        first_[length_ + 1] = '\0';
      }
      ++length_;
    }
    return size;
  }

 private:
  std::mutex mutex_;
  std::streambuf* terminal_ = nullptr;
  std::size_t users_ = 0, lines_ = 0, length_ = 0;  // length of the line that is being written
  char first_[512] = "";
};

// While RouDi and the runtime start, an error of the library is one of this machine: nothing runs yet.
std::atomic<bool> starting{false};

// iceoryx ends the process on fatal and severe errors; say why first. Our own checks come before all of them.
void report_library_error(iox::Error error, const std::function<void()>& callback, iox::ErrorLevel level) {
  if (level == iox::ErrorLevel::MODERATE) return;  // reported as a return value as well
  LibraryErrors::instance().tell();
  if (starting) {
    std::fprintf(
        stderr,
        "takt: iceoryx cannot start: %s\n  -> end other programs that use iceoryx, or use the local transport\n",
        iox::ErrorHandler::toString(error));
    std::fflush(stderr);
    std::_Exit(exit_code(Code::kEnvironment));
  }
  std::fprintf(stderr, "takt: iceoryx reports %s and cannot go on; this process ends\n",
               iox::ErrorHandler::toString(error));
  if (callback) callback();
  std::abort();
}

void silence_library() {
  iox::log::LogManager::GetLogManager().SetDefaultLogLevel(iox::log::LogLevel::kOff,
                                                           iox::log::LogLevelOutput::kHideLogLevel);
}

// RouDi tells its start on std::clog and on the standard output, which belongs to the command (it may be JSON). While
// one of these lives, what any thread writes there is lost. Errors (std::cerr) are counted apart.
class QuietStart {
 public:
  QuietStart() : saved_(::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3)) {
    const int nothing = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
    flush();
    if (saved_ >= 0 && nothing >= 0) ::dup2(nothing, STDOUT_FILENO);
    if (nothing >= 0) ::close(nothing);
  }
  ~QuietStart() {
    std::clog.rdbuf(log_);
    std::clog.clear();
    flush();
    if (saved_ < 0) return;
    ::dup2(saved_, STDOUT_FILENO);
    ::close(saved_);
  }
  QuietStart(const QuietStart&) = delete;
  QuietStart& operator=(const QuietStart&) = delete;

 private:
  static void flush() {
    std::cout.flush();
    std::fflush(stdout);
  }
  const int saved_;
  std::streambuf* const log_ = std::clog.rdbuf(nullptr);
};

// --- checks before anything starts -----------------------------------------------------------------------------------

const std::string& lock_file() {
  static const std::string path =
      std::string(iox::platform::IOX_LOCK_FILE_PATH_PREFIX) + iox::roudi::ROUDI_LOCK_NAME + ".lock";
  return path;
}

// Held from the look for another RouDi until one's own has its lock, so that of several processes of takt that start at
// once each finds the one before it running. The library aborts a process that finds RouDi's lock taken, be it only by
// somebody who looks, as roudi_lock_held() does: looks take place under this lock as well.
class StartLock {
 public:
  static Result<StartLock> take() {
    const std::string path = std::string(iox::platform::IOX_LOCK_FILE_PATH_PREFIX) + "takt-roudi-start.lock";
    // Not with O_CREAT alone: in a sticky folder the kernel refuses that for a file of another user.
    int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT) {
      fd = ::open(path.c_str(), O_RDONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
      if (fd >= 0) ::fchmod(fd, 0644);  // whatever the umask says: others wait for it, too
      if (fd < 0 && errno == EEXIST) fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    }
    if (fd < 0) {
      return fail(Code::kEnvironment, fmt::format("{}: cannot be opened: {}; remove it", path, std::strerror(errno)));
    }
    StartLock lock(fd);
    const auto deadline = std::chrono::steady_clock::now() + kStartTimeout;
    while (::flock(fd, LOCK_EX | LOCK_NB) != 0) {
      if (std::chrono::steady_clock::now() > deadline) {
        return fail(Code::kEnvironment, fmt::format("{}: another process of takt has been starting its RouDi for {} s; "
                                                    "end it, or use the local transport",
                                                    path, kStartTimeout.count()));
      }
      std::this_thread::sleep_for(kPollInterval);
    }
    return lock;
  }
  StartLock(StartLock&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  StartLock& operator=(StartLock&&) = delete;
  ~StartLock() {
    if (fd_ >= 0) ::close(fd_);
  }

 private:
  explicit StartLock(int fd) : fd_(fd) {}
  int fd_;
};

// RouDi holds this lock as long as it lives; whoever starts a second one is aborted by the library. For the holder of a
// StartLock.
Result<bool> roudi_lock_held() {
  const int fd = ::open(lock_file().c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) {
    if (errno == ENOENT) return false;
    return fail(Code::kEnvironment, fmt::format("{}: cannot be opened: {}; it may belong to a RouDi of another user",
                                                lock_file(), std::strerror(errno)));
  }
  const bool held = ::flock(fd, LOCK_EX | LOCK_NB) != 0;
  ::close(fd);  // releases the lock if it was granted
  return held;
}

// Does somebody read RouDi's socket?
bool roudi_answers() {
  const std::string path = std::string(iox::platform::IOX_UDS_SOCKET_PATH_PREFIX) + iox::roudi::IPC_CHANNEL_ROUDI_NAME;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
  const int fd = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return false;
  const bool connected = ::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  ::close(fd);
  return connected;
}

// The linked library against the headers this file was compiled with: other limits mean other structures.
Status check_library() {
  const std::uint64_t linked = iox::roudi::PortPoolMemoryBlock().size();
  if (linked == sizeof(iox::roudi::PortPoolData)) return {};
  return fail(
      Code::kEnvironment,
      fmt::format("the linked iceoryx was built with other limits than the headers takt was compiled with "
                  "(port pool of {} bytes, expected {}); rebuild takt against the installed libiceoryx-posh-dev",
                  linked, sizeof(iox::roudi::PortPoolData)));
}

std::uint64_t file_bytes(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 ? static_cast<std::uint64_t>(info.st_blocks) * 512 : 0;
}

// An embedded RouDi replaces segments left behind by one that died: their bytes are free for us.
std::uint64_t reclaimable_bytes() {
  std::uint64_t bytes = 0;
  for (const std::string& path : shared_memory_files()) bytes += file_bytes(path);
  return bytes;
}

Status check_shared_memory(const PoolPlan& plan) {
  TAKT_ASSIGN(const std::uint64_t free, shared_memory_free());
  constexpr std::uint64_t kPage = 4096;
  const std::uint64_t needed = round_up(plan.user_bytes, kPage) + round_up(plan.management_bytes, kPage) + 16 * kPage;
  const std::uint64_t available = free + reclaimable_bytes();
  if (needed <= available) return {};
  const std::uint64_t megabytes = round_up(needed + needed / 8, 64ULL << 20) >> 20;
  return fail(
      Code::kEnvironment,
      fmt::format("shared memory is too small: the plan needs {} bytes ({} for chunks, {} for iceoryx), /dev/shm "
                  "has {} bytes free; as root: mount -o remount,size={}M /dev/shm; in a container start it with "
                  "--shm-size={}m; or use the local transport",
                  needed, plan.user_bytes, plan.management_bytes, available, megabytes, megabytes));
}

Status check_no_roudi() {
  TAKT_ASSIGN(const bool held, roudi_lock_held());
  if (!held) return {};
  return fail(Code::kEnvironment, "another iceoryx RouDi is running on this machine (it holds " + lock_file() +
                                      "); end it, or use it with --roudi external, or use the local transport");
}

// A running RouDi is waited for (a client may start first), but not without limit.
Status wait_for_roudi(const PoolPlan& plan) {
  const auto deadline = std::chrono::steady_clock::now() + kConnectTimeout;
  for (;;) {
    // First its socket: a look at the lock could be in the way of a RouDi that starts.
    const bool late = std::chrono::steady_clock::now() > deadline;
    bool held = false;
    if (late || roudi_answers()) {
      TAKT_ASSIGN(const StartLock look, StartLock::take());
      TAKT_ASSIGN(held, roudi_lock_held());
      if (held && roudi_answers()) break;
    }
    if (late) {
      return fail(
          Code::kEnvironment,
          held ? "a RouDi holds " + lock_file() + " but does not answer on its socket; restart it"
               : "no RouDi is running; leave out --roudi external, or start iox-roudi --config-file FILE with\n" +
                     roudi_config(plan));
    }
    std::this_thread::sleep_for(kPollInterval);
  }
  const std::string management = std::string("/dev/shm/") + iox::roudi::SHM_NAME;
  if (::access(management.c_str(), R_OK | W_OK) != 0) {
    return fail(Code::kEnvironment,
                fmt::format("{}: user {} may not use the shared memory of the running RouDi: {}; run "
                            "both as the same user or group",
                            management, ::getuid(), std::strerror(errno)));
  }
  return {};
}

// --- runtime ---------------------------------------------------------------------------------------------------------

// The runtime of a process without RouDi, with a lifetime (initRuntime's own is a static that never ends). While it
// lives, iceoryx's own API in this process uses it too.
class ClientRuntime final : public iox::runtime::PoshRuntimeImpl {
 public:
  explicit ClientRuntime(const iox::RuntimeName_t& name)
      : PoshRuntimeImpl(iox::cxx::make_optional<const iox::RuntimeName_t*>(&name)) {
    current = this;
    setRuntimeFactory([](auto) -> PoshRuntime& { return *current; });
  }
  ~ClientRuntime() override {
    setRuntimeFactory(defaultRuntimeFactory);
    // The addresses of its segments must not be taken for those of a later RouDi's.
    iox::rp::BaseRelativePointer::unregisterAll();
  }

 private:
  static inline ClientRuntime* current = nullptr;
};

struct EmbeddedRouDi {
  explicit EmbeddedRouDi(const std::vector<Pool>& pools, bool monitoring)
      : components(segment_config(pools)),
        roudi(components.rouDiMemoryManager, components.portManager,
              iox::roudi::RouDi::RoudiStartupParameters(
                  monitoring ? iox::roudi::MonitoringMode::ON : iox::roudi::MonitoringMode::OFF,
                  /*killProcessesInDestructor=*/false)) {}
  iox::roudi::IceOryxRouDiComponents components;
  iox::roudi::RouDi roudi;
};

struct TopicState {
  TopicSpec spec;
  bool publisher_created = false;
  PublisherData* publisher = nullptr;  // null when not created or gone
  std::vector<bool> subscriber_created;
  std::vector<const iox::SubscriberPortUserType*> subscribers;  // null when not created or gone
};

// Shared by the ports, which keep RouDi and the runtime alive. Destroyed in reverse order of declaration.
struct Core {
  struct QuietErrors {
    QuietErrors() { LibraryErrors::instance().enter(); }
    ~QuietErrors() { LibraryErrors::instance().leave(); }
    QuietErrors(const QuietErrors&) = delete;
    QuietErrors& operator=(const QuietErrors&) = delete;
  };
  QuietErrors quiet_errors;  // outlives RouDi and the runtime
  TransportSpec spec;
  PoolPlan plan;
  std::vector<TopicState> topics;
  iox::cxx::GenericRAII error_handler = iox::ErrorHandler::setTemporaryErrorHandler(report_library_error);
  std::unique_ptr<EmbeddedRouDi> roudi;
  std::unique_ptr<iox::runtime::PoshRuntime> runtime;
  std::optional<iox::PublisherPortUserType> probe;  // never offers; leads to the pools
  iox::mepoo::MemoryManager* memory = nullptr;

  Core() = default;
  ~Core() {
    if (probe) probe->destroy();
  }

  TopicState* find(const std::string& topic) {
    for (TopicState& state : topics) {
      if (state.spec.name == topic) return &state;
    }
    return nullptr;
  }
  // The library takes the first pool that is large enough and never another one.
  [[nodiscard]] std::uint32_t pool_of(const TopicSpec& topic) const {
    const std::uint64_t bytes = chunk_bytes(topic.payload_capacity);
    std::uint32_t pool = 0;
    while (pool < memory->getNumberOfMemPools() && memory->getMemPoolInfo(pool).m_chunkSize < bytes) ++pool;
    return pool;
  }
  [[nodiscard]] iox::capro::ServiceDescription service(const TopicSpec& topic) const {
    const std::string instance = topic.exported > 0 ? "export" : fmt::format("{:016x}", spec.run);
    return {iox_string<100>("takt"), iox_string<100>(instance), iox_string<100>(topic.name)};
  }
};

ChunkLocation locate(const void* payload) {
  // const_cast: the library's functions take a mutable pointer and only compute with its value.
  void* const pointer = const_cast<void*>(payload);
  const auto segment = iox::rp::BaseRelativePointer::searchId(pointer);
  return {segment, iox::rp::BaseRelativePointer::getOffset(segment, pointer)};
}

std::uint64_t connected_subscribers(PublisherData& publisher) {
  auto& distributor = publisher.m_chunkSenderData;
  PublisherData::ChunkSenderData_t::LockGuard_t lock(distributor);
  return distributor.m_queues.size();
}

class IceoryxPublisher final : public Publisher {
 public:
  IceoryxPublisher(std::shared_ptr<Core> core, TopicState& topic, PublisherData* data)
      : core_(std::move(core)), topic_(topic), port_(data), pool_(core_->pool_of(topic_.spec)) {}
  ~IceoryxPublisher() override {
    topic_.publisher = nullptr;
    port_.stopOffer();
    port_.destroy();
  }

  Loan loan() override {
    if (open_ == topic_.spec.loans) {
      ++refused_;
      return {};
    }
    // Only an undeclared subscriber can empty the pool. Do not even ask then: a failing loan allocates and prints.
    const iox::mepoo::MemPoolInfo pool = core_->memory->getMemPoolInfo(pool_);
    if (pool.m_usedChunks >= pool.m_numChunks) {
      ++refused_;
      return {};
    }
    auto chunk = port_.tryAllocateChunk(static_cast<std::uint32_t>(topic_.spec.payload_capacity + kTailPadding),
                                        kPayloadAlignment, sizeof(ChunkHeader), alignof(ChunkHeader));
    if (chunk.has_error()) {
      ++refused_;
      return {};
    }
    ++open_;
    auto* header = new (chunk.value()->userHeader()) ChunkHeader{};
    header->run = core_->spec.run;
    header->schema = topic_.spec.schema;
    return {header, static_cast<std::byte*>(chunk.value()->userPayload())};
  }

  ChunkLocation publish(Loan loan) override {
    const ChunkLocation where = locate(loan.payload);
    port_.sendChunk(IoxHeader::fromUserPayload(loan.payload));
    --open_;
    return where;
  }

  void discard(Loan loan) override {
    port_.releaseChunk(IoxHeader::fromUserPayload(loan.payload));
    --open_;
  }

  [[nodiscard]] ChunkLocation location(const Loan& loan) const override { return locate(loan.payload); }
  [[nodiscard]] std::uint64_t payload_capacity() const override { return topic_.spec.payload_capacity; }
  [[nodiscard]] std::uint64_t refused_loans() const override { return refused_; }

 private:
  std::shared_ptr<Core> core_;
  TopicState& topic_;
  iox::PublisherPortUserType port_;
  const std::uint32_t pool_;
  std::uint32_t open_ = 0;
  std::uint64_t refused_ = 0;
};

class IceoryxSubscriber final : public Subscriber {
 public:
  IceoryxSubscriber(std::shared_ptr<Core> core, TopicState& topic, std::size_t index, SubscriberData* data)
      : core_(std::move(core)),
        topic_(topic),
        index_(index),
        held_limit_(topic.spec.subscribers[index].held),
        port_(data) {
    topic_.subscribers[index_] = &port_;
  }
  ~IceoryxSubscriber() override {
    topic_.subscribers[index_] = nullptr;
    port_.unsubscribe();
    port_.destroy();
  }

  ChunkView take() override {
    if (held_ == held_limit_) return {};
    auto chunk = port_.tryGetChunk();
    if (chunk.has_error()) return {};
    ++held_;
    // The library numbers the published chunks of a publisher from 0.
    const std::uint64_t sequence = chunk.value()->sequenceNumber();
    lost_ += sequence - expected_;
    expected_ = sequence + 1;
    return {static_cast<const ChunkHeader*>(chunk.value()->userHeader()),
            static_cast<const std::byte*>(chunk.value()->userPayload())};
  }

  void release(ChunkView chunk) override {
    port_.releaseChunk(IoxHeader::fromUserPayload(chunk.payload));
    --held_;
  }

  [[nodiscard]] ChunkLocation location(const ChunkView& chunk) const override { return locate(chunk.payload); }
  [[nodiscard]] std::uint64_t lost() const override { return lost_; }

 private:
  std::shared_ptr<Core> core_;
  TopicState& topic_;
  const std::size_t index_;
  const std::uint32_t held_limit_;
  iox::SubscriberPortUserType port_;
  std::uint32_t held_ = 0;
  std::uint64_t expected_ = 0;
  std::uint64_t lost_ = 0;
};

class IceoryxTransport final : public Transport {
 public:
  explicit IceoryxTransport(std::shared_ptr<Core> core) : core_(std::move(core)) {}

  Result<std::unique_ptr<Publisher>> publisher(const std::string& topic) override {
    TopicState* state = core_->find(topic);
    if (state == nullptr) return fail(unknown_topic(topic));
    if (std::exchange(state->publisher_created, true)) return fail(second_port(topic, "publisher"));
    iox::popo::PublisherOptions options;  // no history; a full queue discards its oldest chunk
    PublisherData* data = core_->runtime->getMiddlewarePublisher(core_->service(state->spec), options);
    if (data == nullptr) return fail(Code::kEnvironment, "topic '" + topic + "': RouDi gave no publisher port");
    state->publisher = data;
    return std::make_unique<IceoryxPublisher>(core_, *state, data);
  }

  Result<std::unique_ptr<Subscriber>> subscriber(const std::string& topic, const std::string& name) override {
    TopicState* state = core_->find(topic);
    if (state == nullptr) return fail(unknown_topic(topic));
    const auto& declared = state->spec.subscribers;
    const auto spec =
        std::find_if(declared.begin(), declared.end(), [&](const SubscriberSpec& s) { return s.name == name; });
    if (spec == declared.end()) return fail(unknown_subscriber(topic, name));
    const auto index = static_cast<std::size_t>(spec - declared.begin());
    if (state->subscriber_created[index]) return fail(second_port(topic, "subscriber '" + name + "'"));
    state->subscriber_created[index] = true;
    iox::popo::SubscriberOptions options;
    options.queueCapacity = spec->queue_depth;
    options.nodeName = iox_string<100>(name);
    SubscriberData* data = core_->runtime->getMiddlewareSubscriber(core_->service(state->spec), options);
    if (data == nullptr) {
      return fail(Code::kEnvironment, "topic '" + topic + "': RouDi gave no port for subscriber '" + name + "'");
    }
    return std::make_unique<IceoryxSubscriber>(core_, *state, index, data);
  }

  Status wait_connected() override {
    const auto deadline = std::chrono::steady_clock::now() + kConnectTimeout;
    for (;;) {
      const std::string missing = unconnected();
      if (missing.empty()) return {};
      if (std::chrono::steady_clock::now() > deadline) {
        return fail(Code::kEnvironment, fmt::format("not connected after {} s: {}", kConnectTimeout.count(), missing));
      }
      std::this_thread::sleep_for(kPollInterval);
    }
  }

  [[nodiscard]] std::vector<std::string> undeclared_subscribers() const override {
    std::vector<std::string> topics;
    for (const TopicState& topic : core_->topics) {
      if (topic.spec.exported == 0 && topic.publisher != nullptr &&
          connected_subscribers(*topic.publisher) > topic.spec.subscribers.size()) {
        topics.push_back(topic.spec.name);
      }
    }
    return topics;
  }

  [[nodiscard]] const PoolPlan& pools() const override { return core_->plan; }

  [[nodiscard]] std::vector<PoolUse> pool_use() const override {
    std::vector<PoolUse> use;
    for (std::uint32_t i = 0; i < core_->memory->getNumberOfMemPools(); ++i) {
      const iox::mepoo::MemPoolInfo info = core_->memory->getMemPoolInfo(i);
      use.push_back({info.m_chunkSize, info.m_numChunks, info.m_usedChunks, info.m_numChunks - info.m_minFreeChunks});
    }
    return use;
  }

  // One segment for this user, as segment_config() asks for it. A chunk that nobody sees tells where it is mapped.
  Result<std::vector<std::span<std::byte>>> memory() override {
    auto chunk = core_->probe->tryAllocateChunk(1, 1);
    if (chunk.has_error()) {
      return fail(Code::kEnvironment, "the segment of chunks cannot be found: iceoryx gives no chunk");
    }
    const auto segment = iox::rp::BaseRelativePointer::searchId(chunk.value());
    auto* const base = static_cast<std::byte*>(iox::rp::BaseRelativePointer::getBasePtr(segment));
    core_->probe->releaseChunk(chunk.value());
    return std::vector{
        std::span(base, iox::mepoo::MemoryManager::requiredChunkMemorySize(pool_config(core_->plan.pools)))};
  }

 private:
  // What is not connected yet, in words; "" when everything is.
  [[nodiscard]] std::string unconnected() const {
    std::string missing;
    for (const TopicState& topic : core_->topics) {
      for (std::size_t i = 0; i < topic.subscribers.size(); ++i) {
        const bool here = topic.subscribers[i] != nullptr;
        if (here && topic.subscribers[i]->getSubscriptionState() != iox::SubscribeState::SUBSCRIBED) {
          missing += (missing.empty() ? "" : ", ") + topic.spec.subscribers[i].name + " has no publisher of " +
                     topic.spec.name;
        }
      }
      if (topic.publisher == nullptr) continue;
      const std::uint64_t connected = connected_subscribers(*topic.publisher);
      if (connected >= topic.subscribers.size()) continue;
      missing += (missing.empty() ? "" : ", ") +
                 fmt::format("{} has {} of {} subscribers", topic.spec.name, connected, topic.subscribers.size());
      for (std::size_t i = 0; i < topic.subscribers.size(); ++i) {
        if (topic.subscribers[i] == nullptr)
          missing += "; not created in this process: " + topic.spec.subscribers[i].name;
      }
    }
    return missing;
  }

  std::shared_ptr<Core> core_;
};

// Do the pools of a RouDi that takt did not configure hold the plan?
Status check_pools_fit(const iox::mepoo::MemoryManager& memory, const PoolPlan& plan) {
  std::vector<std::uint64_t> wanted(memory.getNumberOfMemPools());
  for (const Pool& pool : plan.pools) {
    // The library takes the first pool that is large enough and never another one.
    std::uint32_t i = 0;
    while (i < wanted.size() && memory.getMemPoolInfo(i).m_chunkSize < pool.chunk_bytes) ++i;
    if (i == wanted.size()) {
      return fail(Code::kEnvironment, fmt::format("the running RouDi has no pool for chunks of {} bytes (topic '{}'); "
                                                  "start it with this configuration:\n{}",
                                                  pool.chunk_bytes, pool.topics.front(), roudi_config(plan)));
    }
    wanted[i] += pool.chunks;
    const iox::mepoo::MemPoolInfo info = memory.getMemPoolInfo(i);
    const std::uint64_t free = info.m_numChunks - info.m_usedChunks;
    if (wanted[i] > free) {
      return fail(
          Code::kEnvironment,
          fmt::format("the running RouDi has {} free chunks of {} bytes, the plan needs {} there (topic '{}' and "
                      "smaller ones); start it with this configuration:\n{}",
                      free, info.m_chunkSize, wanted[i], pool.topics.front(), roudi_config(plan)));
    }
  }
  return {};
}

}  // namespace

std::uint64_t iceoryx_management_bytes(const std::vector<Pool>& pools) {
  // The blocks of the management segment: ports, bookkeeping of the pools, and RouDi's own pools for introspection.
  const iox::roudi::DefaultRouDiMemory memory(segment_config(pools));
  return iox::roudi::PortPoolMemoryBlock().size() + memory.m_segmentManagerBlock.size() +
         memory.m_introspectionMemPoolBlock.size();
}

Result<std::unique_ptr<Transport>> make_iceoryx(TransportSpec spec, PoolPlan plan, RouDiRole role,
                                                const std::string& runtime_name) {
  if (spec.topics.empty()) return fail(Code::kConfiguration, "the transport has no topics");
  silence_library();
  TAKT_RETURN_IF_ERROR(check_library());
  std::optional<StartLock> start;  // until RouDi and this process's runtime stand
  if (role == RouDiRole::kEmbedded) {
    TAKT_ASSIGN(StartLock taken, StartLock::take());
    start.emplace(std::move(taken));
    TAKT_RETURN_IF_ERROR(check_no_roudi());
    TAKT_RETURN_IF_ERROR(check_shared_memory(plan));
  } else {
    TAKT_RETURN_IF_ERROR(wait_for_roudi(plan));
  }

  auto core = std::make_shared<Core>();
  core->spec = std::move(spec);
  core->plan = std::move(plan);
  for (const TopicSpec& topic : core->spec.topics) {
    TopicState state;
    state.spec = topic;
    state.subscriber_created.resize(topic.subscribers.size());
    state.subscribers.resize(topic.subscribers.size());
    core->topics.push_back(std::move(state));
  }
  const auto name = iox_string<100>(runtime_name);
  const QuietStart quiet;  // until the first answer: RouDi prints its last line from a thread of its own
  starting = true;
  const iox::cxx::GenericRAII started([] {}, [] { starting = false; });
  if (role == RouDiRole::kEmbedded) {
    core->roudi = std::make_unique<EmbeddedRouDi>(core->plan.pools, core->spec.external_clients);
    core->runtime = std::make_unique<iox::runtime::PoshRuntimeSingleProcess>(name);
  } else {
    core->runtime = std::make_unique<ClientRuntime>(name);
  }
  iox::popo::PublisherOptions options;
  options.offerOnCreate = false;
  // The name carries the process's own, so that several processes of a run may each have one.
  PublisherData* probe = core->runtime->getMiddlewarePublisher(
      {iox_string<100>("takt-pools"), iox_string<100>(fmt::format("{:016x}", core->spec.run)), name}, options);
  if (probe == nullptr) return fail(Code::kEnvironment, "RouDi gave no port; is it shutting down?");
  core->probe.emplace(probe);
  core->memory = probe->m_chunkSenderData.m_memoryMgr.get();
  if (role == RouDiRole::kExternal) TAKT_RETURN_IF_ERROR(check_pools_fit(*core->memory, core->plan));
  return std::make_unique<IceoryxTransport>(std::move(core));
}

Result<bool> roudi_running() {
  TAKT_ASSIGN(const StartLock look, StartLock::take());
  return roudi_lock_held();
}

std::vector<std::string> shared_memory_files() {
  // The segment of chunks is named after the group that may use it.
  const auto group = iox::posix::PosixGroup::getGroupOfCurrentProcess().getName();
  return {std::string("/dev/shm/") + iox::roudi::SHM_NAME, std::string("/dev/shm/") + group.c_str()};
}

}  // namespace takt::transport
