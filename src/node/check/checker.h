// The checker: proves accesses unordered and chooses what strong loads return. clock.h has the
// theory of who knows what, shadow.h and history.h what is remembered of memory;
// docs/memory-model.md says which rules of PTX stand behind all this.
//
// The engine tells it every access of a warp (access.h), the rest of the machine what orders them,
// through State::checker, which is null unless something is checked.
//   checker.cpp   agents, launches, operations of streams, hosts
//   access.cpp    accesses against the shadow: races
//   strong.cpp    strong loads: values; strong_store.cpp the stores
//   release.cpp   what they say and who hears it: releases, acquires, fences
//   mbarriers.cpp the life of mbarriers: init, use, inval
//   meet.cpp      barriers of warps, CTAs and clusters, mbarriers, asynchronous copies
//   host.cpp      accesses of hosts
//   report.cpp    findings
//   remedy.cpp    what would cure them: trail.h has what it looks at; remedy_text.cpp says it
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/splitmix.h"
#include "node/check/clock.h"
#include "node/check/history.h"
#include "node/check/shadow.h"
#include "node/check/trail.h"
#include "node/checking.h"
#include "node/finding.h"
#include "node/host_site.h"
#include "node/state/access.h"
#include "node/state/state.h"

namespace allranks::node::check {

// Copies under way, as warps.
inline constexpr std::uint16_t kCopyWarps = kFirstCopyWarp;       // + warp: cp.async of its threads
inline constexpr std::uint16_t kBulkReads = kFirstCopyWarp + 64;  // + warp: sources of bulk groups
inline constexpr std::uint16_t kBulkWrites = kFirstCopyWarp + 128;  // + warp: their destinations
// + warp: mbarrier.init of its threads, for fences that cover nothing else.
inline constexpr std::uint16_t kMbarrierInits = kFirstCopyWarp + 192;
inline constexpr std::uint16_t kMbarrierCopies = 0x4000;  // + n: what completes on one mbarrier

// Lanes of a warp that know the same.
struct Group {
  std::uint32_t lanes = 0;
  ClockRef others;  // of other agents; of the own CTA nothing that `own` has not
  KnownRef own;     // of the own CTA
  ClockRef seen;    // what strong loads must see beyond that (fence.sc); null: nothing
  Proxied proxied;  // what the asynchronous proxy may read
  ScOrder sc;

  bool Same(const Group& other) const {
    return others == other.others && own == other.own && seen == other.seen &&
           proxied == other.proxied && sc == other.sc;
  }
};

// What a thread knew at its last fence: said by its later strong writes.
struct Snapshot {
  Scope scope = Scope::kSys;
  Tick tick = 0;
  Group knew;
};

// Said by a strong write that a thread has read, and not acquired yet: a fence will.
struct Pending {
  Part part;
  std::uint32_t object = 0;
  std::uint64_t offset = 0;
};

struct LaneState {
  std::vector<Tick> copies, bulks;                      // of groups committed, oldest first
  std::vector<std::shared_ptr<const Snapshot>> fences;  // by scope, widest first; each newer
  std::vector<Pending> pending;
  Tick inits = 0;  // at the last fence.mbarrier_init
};

struct WarpClocks {
  std::vector<Group> groups;
  std::unique_ptr<std::array<LaneState, kLanes>> lanes;  // made on first use
};

// A strong write that was read without learning what stands behind it; for remedies.
struct Hint {
  Stamp writer, reader;
  std::uint32_t write_pc = 0, read_pc = 0;
  Scope need = Scope::kSys;
  bool released = false;  // the write says something
  bool narrow = false;    // a scope leaves the other out
  bool acquired = false;  // the load was an acquire, or a fence followed
  std::string object;
};

struct MbarrierClocks {
  Message arriving, ended;  // of this phase so far, and of the phases before
  Stamp init;
  std::uint32_t init_pc = 0;
  // What an inval has to come after: waits, and arrivals at the present phase, by warp.
  struct Use {
    Agent agent = 0;
    std::uint16_t warp = 0;
    bool wait = false;
    std::uint32_t pc = 0;
    std::array<Tick, kLanes> tick{};  // of each lane's last one; 0: none
  };
  std::vector<Use> uses;
};

// Of a cluster's barrier.
struct ClusterClocks {
  Message arriving, ended;
};

struct LaunchInfo {
  std::string what;  // "kernel", "copy", ...
  int rank = -1, device = -1;
  std::string kernel;
  std::shared_ptr<const Code> code;
  bool trusted = false;  // ModuleImage::trusted
  Dim3 block;
  ProcessId process = 0;
  std::uint64_t stream = 0;  // of its process
  OpId op = 0;               // in the order in which operations were given to streams; 0: a host
  bool cooperative = false;
  bool legacy = false;  // the stream is the default one
  SiteId site = 0;      // of the host's call that gave it to its stream
};

struct CtaClocks {
  Agent agent = 0;
  Tick tick = 1;
  Position position;
  std::vector<WarpClocks> warps;
  std::map<std::uint32_t, Group> arrived;  // bar.arrive, by barrier
  // Named barriers: who has come to the present phase, by barrier; and by barrier and warp, who
  // came to the last phase at which the warp only arrived, so that it does not know that it ended.
  struct Came {
    std::uint16_t warp = 0;
    std::uint8_t lane = 0;
    bool arrived = false;
    Tick tick = 0;
  };
  using Phase = std::vector<Came>;
  std::map<std::uint32_t, Phase> came;
  std::map<std::pair<std::uint32_t, std::uint16_t>, std::shared_ptr<const Phase>> left;
  std::map<std::uint32_t, MbarrierClocks> mbarriers;
  // By warp and lane: the last bulk copy out of the CTA's shared memory that a bulk group
  // completes.
  struct Source {
    Tick tick = 0;
    int lane = 0;
    std::uint32_t pc = 0;
  };
  std::map<std::pair<std::uint32_t, int>, Source> sources;
  // By the mbarrier (as a warp) that completes them: the last copy out of the CTA's shared memory.
  std::map<std::uint16_t, Source> pushes;
  std::map<std::pair<Agent, std::uint32_t>, std::uint16_t> copies;  // by mbarrier they complete on
  std::vector<Hint> hints;                                          // the last few
};

// Of an operation of a stream.
struct OpClocks {
  ChainPlace place;
  ClockRef known;       // before it begins
  ClockRef primary;     // what griddepcontrol.wait tells: the end of the kernel that it may overlap
  ClockRef before;      // the same with all that stands before that kernel in the stream
  ClockRef end;         // when it is over, and all before it in its stream
  ClockRef done;        // when it is over; less than `end` for a kernel that has not waited
  bool beside = false;  // it may overlap the kernel before it
  Agent agent = 0;
  ProcessId process = 0;
  int device = -1;
  bool legacy = false;          // of the default stream
  SiteId site = 0;              // of the host's call that made it
  std::vector<ProcessId> told;  // other processes that wait for it
  std::shared_ptr<struct LaunchClocks> launch;
};

// Of a launch: what its CTAs know when they begin, and all of them together at the end.
struct LaunchClocks {
  ChainPlace place;
  ClockRef start, end;
  ClockRef primary;         // of the kernel that it may overlap, when that is over
  bool waited = false;      // some thread has executed griddepcontrol.wait
  std::vector<Agent> ctas;  // of a kernel that may overlap another
  std::shared_ptr<const LaunchInfo> info;
};

// A thread of a running path at an instruction of its code, as findings show it.
FindingAccess ShowThread(State& state, const Path& path, int lane, std::uint32_t pc,
                         const char* what);

// The object's name as findings have it: without a rank where there is one process only.
std::string NameIn(const State& state, const Object& object);
// The object that an access is about, and where it was allocated.
void ShowObject(State& state, const Object& object, FindingAccess* access);

// Schedule::sample: memory of this size is large; of its pages, one of so many is looked at.
inline constexpr std::uint64_t kSampledBytes = 4 << 20, kSampledPage = 4096, kSampledPages = 128;
// Strong writes that are remembered where memory is sampled.
inline constexpr std::size_t kSampledRecords = 1'000'000;

class Checker {
 public:
  explicit Checker(State& state);
  // --- where the host asked for what findings name (host_site.h) ---
  void SetSites(HostSites* sites) { sites_ = sites; }
  SiteId caller = 0;          // of the call that is being carried out
  std::uint64_t freeing = 0;  // the stream that is freeing memory; 0: a host is
  const HostSite& SiteOf(SiteId id) const;
  void Allocated(const Object& object) {
    if (caller != 0 && allocated_.size() < kMostAllocated) allocated_[object.id] = caller;
  }
  const HostSite& AllocatedAt(const Object& object) const;

  // `sample`: Schedule::sample.
  void SetSchedule(std::uint64_t seed, std::uint64_t sample = 0);
  std::vector<Finding> TakeFindings();
  // Under a schedule, now and then.
  bool Sometimes() { return Perturbed(state_.now) && Random() % 4 == 0; }
  // How many strong loads got an older value than the newest.
  std::uint64_t chosen() const { return chosen_; }
  std::uint64_t accesses = 0, bytes = 0;

  // --- accesses of a warp (access.cpp, strong.cpp, strong_store.cpp) ---
  void Weak(const Access& access);
  // Weak stores of size[lane] bytes at offset[lane]: st.bulk.
  void Fill(const Path& path, std::uint32_t lanes, Object& object, const std::uint64_t* offset,
            const std::uint64_t* size);
  // `values`: what the lanes would get, kMaxKept bytes each; replaced where something older is
  // chosen. True: it was. An atomic that changes nothing and reads what a load would may be one.
  bool Load(const Access& access, std::byte* values, Time sampled);
  // After the write; `old`: as above, what it has replaced.
  // `settled`: everybody sees it at once.
  void Store(const Access& access, const std::byte* old, bool settled);
  // When what was stored since the last call can be seen by others.
  void Close(const Object& object, std::uint32_t lanes, const std::uint64_t* offset, Time visible);
  void Fence(const Path& path, const MemoryOp& op, std::uint32_t mask);
  // Bytes of an object by an operation of a stream, or by the node outside of time (null).
  void Direct(const OpClocks* op, Object& object, std::uint64_t offset, std::uint64_t size,
              bool write, bool strong = false, std::uint32_t place = 0);

  // --- threads (meet.cpp) ---
  void BeginCta(Cta& cta);
  void JoinCluster(Cta& cta, std::uint64_t number);
  void Exit(const Path& path, std::uint32_t lanes);
  void WarpMeets(Warp& warp, std::uint32_t lanes);
  // A path comes to a barrier that counts threads, and waits or only arrives. False: nothing orders
  // this behind the end of the phase at which its warp only arrived before, so that it may be
  // counted twice in that phase.
  bool BarrierComes(const Path& path, std::uint32_t barrier, bool arrives);
  void BarrierArrives(const Path& path, std::uint32_t barrier);
  void BarrierEnds(Cta& cta, std::uint32_t barrier, const std::vector<Path*>& waiting);
  void ClusterArrives(const Path& path, std::uint32_t lanes, const AsyncOp& op);
  void ClusterEnds(Cluster& cluster);
  void ClusterWaited(const Path& path, std::uint32_t lanes, const AsyncOp& op);
  void GridWaited(const Path& path);
  void MbarrierArrives(const Path& path, int lane, Cta& target, std::uint32_t offset,
                       const AsyncOp& op);
  // mbarrier.init; `live`: of one that is there already.
  void MbarrierBegins(const Path& path, int lane, Cta& target, std::uint32_t offset, bool live);
  void MbarrierInvalid(const Path& path, int lane, Cta& target, std::uint32_t offset);
  // Any other operation on one that is there, or the begin of a copy that completes on it.
  void MbarrierUsed(const Path& path, std::uint32_t lanes, Cta& target, std::uint32_t offset,
                    bool wait);
  void MbarrierEnds(Cta& target, std::uint32_t offset);  // a phase
  void MbarrierWaited(const Path& path, std::uint32_t lanes, Cta& target, std::uint32_t offset,
                      const AsyncOp& op);

  // --- asynchronous copies (meet.cpp) ---
  // What completes a copy that `lane` of the path begins.
  struct Completion {
    enum class By : std::uint8_t { kCopyGroup, kBulkGroup, kMbarrier } by = By::kCopyGroup;
    Cta* target = nullptr;  // kMbarrier
    std::uint32_t offset = 0;
  };
  void CopyReads(const Path& path, int lane, const Completion& by, Object& object,
                 std::uint64_t offset, std::uint64_t size);
  // `reduces`: bytes of an element of a reduction, 0: it is none.
  void CopyWrites(const Path& path, int lane, const Completion& by, Object& object,
                  std::uint64_t offset, std::uint64_t size, std::uint32_t reduces = 0);
  // What an mbarrier learns when the copy is complete: to be kept until then.
  ClockRef CopyDone(const Path& path, int lane, const Completion& by);
  void MbarrierCompletes(Cta& target, std::uint32_t offset, const ClockRef& copy);
  void GroupCommits(const Path& path, std::uint32_t lanes, bool bulk);
  // All but the last `pending` groups; `all`: what is not committed, too.
  void GroupWaits(const Path& path, std::uint32_t lanes, bool bulk, std::uint32_t pending, bool all,
                  bool read);

  // --- operations of streams, hosts (checker.cpp) ---
  // The operation is the next of its stream (`chain`, made on first use), after what its host
  // knows.
  void Enqueue(OpClocks& op, ProcessId process, ChainPlace* stream);
  void After(OpClocks& op, const ClockRef& clock);
  void After(OpClocks& op, OpId over);                            // one that is complete
  void AfterDevice(OpClocks& op, ProcessId process, int device);  // all that is over there
  // It may begin before the kernel before it has ended; what that knew when it began, it knows.
  void Beside(OpClocks& op, const OpClocks& primary);
  void Beside(OpClocks& op, OpId over, int device);  // it is complete, and may be no such kernel
  void PrimaryOver(OpClocks& op, const ClockRef& done, const ClockRef& end);
  // One that accesses memory itself.
  void Begin(OpClocks& op, const char* what, int device, std::uint64_t stream = 0, OpId id = 0);
  void BeginLaunch(Launch& launch, OpClocks& op, std::uint64_t stream = 0, OpId id = 0);
  void End(OpClocks& op, OpId id);
  // A stream's own writes and waits of values.
  // `releases`: it comes behind a fence of system scope.
  void StreamWrites(OpClocks& op, Object& object, std::uint64_t offset, std::uint32_t size,
                    const std::byte* old, bool releases);
  void StreamWaited(OpClocks& op, Object& object, std::uint64_t offset, std::uint32_t size);
  // The operation's chain has no other, and whoever knows `last` knows it.
  void EndsWith(const OpClocks& op, const OpClocks& last);
  // A host function of a stream comes after what is before it there, and what its process then
  // knows comes before what is behind it.
  void HostCalled(const OpClocks& op) { HostKnows(op.process, op.known); }
  void HostReturns(OpClocks& op) { After(op, hosts_[op.process]); }
  void HostWaited(OpId over);                        // a host knows that it is complete
  void HostWaited(OpId over, ProcessId process);     // one that need not have begun it
  void DeviceWaited(ProcessId process, int device);  // ... all that is over on a device
  void HostKnows(ProcessId process, const ClockRef& clock);
  void HostMeets(ProcessId process);
  // What a host does itself with memory that devices see (host.cpp).
  void SetHostsSpeak(bool on) { hosts_speak_ = on; }
  void HostAccess(ProcessId process, Object& object, std::uint64_t offset, std::uint64_t size,
                  bool write, Checking::HostOrder order);
  void HostFence(ProcessId process, Checking::HostOrder order);
  void HostTouches(ProcessId process, Object& object, std::uint64_t offset, std::uint64_t size,
                   bool write, SiteId site);
  bool HostBehind(ProcessId process) const;
  // Everything so far is known to all hosts. `idle`: nothing is unfinished, and nothing of it need
  // be remembered.
  void HostsMeet(bool idle);

  const Places& places() const { return places_; }

  // Findings of all kinds end here; equal ones are folded.
  void Add(Finding finding, const std::string& key);

 private:
  friend class AccessWalk;
  Agent NewAgent(const ChainPlace& place, const Position& position,
                 std::shared_ptr<const LaunchInfo> info, const Dim3& block);
  WarpClocks& Of(const Path& path);
  LaneState& StateOf(WarpClocks& warp, int lane);
  // Makes `lanes` a union of groups.
  static void Separate(WarpClocks& warp, std::uint32_t lanes);
  static Group& GroupOf(WarpClocks& warp, int lane);
  // Groups that know the same become one.
  static void Coalesce(WarpClocks& warp);
  // What a thread knows, itself included.
  static ClockRef Full(Agent agent, const Group& group, std::uint16_t warp, std::uint32_t lanes,
                       Tick tick);
  void Learn(CtaClocks& cta, Group& group, const Part& part);
  // What any of them knows.
  Group United(const std::vector<Group>& groups) const;
  Message Say(const CtaClocks& cta, const Path& path, int lane, const Group& group, bool releases,
              Scope scope, Tick tick) const;
  bool Hear(CtaClocks& cta, WarpClocks& warp, std::uint32_t lanes, const Message& message,
            bool acquires, Scope scope, std::uint32_t object, std::uint64_t offset);
  void HearAll(const Path& path, std::uint32_t lanes, const Message& message, const AsyncOp& op);
  std::uint8_t ElementsRead(const Group& group, const CtaClocks& cta, std::uint16_t warp, int lane,
                            const StrongWrite& write) const;
  // Writes of a line that a load does not read: from a number on, and single ones.
  struct Unread {
    std::uint64_t cut = ~std::uint64_t{0};
    std::array<std::uint64_t, 16> apart;
    int count = 0;
    bool chosen = false;
    bool Has(std::uint64_t number) const {
      return number >= cut ||
             std::find(apart.begin(), apart.begin() + count, number) != apart.begin() + count;
    }
  };
  // How a load gets old values: as drawn, the oldest a few times in a row, or the oldest in any
  // case.
  enum class Choice : std::uint8_t { kDrawn, kOldestOften, kOldest };
  Unread Choose(CtaClocks& cta, WarpClocks& warp, const Access& access, std::uint32_t here,
                Line& line, Time sampled, Choice how);
  bool Observed(const Line& line, const Entry& e, const Entry& a, const Group& group,
                const CtaClocks& cta) const;

  // Whether weak accesses to this object are sampled, and which of them are looked at.
  bool IsSampled(const Object& object) const {
    return sample_ != 0 && object.size >= kSampledBytes;
  }
  bool IsChosen(const Object& object, std::uint64_t offset) const {
    return Mix(sample_, Mix(object.id, offset / kSampledPage)) % kSampledPages == 0;
  }
  std::uint32_t ChosenLanes(const Access& access) const;
  // Of strong accesses all are looked at, since any of them may order others. Where data is strong,
  // too, that takes more memory than there is: from then on such accesses are sampled as well, and
  // nothing is found any more, because order may be missing.
  bool Ignores(const Access& access) const {
    return given_up_ && IsSampled(*access.object) &&
           !IsChosen(*access.object, access.offset[std::countr_zero(access.lanes)]);
  }
  // `visit(offset, size)` for what of a range is looked at.
  template <class F>
  void ForChosen(const Object& object, std::uint64_t offset, std::uint64_t size, F visit) const {
    if (!IsSampled(object)) return visit(offset, size);
    for (std::uint64_t at = offset; at < offset + size;) {
      const std::uint64_t end = std::min(offset + size, (at / kSampledPage + 1) * kSampledPage);
      if (IsChosen(object, at)) visit(at, end - at);
      at = end;
    }
  }
  // Lanes of `e` that have bytes in common with `a` and that the group is not ordered after.
  std::uint32_t Unordered(const Entry& e, const Entry& a, const Group& group,
                          const CtaClocks& cta) const;
  // Whether there are none, of two that have bytes in common.
  bool Ordered(const Entry& e, const Entry& a, const Group& group, const CtaClocks& cta) const;
  // `pushed`: an mbarrier completes the copy, so any thread of the block may wait.
  void ReportSource(const Path& path, const CtaClocks::Source& source, bool pushed);
  // init and inval write the mbarrier's bytes as ordinary stores do.
  Line& MbarrierWrites(const Path& path, int lane, Cta& target, std::uint32_t offset);
  void CheckMbarriers(const Line& line, const Entry& a, const Object& object, std::uint64_t number);
  void CopyTouches(const Path& path, int lane, const Completion& by, Object& object,
                   std::uint64_t offset, std::uint64_t size, bool write, std::uint32_t reduces);
  std::uint16_t CopyWarp(CtaClocks& cta, const Path& path, const Completion& by, bool write);
  static void Meet(WarpClocks& warp, std::uint32_t lanes, const Group& knows);
  bool MorallyStrong(const Entry& e, const Entry& a) const;
  bool Stays(const Entry& e, const Entry& a, const Group& group, const CtaClocks& cta) const;
  void Check(Line& line, const Entry& a, const Group& group, const CtaClocks& cta,
             const Object& object, std::uint64_t number);
  bool Knows(const Group& group, const CtaClocks& cta, std::uint16_t warp, int lane,
             const Stamp& stamp) const;
  void Observe(CtaClocks& cta, const Path& path, std::uint32_t lanes, const MemoryOp& op,
               const StrongWrite& write, const Object& object, std::uint64_t offset);
  bool StaleHere(const Path& path);
  void ObserveHost(CtaClocks& cta, const Path& path, std::uint32_t lanes, const MemoryOp& op,
                   const Object& object, std::uint64_t offset);
  std::uint64_t Random();
  // Without all order nobody can say which old values are permitted.
  bool Perturbed(Time at) const { return seed_ != 0 && !given_up_ && at >= state_.perturbed_from; }

  FindingAccess Show(const Entry& entry, std::uint32_t lane, const Object& object,
                     std::uint64_t line) const;
  void ReportRace(const Entry& earlier, const Entry& later, std::uint32_t lanes,
                  const CtaClocks* cta, const Object& object, std::uint64_t line,
                  bool proxy = false, const Hint* boundary = nullptr);
  void Explain(Finding& finding, const Entry& earlier, std::uint32_t lane, const Entry& later,
               std::uint32_t later_lane, const CtaClocks* cta, bool narrow, bool proxy) const;
  friend class Explanation;
  friend class RemedySearch;
  Trail* TrailOf(const CtaClocks& cta);
  Event EventOf(Event::Kind kind, const CtaClocks& cta, const Path& path, std::uint32_t lanes);
  void RecordRead(const CtaClocks& cta, const Path& path, std::uint32_t lanes, const MemoryOp& op,
                  const StrongWrite& write, std::uint32_t object, std::uint64_t offset);
  // What a host that knows this much has written.
  void RecordHostRead(const CtaClocks& cta, const Path& path, std::uint32_t lanes,
                      const MemoryOp& op, const Object& object, std::uint64_t offset,
                      const ClockRef& knows);
  // Nothing that a kernel has written stands there yet.
  void RecordPoll(const CtaClocks& cta, const Path& path, std::uint32_t lanes,
                  const Access& access);
  void RecordWrite(const CtaClocks& cta, const Path& path, std::uint32_t lanes,
                   const Access& access);
  void RecordFence(const CtaClocks& cta, const Path& path, const MemoryOp& op, std::uint32_t mask);
  void RecordBarrier(const CtaClocks& cta, std::uint64_t warps);
  // The finding's cause is known already: the index of the finding that it belongs to.
  std::size_t PushCause(Finding finding);
  // `apart`: an instruction of the same warp that has stored another part of the line; null: none.
  void ReportVector(const StrongWrite& write, const StrongWrite* apart, const Path& path, int lane,
                    const Object& object, std::uint64_t offset, std::uint32_t bytes);

  struct AgentInfo {
    std::shared_ptr<const LaunchInfo> info;
    Dim3 block;
    ClockRef start;                // of a CTA: what its launch knew when it began
    std::unique_ptr<Trail> trail;  // made on first use
    ClockRef known;                // of a stream's operation: before it began
    SiteId told = 0;  // of the host's store, or the stream's write, of the flag that it read last
  };
  // The flag, read before `later` by somebody whom it is ordered after, that would order it after
  // `earlier` if the start of the flag's kernel said what it knows; null: none.
  const Hint* Boundary(const Entry& earlier, const Entry& later, const Group& group,
                       const CtaClocks& cta) const;
  static constexpr std::size_t kMostTrails = 4096;
  std::deque<Agent> trails_;  // of agents that have one, the oldest first
  std::uint64_t moment_ = 0;

  State& state_;
  HostSites* sites_ = nullptr;
  static constexpr std::size_t kMostAllocated = std::size_t{1} << 20;
  std::unordered_map<std::uint32_t, SiteId> allocated_;  // by object
  std::uint64_t seed_ = 0, draws_ = 0, chosen_ = 0, writes_ = 0;
  std::uint64_t sample_ = 0;
  bool given_up_ = false;
  Places places_;  // by agent
  Joins join_{places_};
  std::vector<Position> positions_;  // by agent
  std::vector<AgentInfo> agents_;    // by agent
  struct Ended {
    ProcessId process = 0;
    ClockRef clock, done;  // as OpClocks has them
    int device = -1;       // of a kernel
    ClockRef start;        // what that knew when it began
  };
  std::map<OpId, Ended> ended_;  // the latest
  ClockRef retired_;             // of those dropped from it
  std::map<ProcessId, ClockRef> hosts_;
  // A host that speaks for itself is a chain of operations, each up to something that it says.
  struct Speaker {
    ChainPlace chain;
    OpClocks op;       // agent 0: the next access begins another one
    ClockRef pending;  // said by what it has read and not acquired yet: a fence will
    ClockRef fenced;   // what it knew at its last release fence
  };
  bool hosts_speak_ = false;
  std::map<ProcessId, Speaker> speakers_;
  Speaker& SpeakerOf(ProcessId process);
  ClockRef Heard(const Line& line, std::uint32_t begin, std::uint32_t end) const;
  std::map<std::pair<ProcessId, int>, ClockRef> devices_;  // the end of what is over there
  ClockRef met_;                                           // what hosts have told each other
  ClockRef everything_;                                    // the end of all that is over
  std::map<std::uint64_t, ClockRef> fence_sc_;  // by CTA, cluster, device; 0: of the system
  std::vector<Finding> findings_;
  std::map<std::string, std::size_t> keys_;
  using SeenKey = std::array<std::uint64_t, 5>;  // two places in code, and what is wrong
  std::map<SeenKey, std::size_t> seen_;
  std::size_t counted_ = 0, others_ = 0;  // of findings_
  std::size_t records_ = 0;               // of all histories; what is forgotten counts until all is
  bool Full(Finding::Kind kind) const;
  // It has been seen, or there is no room for more of its kind.
  bool Again(const SeenKey& key, Finding::Kind kind);
  void Push(Finding finding);
  std::vector<std::weak_ptr<Shadow>> shadows_;
  Shadow& ShadowOf(Object& object);
};

// Strong accesses as accesses (access.cpp); strong.cpp and strong_store.cpp do what makes them
// strong.
void RememberStrong(Checker& checker, CtaClocks& cta, WarpClocks& warp, const Access& access);

}  // namespace allranks::node::check
