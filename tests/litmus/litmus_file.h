// A litmus test as its file describes it; README.md has the format. ptx_text.h makes kernels of it,
// section_run.h runs them.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "node/finding.h"

namespace allranks::litmus {

struct Memory {
  enum class Home : std::uint8_t { kDevice, kPinned, kShared, kMbarrier, kMulticast };
  std::string name;
  Home home = Home::kDevice;
  std::vector<int> devices;  // one, or those of a multicast object
  std::uint32_t width = 4, count = 1;
  std::optional<std::uint64_t> initial;
  std::uint64_t bytes() const { return std::uint64_t{width} * count; }
  bool shared() const { return home == Home::kShared || home == Home::kMbarrier; }
};

struct Thread {
  std::string name, kernel;
  int device = 0;
  std::uint32_t block = 0, warp = 0, first_lane = 0, last_lane = 0;
  std::uint32_t first() const { return warp * 32 + first_lane; }  // in its block
  std::uint32_t last() const { return warp * 32 + last_lane; }
};

// One value of an outcome: a register of a thread or of a host, or an element of a memory.
struct Place {
  int thread = -1, host = -1, memory = -1;  // one of them; indexes of a Test
  char bank = 'r';                          // of a register: r d h f
  std::uint32_t number = 0;                 // of the register, or of the element
  std::uint32_t lane = 0;                   // counted from the thread's first
  int view = -1;                            // device whose view of a multicast object is read
  std::string text;                         // as written
};

struct Term {
  Place place;
  std::uint64_t value = 0;
};

struct Expectation {
  enum class Kind : std::uint8_t { kForbid, kAllow, kClean, kFinding, kHang, kFault };
  Kind kind = Kind::kClean;
  std::vector<Term> terms;  // kForbid, kAllow
  node::Finding::Kind finding = node::Finding::Kind::kRace;
  int on = -1;             // memory
  bool sometimes = false;  // else in every seed
  std::string text;        // as written, without the reason
};

struct Line {
  int number = 0;
  std::string text;
};

struct Section {
  bool correct = true;
  std::string title;                    // "correct", "broken: the flag is relaxed"
  std::vector<bool> present;            // by thread
  std::vector<std::vector<Line>> code;  // by thread
  std::map<int, std::vector<Line>> hosts;
  std::vector<Expectation> expectations;
};

struct Test {
  std::string path;  // "group/name.litmus"
  std::string explanation;
  std::vector<std::string> rules;
  std::vector<Memory> memories;
  std::vector<Thread> threads;
  std::vector<std::string> events;
  std::uint32_t cluster = 1;
  bool ranks = false;
  std::vector<Section> sections;

  int MemoryNamed(const std::string& name) const;  // -1: none
  // Where its threads and streams stand.
  std::vector<int> Devices() const;
  int DeviceCount() const;  // one more than the greatest number of a device
};

Result<Test> ReadTest(const std::string& root, const std::string& path);
Result<Test> ParseTest(const std::string& path, const std::string& text);

// "a b  c" -> its words.
std::vector<std::string> Words(const std::string& text);
// Decimal or 0x; nothing else around it.
std::optional<std::uint64_t> Number(const std::string& text);
// "gpu3" -> 3; -1: not a device.
int DeviceNamed(const std::string& word);

}  // namespace allranks::litmus
