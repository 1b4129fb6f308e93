// The chain of flags between two accesses, and where it fails. See remedy.cpp.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "node/check/shadow.h"
#include "node/check/trail.h"
#include "node/finding.h"

namespace allranks::node::check {

class Checker;
struct LaunchInfo;

const char* ScopeName(Scope scope);  // "gpu"
const char* FenceName(Scope scope);  // "__threadfence()"
// "a.cu:12 (inlined at a.cu:40)"; without -lineinfo the instruction.
std::string PlaceOf(const Code& code, std::uint32_t pc);
Edit EditAt(const Code& code, std::uint32_t pc, Edit::Action action, Edit::By by, std::string text);
// It has strong loads, by which threads wait.
bool WaitsForFlags(const Code& code);
// Adds it to the finding, if its place is known.
void AddEdit(Edit edit, Finding* finding);
// As the text of the kernel has them: the compiler puts loops that wait behind everything else.
bool Before(const Code& code, std::uint32_t a, std::uint32_t b);
// The same instruction of the source, however often a loop has been unrolled.
bool SameStatement(const Code& code, std::uint32_t a, std::uint32_t b);
// It is in a loop of the program that waits.
bool InWait(const Code& code, std::uint32_t pc);
// copy_wait.cpp: if the text has a wait for the copy's mbarrier after the access, the access moves
// after it.
bool MoveAfterPhase(const Code& code, std::uint32_t copy, std::uint32_t access, Finding* finding);
// The same for barrier.cluster.wait, if the thread has arrived before the access.
bool MoveAfterCluster(const Code& code, std::uint32_t earlier, std::uint32_t access,
                      Finding* finding);
// The cluster's barrier between the two accesses orders nothing: its arrival is relaxed. False: it
// is not so.
bool ReleaseAtCluster(const Code& code, std::uint32_t earlier, std::uint32_t access,
                      Finding* finding);
// A barrier of all threads of a cluster that releases and acquires.
inline constexpr char kClusterBarrier[] =
    "asm volatile(\"barrier.cluster.arrive.release.aligned; "
    "barrier.cluster.wait.acquire.aligned;\" ::: \"memory\");";

class RemedySearch {
 public:
  // `offset`: of the earlier access in its object.
  RemedySearch(const Checker& checker, const Entry& earlier, std::uint32_t lane, const Entry& later,
               std::uint32_t later_lane, Tick later_tick, std::uint64_t offset = kNoOffset);
  // True: there is a chain, and what it lacks is known.
  bool Run();
  std::string Missing(const std::string& first, const std::string& second) const;
  // The finding's advice and edits.
  void Tell(Finding* finding) const;
  // Another thread of the block waits, and nothing lets the others wait for it. False: none does.
  bool TellLoneWait(Finding* finding) const;
  // Each thread raises a flag and looks at the other's, with no fence.sc between. False: not so.
  bool TellMutualFlags(Finding* finding) const;
  // A flag was stored before what it should tell of. False: none was.
  bool TellEarly(Finding* finding) const;
  // The later thread overwrites a flag that its block and others wait for by one instruction.
  bool ResetsForOthers() const;
  // Two launches of one kernel, of which one is further than the other.
  bool OfDifferentRounds() const;
  // Another kernel, whose flag the later thread has read, should have been started after the
  // earlier one; null: none.
  const LaunchInfo* Announcer() const;
  // The host is a link of the chain (host_flag.cpp). The earlier thread's block stores a flag that
  // hosts see after its access. False: it stores none, or does so properly.
  bool TellToHost(Finding* finding);
  // The later thread's block reads a flag of a host that knew of the earlier operation. False: it
  // does not, or does so properly.
  bool TellFromHost(Finding* finding);

 private:
  static constexpr std::uint32_t kNoPc = ~0u;
  static constexpr std::uint64_t kNoOffset = ~std::uint64_t{0};
  // One block reads what another has stored.
  struct Link {
    Agent writer = 0;
    const Event* write = nullptr;
    Agent reader = 0;
    const Event* read = nullptr;
  };
  struct Fault {
    enum class Fix : std::uint8_t {
      kFenceBefore,
      kFenceAfter,
      kScope,
      kBarrierBefore,
      kCopyWait,
      kWidth,
    };
    Fix fix = Fix::kFenceBefore;
    Agent agent = 0;
    std::uint32_t pc = 0;
    Scope need = Scope::kSys;
    Scope has = Scope::kSys;         // kScope
    Edit::By by = Edit::By::kBlock;  // kBarrierBefore
    std::uint32_t behind = kNoPc;    // kBarrierBefore: the load whose thread is ordered
  };
  struct Side;  // mutual_flags.cpp
  struct Chain {
    std::vector<Link> links;  // from the earlier access on
    std::vector<Fault> faults;
    int cost = 0;
    bool late = false;  // the flag is stored a round after the access
  };
  const Trail* TrailOf(Agent agent) const;
  const Code& CodeOf(Agent agent) const;
  Scope Need(Agent a, Agent b) const;
  // Whether who knows this of `of` (its own CTA) and of others knows the earlier access.
  bool Known(Agent of, const KnownRef& own, const ClockRef& others) const;
  bool SameThread(const Event& event, Agent agent) const;
  const Event* FenceOf(Agent agent, const Event& of, std::uint64_t since, std::uint64_t until,
                       Scope scope, bool releases) const;
  bool Early(const Event& write, Agent agent) const;
  // Barriers of the earlier thread's block that follow its access in the text.
  const std::vector<std::uint32_t>& BarriersAfter() const;
  bool IsData(const Link& link) const;
  bool PeersAnswer(const Link& link) const;
  const Event* FirstStore(const Event& write) const;  // or `write` itself
  bool ARoundLater(const Chain& chain) const;
  void Release(Agent agent, const Event& w, Agent reader, bool known_before, std::uint64_t since,
               Chain* chain) const;
  void Acquire(Agent agent, const Event& r, Scope need, std::uint16_t warp, std::uint32_t lanes,
               std::uint32_t pc, std::uint64_t until, Chain* chain) const;
  void Judge(std::vector<Link> links);
  std::size_t RoundOf(Agent agent) const;
  bool LoneWait(const Entry& at, std::uint32_t lane, Tick tick, Finding* finding) const;
  bool LoneBlock(const Entry& at, Finding* finding) const;
  bool UnseenWait(const Entry& at, std::uint32_t lane, Finding* finding) const;
  // `by`: who has to meet.
  void SayLoneWait(const Code& code, std::uint32_t wait, std::uint32_t access, Edit::By by,
                   Finding* finding) const;
  const std::vector<Event>& EventsOf(Agent agent) const;
  bool IsLoadOf(const Event& event, const Entry& at, std::uint32_t lane) const;
  const Event* StoreBefore(const Event& load, const Event& other, const Entry& at,
                           std::uint32_t lane) const;
  const Event* FenceBetween(const Side& side) const;
  void AddScFence(const Side& side, Scope need, Finding* finding) const;
  const Event* WriteOf(Agent agent, const Event& read, bool before) const;
  void Back(Agent agent, std::uint64_t until, std::vector<Link>& links);
  bool IsThread(const Entry& entry) const { return IsBlock(entry.agent); }
  bool IsBlock(Agent agent) const;
  bool EndsBefore(Agent agent) const;  // a block: before the later access begins

  const Checker& checker_;
  const Entry& e_;
  const Entry& l_;
  const Tick later_tick_;  // 0: the later access is not a thread's
  Stamp stamp_;
  std::uint32_t later_lane_;
  std::uint64_t offset_;
  mutable std::optional<std::vector<std::uint32_t>> barriers_;  // BarriersAfter()
  Chain best_;
  Link early_;
};

}  // namespace allranks::node::check
