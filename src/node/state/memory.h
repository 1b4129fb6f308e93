// Memory of the virtual machine room: objects, and the address tables through which processes see
// them. Everything else (waiting, visibility, reports, checks) is keyed by (object, offset),
// because one object may stand at several addresses: an IPC importer sees it elsewhere than its
// exporter.
#pragma once

#include <algorithm>
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/address_map.h"
#include "node/ids.h"
#include "node/state/late_writes.h"
#include "node/state/watches.h"
#include "node/status.h"
#include "node/time.h"

namespace allranks::node {

namespace check {
class Shadow;
class Initialised;
}  // namespace check
struct Path;

// Devices of the whole machine, at most: what a DeviceSet can name.
inline constexpr int kMaxDevices = 128;
using DeviceSet = std::bitset<kMaxDevices>;

struct FreeDeleter {
  void operator()(std::uint32_t* stamps) const { std::free(stamps); }
};
using L2Stamps = std::unique_ptr<std::uint32_t[], FreeDeleter>;

class HostView;

struct Object {
  enum class Kind : std::uint8_t {
    kDevice,
    kPinned,
    kManaged,
    kGlobal,
    kConst,
    kShared,
    kMulticast,  // has no bytes of its own: Mapping::multicast says where they are
  };
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
  Watches watches;
  LateWrites late;
  mutable L2Stamps stamps;  // per line of 128 bytes (Simulator::Touch); made on first use
  // Of the checker: made on first use; which bytes are written (null: all count as written).
  std::shared_ptr<check::Shadow> shadow;
  std::shared_ptr<check::Initialised> initialised;
  std::shared_ptr<HostView> view;  // through which its host sees it; null: directly
  // Mapped into its process, which can change it at any time.
  bool HostVisible() const { return kind == Kind::kPinned || kind == Kind::kManaged; }
};

// One of the memories behind a multicast address.
struct Replica {
  std::shared_ptr<Object> object;
  std::uint64_t offset = 0;
};

// What stands behind the addresses of a multicast object, at this moment: memory is bound to it and
// unbound while it is mapped.
struct Multicast {
  // A range in which every device of the team has memory, one replica each.
  struct Segment {
    std::uint64_t begin = 0, end = 0;
    std::vector<Replica> replicas;  // of `begin`
  };
  std::vector<Segment> segments;  // in order
  DeviceSet team;
  // nullptr where some device has no memory bound.
  const Segment* Find(std::uint64_t offset) const;
};

struct Mapping {
  Address base = 0;
  std::uint64_t size = 0;
  std::shared_ptr<Object> object;
  std::uint64_t offset = 0;  // of `base` in the object
  bool ipc = false;          // opened from a handle
  bool read_only = false;
  // Who may use it: its home and whom peer access lets, or the devices listed.
  enum class Rights : std::uint8_t { kPeers, kPool, kMapped };
  Rights rights = Rights::kPeers;
  DeviceSet readers, writers;
  // A multicast mapping: what multimem instructions act on, all at once. Null for ordinary
  // mappings, on which they act as if it were the only replica.
  std::shared_ptr<const Multicast> multicast;
  std::uint64_t handle = 0;  // that it was mapped from (virtual_memory.h)
  // Of host memory by a handle: what its process may do itself.
  bool host_reads = false, host_writes = false;

  // Bytes from `base` on that may be accessed.
  std::uint64_t Room() const { return size < object->size - offset ? size : object->size - offset; }
  // For reports: what a device that may not use it lacks.
  const char* Grant() const {
    return rights == Rights::kPeers  ? "peer access"
           : rights == Rights::kPool ? "the pool's access"
                                     : "access by cuMemSetAccess";
  }
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
  // Lists who may use the mapping.
  void Grant(Address base, Mapping::Rights rights, const DeviceSet& readers,
             const DeviceSet& writers);
  void GrantHost(Address base, bool reads, bool writes);
  void Touch() { ++version_; }  // rights have changed: what callers cached is void
  const std::map<Address, Mapping>& all() const { return mappings_; }
  // What the host may change at any time, by address: few among many.
  const std::map<Address, std::shared_ptr<Object>>& host_visible() const { return host_visible_; }

 private:
  std::map<Address, Mapping> mappings_;
  std::map<Address, std::shared_ptr<Object>> host_visible_;
  std::uint64_t version_ = 1;
};

// A range of memory.
struct Place {
  std::shared_ptr<Object> object;  // of the first byte
  std::uint64_t offset = 0;
  // Where the range is not bytes of one object: it lies in several mappings, or in the replicas of
  // a multicast mapping. Such a range has no data().
  struct Part {
    std::uint64_t at = 0, size = 0;  // in the range
    std::shared_ptr<Object> object;
    std::uint64_t offset = 0;
  };
  std::shared_ptr<const std::vector<Part>> parts;
  bool multicast = false;

  std::byte* data() const { return object->data + offset; }
  // `visit(object, offset, at, size)` for every piece of the first `size` bytes.
  template <class F>
  void ForParts(std::uint64_t size, F visit) const {
    if (parts == nullptr) return visit(*object, offset, std::uint64_t{0}, size);
    for (const Part& part : *parts) visit(*part.object, part.offset, part.at, part.size);
  }
  void Read(std::byte* to, std::uint64_t size) const {
    ForParts(size, [&](Object& from, std::uint64_t place, std::uint64_t at, std::uint64_t bytes) {
      std::memcpy(to + at, from.data + place, bytes);
    });
  }
  // `size` bytes of it, from `from` on; not 0.
  Place Slice(std::uint64_t from, std::uint64_t size) const;
};

struct RangeError {
  enum class Reason : std::uint8_t {
    kNone,
    kUnmapped,
    kBeyond,  // it begins in a mapping and ends behind it
    kNoAccess,
    kReadOnly,
    kMulticastRead,
    kUnbound,  // a multicast mapping without memory
  };
  Reason reason = Reason::kNone;
  const Mapping* mapping = nullptr;  // at fault, or before what is
};

// Finds all bytes of a range, which may go on from one mapping into the next. `check(mapping)` says
// what is wrong with an access to it, if anything.
template <class F>
RangeError FindRange(const AddressTable& table, Address address, std::uint64_t size, bool write,
                     Place* place, F check) {
  using Reason = RangeError::Reason;
  std::vector<Place::Part> parts;
  const Mapping* before = nullptr;
  *place = {};
  std::uint64_t at = 0;
  do {
    const Mapping* mapping = table.Find(address + at);
    if (mapping == nullptr) return {at == 0 ? Reason::kUnmapped : Reason::kBeyond, before};
    const std::uint64_t within = address + at - mapping->base;
    if (within >= mapping->Room()) return {Reason::kBeyond, at == 0 ? mapping : before};
    if (const Reason wrong = check(*mapping); wrong != Reason::kNone) return {wrong, mapping};
    // All of a range is multicast, or nothing.
    if (at != 0 && place->multicast != (mapping->multicast != nullptr)) {
      return {Reason::kBeyond, before};
    }
    const std::uint64_t offset = within + mapping->offset;
    std::uint64_t part = std::min(size - at, mapping->Room() - within);
    if (mapping->multicast != nullptr) {
      if (!write) return {Reason::kMulticastRead, mapping};
      const Multicast::Segment* segment = mapping->multicast->Find(offset);
      if (segment == nullptr) return {Reason::kUnbound, mapping};
      part = std::min(part, segment->end - offset);
      place->multicast = true;
      for (const Replica& replica : segment->replicas) {
        parts.push_back({at, part, replica.object, replica.offset + (offset - segment->begin)});
      }
    } else {
      if (at == 0 && part == size) {  // nearly always
        place->object = mapping->object;
        place->offset = offset;
        return {};
      }
      parts.push_back({at, part, mapping->object, offset});
    }
    before = mapping;
    at += part;
  } while (at < size);
  place->object = parts.front().object;
  place->offset = parts.front().offset;
  place->parts = std::make_shared<const std::vector<Place::Part>>(std::move(parts));
  return {};
}

// A first-fit allocator of addresses in one arena; deterministic, returns freed ranges to use.
class Arena {
 public:
  Arena() = default;
  Arena(Address base, std::uint64_t size) : base_(base), size_(size) {}
  // 0 when the arena is full. A gap of at least one granule follows every range, so that an
  // overrun meets no neighbour.
  Address Take(std::uint64_t size, std::uint64_t granule);
  void Return(Address address);
  // The same, but the range is not given out again while others are free: whoever still uses it
  // meets nobody else's memory there.
  void Retire(Address address);

 private:
  Address base_ = 0;
  std::uint64_t size_ = 0;
  std::uint64_t full_ = 0;  // bytes from `base_` on without a gap
  std::map<Address, std::uint64_t> taken_;
  std::deque<Address> retired_;  // still in taken_; oldest first
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
