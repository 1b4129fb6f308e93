// Memory of the virtual machine room: objects, and the address tables through which processes see
// them. Everything else (waiting, visibility, reports, observers) is keyed by (object, offset),
// because one object may stand at several addresses: an IPC importer sees it elsewhere than its
// exporter.
#pragma once

#include <bitset>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "node/late_writes.h"
#include "node/machine.h"
#include "node/status.h"
#include "node/time.h"

namespace allranks::node {

struct Path;

// Devices of the whole machine, at most: what a DeviceSet can name.
inline constexpr int kMaxDevices = 128;
using DeviceSet = std::bitset<kMaxDevices>;

// Generic-address windows of the spaces that are not global memory. Processes never have mappings
// there.
inline constexpr Address kSharedWindow = 0x6000'0000'0000;
inline constexpr Address kLocalWindow = 0x6100'0000'0000;
inline constexpr Address kParamWindow = 0x6200'0000'0000;
// Addresses of functions: kFunctionWindow + 16 * (number in the module + 1). Nothing can be loaded
// there.
inline constexpr Address kFunctionWindow = 0x6300'0000'0000;
inline constexpr std::uint64_t kWindowSize = 0x0100'0000'0000;

// Arenas: pinned memory of rank r starts at kPinnedArena + r * kPinnedStride and is mapped at the
// same address in the process; device arenas are never mapped there. Fixed, so that no address
// depends on who came first.
inline constexpr Address kPinnedArena = 0x2000'0000'0000;
inline constexpr std::uint64_t kPinnedStride = std::uint64_t{256} << 30;
inline constexpr int kPinnedArenas = 64;
inline constexpr Address kDeviceArena = 0x3000'0000'0000;
inline constexpr std::uint64_t kDeviceStride = std::uint64_t{256} << 30;
inline constexpr int kDeviceArenas = 128;

// Somebody who waits for bytes of an object to change.
struct Watch {
  std::uint64_t offset = 0;
  std::uint32_t size = 0;
  Path* path = nullptr;     // a parked path ...
  std::uint64_t host = 0;   // ... or a host watch
  std::uint32_t index = 0;  // which of the waiter's reads this is
};

struct FreeDeleter {
  void operator()(std::uint32_t* stamps) const { std::free(stamps); }
};
using L2Stamps = std::unique_ptr<std::uint32_t[], FreeDeleter>;

struct Object {
  enum class Kind : std::uint8_t { kDevice, kPinned, kManaged, kGlobal, kConst, kShared };
  std::uint32_t id = 0;
  Kind kind = Kind::kDevice;
  int device = -1;  // home; -1: host memory (managed memory moves)
  ProcessId owner = 0;
  std::uint64_t size = 0;    // as asked for; bounds are checked against it
  std::uint64_t mapped = 0;  // bytes of backing
  std::byte* data = nullptr;
  int fd = -1;
  std::string name;  // for reports
  int mappings = 0;
  std::vector<Watch> watches;
  LateWrites late;
  mutable L2Stamps stamps;  // per line of 128 bytes (World::Touch); made on first use
  // Mapped into its process, which can change it at any time.
  bool HostVisible() const { return kind == Kind::kPinned || kind == Kind::kManaged; }
};

// One of the memories behind a multicast address.
struct Replica {
  std::shared_ptr<Object> object;
  std::uint64_t offset = 0;
};

struct Mapping {
  Address base = 0;
  std::uint64_t size = 0;
  std::shared_ptr<Object> object;
  bool ipc = false;  // opened from a handle
  bool read_only = false;
  // A multicast mapping: what multimem instructions act on, all at once; `object` is the first.
  // Empty for ordinary mappings, on which they act as if it were the only replica.
  std::vector<Replica> replicas;
  // Memory of a pool: the visible devices in `granted` may use it, whatever peer access says.
  bool pooled = false;
  DeviceSet granted;
};

// One process's view. Lookup is the hot path of generic and global accesses; callers cache the
// mapping they got together with version().
class AddressTable {
 public:
  // The mapping that contains `address`, or nullptr.
  const Mapping* Find(Address address) const;
  // The mapping nearest to `address`, for reports; nullptr if there is none.
  const Mapping* Nearest(Address address) const;
  void Insert(Mapping mapping);
  bool Erase(Address base);
  std::uint64_t version() const { return version_; }
  // Changes the rights of pooled memory.
  void Grant(Address base, const DeviceSet& granted);
  void Touch() { ++version_; }  // rights have changed: what callers cached is void
  const std::map<Address, Mapping>& all() const { return mappings_; }

 private:
  std::map<Address, Mapping> mappings_;
  std::uint64_t version_ = 1;
};

// A first-fit allocator of addresses in one arena; deterministic, returns freed ranges to use.
class Arena {
 public:
  Arena() = default;
  Arena(Address base, std::uint64_t size) : base_(base), size_(size) {}
  // 0 when the arena is full. A gap of at least one granule follows every range, so that an
  // overrun meets no neighbour.
  Address Take(std::uint64_t size, std::uint64_t granule);
  void Return(Address address);

 private:
  Address base_ = 0;
  std::uint64_t size_ = 0;
  std::map<Address, std::uint64_t> taken_;
};

// Creates and destroys backing. Keeps the sum of all backing within the limit.
class Backing {
 public:
  explicit Backing(std::uint64_t limit) : limit_(limit) {}
  // nullptr when the limit or the operating system says no.
  std::shared_ptr<Object> Create(Object::Kind kind, int device, ProcessId owner,
                                 std::uint64_t size);
  std::uint64_t used() const { return *used_; }

 private:
  std::uint64_t limit_;
  std::shared_ptr<std::uint64_t> used_ = std::make_shared<std::uint64_t>(0);
  std::uint32_t next_id_ = 1;
};

}  // namespace allranks::node
