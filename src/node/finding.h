// What the checker says about a program: one finding per place in its source, however often it
// happens. node/checking.h hands them out; server/report.h and judge/report.h print them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "node/host_site.h"
#include "node/machine.h"
#include "node/time.h"

namespace allranks::node {

// One of the accesses that a finding is about.
struct FindingAccess {
  std::string what;  // "load", "store", "atomic", "copy", "bulk copy", "host", "judge", ...
  std::string form;  // "st.relaxed.sys.u32"; empty: no instruction
  int rank = -1;     // -1: the node itself
  int device = -1;   // machine-wide; -1: a host
  std::string kernel;
  Dim3 block{0, 0, 0};
  std::uint32_t thread = 0;  // linear within the block
  std::string file;          // empty: not known
  int line = 0;
  std::string inlined_at;  // "a.cu:12, b.cu:40"
  // The host's call that gave the operation to `stream`, or, without a call, the host's own access,
  // which `file` and `line` then name, too.
  HostSite site;
  std::string stream;         // "stream 12", "the default stream"; empty: of no stream
  std::string object;         // "device 1 allocation#7"
  HostSite allocated, freed;  // where the object was, as far as that is known
  std::uint64_t offset = 0;
  std::uint32_t bytes = 0;
  bool write = false;
  bool trusted = false;  // of a kernel that is not on trial (module_image.h)
  bool alone = false;    // there is no other process: texts name the device, not the rank
  Time time = 0;
};

// A change of the source that creates the order that is missing. Positions are those of -lineinfo.
struct Edit {
  // kHoist: the statement leaves whatever only some of those execute who should; so does the one at
  // `to`, if it stands in the same. `text` then stands behind that, once.
  enum class Action : std::uint8_t { kInsertBefore, kInsertAfter, kReplace, kMoveAfter, kHoist };
  // Who has to execute it: the thread that makes the access, or all threads of its warp, block or
  // grid, so that it belongs in front of (or behind) whatever statement only some of them execute.
  enum class By : std::uint8_t { kThread, kWarp, kBlock, kGrid, kHost };
  struct Place {
    std::string file;
    int line = 0, column = 0;
    std::string function;  // that stands there; empty: not known
  };
  Action action = Action::kInsertBefore;
  By by = By::kThread;
  std::vector<Place> at;  // innermost first: the statement, then the calls it was inlined through
  std::string text;       // what to insert, or to put in place of `from`
  std::string from;       // kReplace: a part of the instruction, "gpu", "weak", "mask"
  std::string form;       // the instruction that stands there: tells statements of a line apart
  std::vector<Place> to;  // kMoveAfter: the statement behind which it belongs; kHoist: another one
};

// Two more places between which the same order is missing.
struct FindingPair {
  std::string later, earlier;  // "store at a.cu:12"
  bool operator==(const FindingPair&) const = default;
};

struct Finding {
  enum class Kind : std::uint8_t {
    kRace,           // a conflict that nothing orders
    kScope,          // the same, of strong operations whose scopes leave each other out
    kProxy,          // the same, for want of a fence between proxies
    kPortability,    // relies on more than PTX promises; not counted against a program
    kUninitialised,  // a read of bytes that nobody has written
    kOutOfBounds,    // this and the next three are faults, too
    kUseAfterFree,
    kNotMapped,  // memory of a peer or of a handle that is not open here
    kMisaligned,
    kLeak,      // memory that is left when its process ends
    kBarrier,   // a barrier reached in part, or with counts that do not fit
    kMbarrier,  // more arrivals than a phase waits for, use before init, a phase overrun
    kWarpMask,  // lanes that name masks which do not fit together
    kWeakSpin,  // a loop that waits by weak loads
    kApiError,  // a function of CUDA's has returned an error
  };
  Kind kind = Kind::kRace;
  std::string text;                     // what happened, in a sentence
  std::string missing;                  // what order there is not; may be empty
  std::string advice;                   // what would create it; may be empty
  std::vector<FindingAccess> accesses;  // the later one first; at least one
  std::vector<Edit> edits;              // the same as changes of the source; may be empty
  std::uint64_t count = 1;              // how often
  std::uint64_t pairs = 1;              // of places, of which `accesses` are the first seen
  std::vector<FindingPair> also;        // the others, as far as they are remembered
  std::uint64_t schedule = 0;           // the seed under which it was seen first
};

// "race", "scope", ... as documents and JSON name them.
const char* NameOf(Finding::Kind kind);
std::optional<Finding::Kind> KindNamed(std::string_view name);
std::vector<std::string> KindNames();

// What findings of this kind are about, in half a sentence.
const char* About(Finding::Kind kind);

// How a finding counts: kPortability against nobody, kLeak only in its own count.
enum class FindingClass : std::uint8_t {
  kRace,
  kMemory,
  kSynchronisation,
  kPortability,
  kLeak,
  kApi,
};
FindingClass ClassOf(Finding::Kind kind);

// "insert_before", ..., "thread", ..., as JSON names them.
const char* NameOf(Edit::Action action);
const char* NameOf(Edit::By by);

// "rank 0's load", or "device 5's load" where the process is alone.
std::string Who(const FindingAccess& access);
// In a line for a person.
std::string Describe(const FindingAccess& access);
// Several lines for a person: text, both accesses with their places, missing, advice.
std::string Describe(const Finding& finding);

}  // namespace allranks::node
