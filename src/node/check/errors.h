// Errors of memory and of synchronisation that one access or one warp shows by itself; races are
// checker.h's. The machine calls these hooks only while a program is checked; each makes findings
// (node/finding.h) and none changes what the program does.
//
// What counts, and by which document:
// - A load or atomic of which no byte has been written. A vector load at the end of a buffer may
//   bring bytes that nobody wrote beside those that it is for, so one written byte is enough.
//   Copies carry the bytes' state along. In shared memory, where lanes may look behind what others
//   have written and drop it, only if all lanes of the access find nothing, or if a lane computes
//   with the value and the result goes, by arithmetic alone, into a store to global memory; one to
//   shared memory counts as no write, so that it is reported when it gets further. A mere copy is
//   no use: it may be padding.
// - An address that is made from one array in shared memory and lies outside of it, be it in the
//   next one (decode_arrays.cpp).
// - Faults: outside of every allocation, freed, not mapped here, misaligned.
// - Memory that a process leaves behind, if it ended in good order.
// - bar (which is barrier.aligned) executed by parts of a warp at different places; participants of
//   one barrier that give different counts, or one that is no multiple of the warp size; a warp
//   that arrives twice (PTX ISA, bar), or may, because nothing orders its second arrival behind the
//   end of the phase at which it arrived without waiting; warps that wait for threads which can no
//   longer come.
//   Exited threads are not waited for (CUDA programming guide, __syncthreads).
// - An mbarrier wait that has missed its phase: it failed, the phase ended, the next one did, too,
//   and it fails again (PTX ISA, mbarrier.test_wait: only the current and the preceding phase).
// - Masks of warp-wide operations that leave out their own lane, or by which lanes wait for each
//   other in different operations (PTX ISA, bar.warp.sync), or for lanes that are blocked
//   elsewhere, or, in bar.warp.sync, that execute others with another mask meanwhile and exit
//   without having come (PTX ISA, bar.warp.sync: all threads of the mask); a shuffle from
//   a lane that its mask does not name, or that has exited (PTX ISA, shfl.sync). A shfl.up or
//   shfl.down over the edge of the lanes that take part is not reported: the last steps of a
//   reduction read there and drop what they get.
// - A loop that waits by weak loads, which need never see another thread's write; nvcc may also
//   have moved the load out of it, and nothing is left but the loop.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "node/check/initialised.h"
#include "node/finding.h"
#include "node/state/access.h"
#include "node/state/state.h"

namespace allranks::node::check {

class Errors {
 public:
  // `tell` gets every occurrence; those of one key are the same finding.
  using Tell = std::function<void(Finding finding, const std::string& key)>;
  Errors(State& state, Tell tell) : state_(state), tell_(std::move(tell)) {}

  ~Errors() { Forget(); }
  Errors(const Errors&) = delete;
  Errors& operator=(const Errors&) = delete;
  // What was allocated so far counts as written.
  void Forget();

  // --- memory ---
  // An object that is new, and that is device memory; shared memory of a new CTA.
  void Watch(const std::shared_ptr<Object>& object);
  static void WatchShared(Object& object) { object.initialised = Initialised::Make(object.size); }
  // A warp's access to global or shared memory, before or after it happens.
  void OnAccess(const Access& access) {
    if (access.object == nullptr) return;
    if (access.op->array >= 0) CheckArray(access);
    if (access.object->initialised != nullptr) CheckInitialised(access);
    if (!taints_.empty()) CheckTaints(access);
    if (!orphans_.empty()) CheckOrphan(access);
  }
  // The same of an asynchronous operation; `array`: as MemoryOp has it.
  void OnArray(const Path& path, int lane, int array, std::uint64_t offset, std::uint64_t size) {
    const SharedArray& of = path.warp->cta->launch->code->arrays[static_cast<std::size_t>(array)];
    if (offset < of.begin || offset + size > of.end) TellArray(path, lane, array, offset, size);
  }
  // The node, a stream or a host has written these bytes.
  static void OnWrite(Object& object, std::uint64_t offset, std::uint64_t size) {
    if (object.initialised == nullptr) return;
    object.initialised->Write(offset, size);
    if (object.initialised->complete()) object.initialised = nullptr;
  }
  // A copy that a thread begins reads these bytes; it is asked for as a whole.
  void OnCopyRead(const Path& path, int lane, const Object& object, std::uint64_t offset,
                  std::uint64_t size) {
    if (object.initialised == nullptr || size == 0 || !object.initialised->None(offset, size))
      return;
    TellCopy(path, lane, object, offset, size);
  }
  // The two halves of a copy of a stream.
  static InitialisedRange OnCopyFrom(const Object& object, std::uint64_t offset,
                                     std::uint64_t size) {
    return object.initialised == nullptr ? InitialisedRange{}
                                         : object.initialised->Take(offset, size);
  }
  static void OnCopyTo(Object& object, std::uint64_t offset, std::uint64_t size,
                       const InitialisedRange& range) {
    if (object.initialised == nullptr) return;
    object.initialised->Put(offset, size, range);
    if (object.initialised->complete()) object.initialised = nullptr;
  }
  // A fault is about to be reported. `what` is its text.
  void OnFault(const Path& path, Status status, const std::string& what, const FaultAt& at);
  // Lanes access a multicast address by another instruction than multimem.
  void OnMulticast(const Path& path, std::uint32_t lanes, const Object& object,
                   std::uint64_t offset);
  // A mapping is about to go from a process's table.
  void OnUnmap(const Process& process, const Mapping& mapping);
  // A process has ended in good order and leaves these behind.
  void OnLeft(const Process& process, std::span<const Mapping* const> mappings);

  // --- synchronisation ---
  // A path arrives at a barrier with `count` threads (0: all of its CTA), which has not been noted
  // in the barrier yet.
  void OnBarrier(const Path& path, std::uint32_t id, const NamedBarrier& barrier,
                 std::uint32_t count);
  // The same, and nothing orders it behind the phase at which its warp only arrived before.
  void OnUnorderedBarrier(const Path& path, std::uint32_t id);
  // The last lanes of a warp that came in parts have come.
  void OnParts(const Warp& warp, const NamedBarrier& barrier);
  // Something of the CTA has blocked or ended.
  void OnBlocked(const Cta& cta);
  // A path waits in a warp-wide operation.
  void OnWarpSync(const Path& path);
  // Lanes have executed a warp-wide operation, while other paths of the warp may wait in theirs.
  void OnWarpOp(const Path& path) {
    if (path.warp->paths.size() > 1) PassBy(path);
  }
  // Lanes are about to exit.
  void OnExit(const Path& path, std::uint32_t lanes) {
    if (!passed_by_.empty()) TellExit(path, lanes);
    if (!taints_.empty() || !used_.empty()) DropTaints(path, lanes);
  }
  // A lane reads from one that does not execute the shuffle with it; `lanes`: those that do.
  void OnShuffle(const Path& path, int lane, int from, std::uint32_t lanes);
  // Lanes have asked an mbarrier, at which `phases` phases have ended since its init, whether that
  // of a parity has.
  void OnMbarrierWait(const Path& path, const Cta& cta, std::uint32_t offset, std::uint32_t lanes,
                      bool ended, std::uint32_t parity, std::uint32_t phases);
  // A path is parked in a loop, for ever unless somebody writes what it reads.
  void OnPark(const Path& path, const SpinState& spin, bool for_ever);
  // Nothing will happen any more, and work is unfinished.
  void OnStuck();

 private:
  // A mapping that is gone.
  struct Gone {
    ProcessId process = 0;
    Address base = 0;
    std::uint64_t size = 0;
    std::string name;
    enum class How : std::uint8_t { kFreed, kClosed, kUnmapped } how = How::kFreed;
    Time time = 0;
    SiteId site = 0;           // of the call that did it
    std::uint64_t stream = 0;  // in which it was freed; 0: by the host
  };
  struct Poll {
    std::uint32_t lanes = 0, parity = 0, phases = 0;
  };

  // Lanes of a warp will store at `pc` what they have loaded from shared memory at `load`, where
  // nobody has written.
  struct Taint {
    std::uint64_t cta = 0;
    std::uint32_t warp = 0, pc = 0, load = 0, lanes = 0;
    std::uint32_t used = 0;  // lanes that have computed something with it
  };
  // A store of what a load brings; `used`: something was computed with it.
  struct StoreOf {
    std::uint32_t pc = 0;
    bool used = false;
  };

  void CheckInitialised(const Access& access);
  // Lanes of a load from shared memory have found nothing written.
  void Taints(const Access& access, std::uint32_t unwritten);
  // Stores of which the value is made from what the load at `pc` brings, whatever that is.
  const std::vector<StoreOf>& StoresOf(const std::shared_ptr<const Code>& of, std::uint32_t pc);
  // A store of such values: to global memory it is reported if they were used, to shared memory it
  // writes nothing.
  void CheckTaints(const Access& access);
  // Lanes exit.
  void DropTaints(const Path& path, std::uint32_t lanes);
  void PassBy(const Path& path);
  void TellExit(const Path& path, std::uint32_t lanes);
  void CheckArray(const Access& access);
  void TellArray(const Path& path, int lane, int array, std::uint64_t offset, std::uint64_t size);
  void CheckOrphan(const Access& access);
  // Reports a path that waits in a warp-wide operation for lanes that wait elsewhere. False: there
  // is none.
  bool TellWarpStuck(const Warp& warp);
  void TellCopy(const Path& path, int lane, const Object& object, std::uint64_t offset,
                std::uint64_t size);
  // The instruction at `pc`, executed by a thread of the path's warp.
  FindingAccess Show(const Path& path, int lane, std::uint32_t pc, const char* what) const;
  FindingAccess Show(const Path& path, const char* what) const;
  // What an address that is not mapped was, or is near.
  Finding::Kind Classify(ProcessId process, Address address, std::string* text, HostSite* freed,
                         std::uint64_t* stream) const;
  // `pc` is that of the first access: findings of one kind and place are the same.
  void Say(Finding::Kind kind, std::string text, std::string advice,
           std::vector<FindingAccess> accesses, std::uint32_t pc, std::vector<Edit> edits = {});

  State& state_;
  Tell tell_;
  std::vector<std::weak_ptr<Object>> watched_;
  std::deque<Gone> gone_;            // the last ones, newest last
  std::set<std::uint32_t> orphans_;  // ids of objects whose owner has freed them
  std::map<std::tuple<std::uint64_t, std::uint32_t, std::uint32_t>, Poll> polls_;  // failed ones
  std::set<std::uint64_t> blocked_;  // CTAs that have been reported
  // By a path that waits in a warp-wide operation: lanes that it waits for and that have executed
  // another one since.
  std::map<const Path*, std::uint32_t> passed_by_;
  // By block and warp: which lanes have last executed a warp-wide operation with part of the warp.
  struct Part {
    std::uint32_t pc = 0, lanes = 0;
  };
  std::map<std::pair<std::uint64_t, std::uint32_t>, Part> parts_;
  void Remember(const Path& path);
  bool CameBefore(const Path& path, std::uint32_t lanes) const;
  std::vector<Taint> taints_;
  // Words of shared memory, by block and offset, with results of such values.
  std::set<std::pair<std::uint64_t, std::uint64_t>> used_;
  std::map<std::pair<std::shared_ptr<const Code>, std::uint32_t>, std::vector<StoreOf>> stores_of_;
};

}  // namespace allranks::node::check
