// Reads litmus tests and refuses those that expect nothing; see litmus_file.h.
#include "litmus_file.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <sstream>

namespace allranks::litmus {
namespace {

using Kind = Expectation::Kind;

std::string Trimmed(const std::string& text) {
  const auto begin = text.find_first_not_of(" \t");
  if (begin == std::string::npos) return "";
  return text.substr(begin, text.find_last_not_of(" \t\r") - begin + 1);
}

// Without the comment.
std::string Uncommented(const std::string& line) {
  for (std::size_t i = 0; i < line.size(); ++i)
    if (line[i] == '#' && (i == 0 || line[i - 1] == ' ' || line[i - 1] == '\t'))
      return Trimmed(line.substr(0, i));
  return Trimmed(line);
}

bool IsName(const std::string& word) {
  static const std::regex kName("[A-Za-z]\\w*"), kRegister("[rdhfqp]\\d+");
  return std::regex_match(word, kName) && !std::regex_match(word, kRegister);
}

class Parser {
 public:
  Parser(const std::string& path, const std::string& text) : text_(text) { test_.path = path; }

  Result<Test> Parse() {
    std::istringstream lines(text_);
    std::string line;
    while (std::getline(lines, line)) {
      ++number_;
      const std::string words = test_.explanation.empty() ? Trimmed(line) : Uncommented(line);
      if (words.empty() || (words[0] == '#' && test_.explanation.empty())) continue;
      Status status = test_.explanation.empty() ? Explain(words)
                      : words[0] == '['         ? Open(words)
                      : section_ == nullptr     ? Header(words)
                                                : Body(words);
      if (!status) return Fail(status.error());
    }
    if (auto status = Close(); !status) return Fail(status.error());
    return std::move(test_);
  }

 private:
  template <class... Args>
  tl::unexpected<Error> Wrong(fmt::format_string<Args...> format, Args&&... args) {
    return Fail("{}:{}: {}", test_.path, number_, fmt::format(format, std::forward<Args>(args)...));
  }

  Status Explain(const std::string& line) {
    test_.explanation = line;
    return line.size() < 20 ? Status(Wrong("the first line explains the test")) : Ok();
  }

  Status Header(const std::string& line) {
    const std::vector<std::string> words = Words(line);
    if (words[0] == "rule") {
      test_.rules.insert(test_.rules.end(), words.begin() + 1, words.end());
    } else if (words[0] == "memory") {
      return AddMemory(words);
    } else if (words[0] == "thread") {
      return AddThread(words);
    } else if (words[0] == "cluster" && words.size() == 2) {
      const auto size = Number(words[1]);
      if (!size || *size < 1 || *size > 8) return Wrong("a cluster has 1 to 8 blocks");
      test_.cluster = static_cast<std::uint32_t>(*size);
    } else if (line == "ranks") {
      test_.ranks = true;
    } else if (words[0] == "event") {
      test_.events.insert(test_.events.end(), words.begin() + 1, words.end());
    } else {
      return Wrong("'{}' begins no line of a header", words[0]);
    }
    return Ok();
  }

  Status AddMemory(const std::vector<std::string>& words) {
    Memory memory;
    std::size_t i = 1;
    std::vector<std::string> names;
    static const std::set<std::string> kHomes = {"pinned", "shared", "mbarrier", "multicast"};
    while (i < words.size() && DeviceNamed(words[i]) < 0 && !kHomes.contains(words[i]))
      names.push_back(words[i++]);
    if (names.empty() || i == words.size()) return Wrong("memory NAME... HOME [TYPE] [= V]");
    const std::string home = words[i];
    if (home == "pinned") memory.home = Memory::Home::kPinned;
    if (home == "shared") memory.home = Memory::Home::kShared;
    if (home == "mbarrier") memory.home = Memory::Home::kMbarrier;
    if (home == "multicast") memory.home = Memory::Home::kMulticast;
    if (kHomes.contains(home)) ++i;
    for (; i < words.size() && DeviceNamed(words[i]) >= 0; ++i)
      memory.devices.push_back(DeviceNamed(words[i]));
    const std::size_t wanted = memory.home == Memory::Home::kDevice ? 1 : 0;
    if (memory.home == Memory::Home::kMulticast ? memory.devices.size() < 2
                                                : memory.devices.size() != wanted)
      return Wrong("this home does not go with {} devices", memory.devices.size());
    if (memory.home == Memory::Home::kMbarrier) memory.width = 8;
    static const std::regex kType("u(8|16|32|64)(?:\\[(\\d+)\\])?");
    std::smatch type;
    if (i < words.size() && std::regex_match(words[i], type, kType)) {
      memory.width = static_cast<std::uint32_t>(std::stoul(type[1])) / 8;
      if (type[2].matched) memory.count = static_cast<std::uint32_t>(std::stoul(type[2]));
      ++i;
    }
    if (memory.bytes() == 0 || memory.bytes() > 65536) return Wrong("1 to 65536 bytes");
    if (i + 1 < words.size() && words[i] == "=") {
      memory.initial = Number(words[i + 1]);
      if (!memory.initial) return Wrong("'{}' is not a number", words[i + 1]);
      i += 2;
    }
    if (i != words.size()) return Wrong("'{}' is not expected here", words[i]);
    if (memory.home == Memory::Home::kMbarrier && !memory.initial)
      return Wrong("an mbarrier needs = COUNT");
    for (const std::string& name : names) {
      if (!IsName(name)) return Wrong("'{}' cannot name memory", name);
      if (test_.MemoryNamed(name) >= 0) return Wrong("'{}' is there already", name);
      memory.name = name;
      test_.memories.push_back(memory);
    }
    return Ok();
  }

  Status AddThread(const std::vector<std::string>& words) {
    Thread thread;
    if (words.size() < 3 || !IsName(words[1]) || words[1] == "host" || words[1] == "drop")
      return Wrong("thread NAME gpuD ...");
    thread.name = words[1];
    thread.device = DeviceNamed(words[2]);
    if (thread.device < 0) return Wrong("'{}' is not a device", words[2]);
    thread.kernel = words[2];
    for (std::size_t i = 3; i < words.size(); i += 2) {
      if (i + 1 == words.size()) return Wrong("'{}' lacks its value", words[i]);
      const std::string& value = words[i + 1];
      if (words[i] == "kernel") {
        thread.kernel = value;
        continue;
      }
      const auto dash = value.find('-');
      const auto low = Number(value.substr(0, dash));
      const auto high = dash == std::string::npos ? low : Number(value.substr(dash + 1));
      if (!low || !high || *low > *high || *high > 31) return Wrong("'{}' is too great", value);
      if (words[i] == "lanes" || words[i] == "lane") {
        thread.first_lane = static_cast<std::uint32_t>(*low);
        thread.last_lane = static_cast<std::uint32_t>(*high);
      } else if (words[i] == "block") {
        thread.block = static_cast<std::uint32_t>(*low);
      } else if (words[i] == "warp") {
        thread.warp = static_cast<std::uint32_t>(*low);
      } else {
        return Wrong("'{}' is no part of a place", words[i]);
      }
    }
    for (const Thread& other : test_.threads) {
      if (other.name == thread.name) return Wrong("'{}' is there already", thread.name);
      if (other.kernel != thread.kernel) continue;
      if (other.device != thread.device) return Wrong("a kernel is on one device");
      if (other.block == thread.block && other.first() <= thread.last() &&
          thread.first() <= other.last())
        return Wrong("{} and {} stand at the same place", other.name, thread.name);
    }
    test_.threads.push_back(thread);
    return Ok();
  }

  Status Open(const std::string& line) {
    if (auto status = Close(); !status) return status;
    const bool correct = line.starts_with("[correct");
    if (line.back() != ']' || !(correct || line.starts_with("[broken")))
      return Wrong("[correct] or [broken: WHY]");
    if (test_.threads.empty()) return Wrong("no thread is named");
    Section section;
    if (!test_.sections.empty()) {
      section = test_.sections.front();
      section.expectations.clear();
    } else {
      section.present.assign(test_.threads.size(), true);
      section.code.resize(test_.threads.size());
    }
    section.correct = correct;
    section.title = line.substr(1, line.size() - 2);
    opened_ = number_;
    test_.sections.push_back(section);
    section_ = &test_.sections.back();
    into_ = nullptr;
    return Ok();
  }

  Status Body(const std::string& line) {
    if (line.ends_with(':')) {
      const std::string name = line.substr(0, line.size() - 1);
      for (std::size_t t = 0; t < test_.threads.size(); ++t) {
        if (test_.threads[t].name != name) continue;
        into_ = &section_->code[t];
        into_->clear();
        section_->present[t] = true;
        return Ok();
      }
      const std::vector<std::string> words = Words(name);
      if (words[0] == "host" && words.size() <= 2) {
        const auto host = words.size() == 2 ? Number(words[1]) : 0;
        if (!host || *host > 7) return Wrong("'{}' is no host", name);
        into_ = &section_->hosts[static_cast<int>(*host)];
        into_->clear();
        return Ok();
      }
      // Else a label.
    }
    if (const auto reason = line.find(" -- "); reason != std::string::npos) {
      into_ = nullptr;
      if (Trimmed(line.substr(reason + 4)).size() < 8) return Wrong("the reason is missing");
      return AddExpectation(Trimmed(line.substr(0, reason)));
    }
    if (line.starts_with("drop ")) {
      for (std::size_t t = 0; t < test_.threads.size(); ++t) {
        if (test_.threads[t].name != line.substr(5)) continue;
        section_->present[t] = false;
        return Ok();
      }
      return Wrong("no such thread");
    }
    if (into_ == nullptr) return Wrong("whose code is this? (expectations end with ' -- REASON')");
    into_->push_back({number_, line});
    return Ok();
  }

  Status AddExpectation(const std::string& line) {
    Expectation expectation;
    expectation.text = line;
    std::vector<std::string> words = Words(line);
    if (words[0] == "forbid" || words[0] == "allow") {
      expectation.kind = words[0] == "forbid" ? Kind::kForbid : Kind::kAllow;
      for (std::size_t i = 1; i < words.size(); ++i) {
        if (i % 2 == 0) {
          if (words[i] != "&") return Wrong("'{}' instead of '&'", words[i]);
          continue;
        }
        Term term;
        if (auto status = ReadTerm(words[i], &term); !status) return status;
        expectation.terms.push_back(term);
      }
      if (words.size() % 2 != 0) return Wrong("an outcome is TERM & TERM ...");
      section_->expectations.push_back(expectation);
      return Ok();
    }
    if (words.back() == "sometimes") {
      expectation.sometimes = true;
      words.pop_back();
    }
    if (words.size() == 3 && words[1] == "on") {
      expectation.on = test_.MemoryNamed(words[2]);
      if (expectation.on < 0) return Wrong("no memory is called '{}'", words[2]);
      if (test_.memories[static_cast<std::size_t>(expectation.on)].shared())
        return Wrong("'on' is for memory that has an address outside of blocks");
      words.resize(1);
    }
    if (words.size() != 1) return Wrong("'{}' is no expectation", line);
    if (words[0] == "clean") {
      expectation.kind = Kind::kClean;
    } else if (words[0] == "hang") {
      expectation.kind = Kind::kHang;
    } else if (words[0] == "fault") {
      expectation.kind = Kind::kFault;
    } else {
      expectation.kind = Kind::kFinding;
      int kind = 0;
      constexpr int kKinds = static_cast<int>(node::Finding::Kind::kWeakSpin) + 1;
      while (kind < kKinds && words[0] != NameOf(static_cast<node::Finding::Kind>(kind))) ++kind;
      if (kind == kKinds) return Wrong("'{}' is no kind of a finding", words[0]);
      expectation.finding = static_cast<node::Finding::Kind>(kind);
    }
    section_->expectations.push_back(expectation);
    return Ok();
  }

  // Whether the section's thread or host mentions the register.
  static bool Uses(const std::vector<Line>& code, const std::string& what) {
    const std::regex word("(^|[^\\w])" + what + "([^\\w]|$)");
    return std::any_of(code.begin(), code.end(),
                       [&](const Line& line) { return std::regex_search(line.text, word); });
  }

  Status ReadTerm(const std::string& text, Term* term) {
    static const std::regex kRegister("(?:(\\w+)\\.)?([rdhf])(\\d+)(?:@(\\d+))?=(\\w+)"),
        kMemory("(\\w+?)(?:@(gpu\\d+))?(?:\\[(\\d+)\\])?=(\\w+)");
    std::smatch match;
    Place& place = term->place;
    place.text = text.substr(0, text.find('='));
    if (std::regex_match(text, match, kRegister)) {
      place.bank = match[2].str()[0];
      place.number = static_cast<std::uint32_t>(std::stoul(match[3]));
      const std::string name = match[2].str() + match[3].str(), owner = match[1];
      int found = 0;
      for (std::size_t t = 0; t < test_.threads.size(); ++t) {
        if (!section_->present[t] || (!owner.empty() && owner != test_.threads[t].name)) continue;
        if (!Uses(section_->code[t], "%" + name)) continue;
        place.thread = static_cast<int>(t);
        ++found;
      }
      for (const auto& [host, code] : section_->hosts) {
        const std::string called = host == 0 ? "host" : "host" + std::to_string(host);
        if ((!owner.empty() && owner != called) || !Uses(code, name)) continue;
        place.host = host;
        ++found;
      }
      if (found != 1) return Wrong("{} threads use the register of '{}'", found, text);
      if (match[4].matched) {
        if (place.thread < 0) return Wrong("a host has no lanes");
        const Thread& thread = test_.threads[static_cast<std::size_t>(place.thread)];
        const auto lane = static_cast<std::uint32_t>(std::stoul(match[4]));
        if (lane < thread.first_lane || lane > thread.last_lane)
          return Wrong("'{}' is not of that thread's lanes", text);
        place.lane = lane - thread.first_lane;
      }
    } else if (std::regex_match(text, match, kMemory)) {
      place.memory = test_.MemoryNamed(match[1]);
      if (place.memory < 0) return Wrong("no register or memory in '{}'", text);
      const Memory& memory = test_.memories[static_cast<std::size_t>(place.memory)];
      if (memory.shared()) return Wrong("shared memory is gone at the end");
      if (match[2].matched) place.view = DeviceNamed(match[2]);
      if ((memory.home == Memory::Home::kMulticast) != (place.view >= 0))
        return Wrong("'{}': a view is named of multicast objects, and only there", text);
      if (match[3].matched) place.number = static_cast<std::uint32_t>(std::stoul(match[3]));
      if (place.number >= memory.count) return Wrong("'{}' is beyond the end", text);
    } else {
      return Wrong("'{}' is no term of an outcome", text);
    }
    const auto value = Number(match[match.size() - 1]);
    if (!value) return Wrong("'{}' has no number", text);
    term->value = *value;
    return Ok();
  }

  // The section or file that ends here must expect something.
  Status Close() {
    const auto has = [&](auto&& predicate) {
      return std::any_of(section_->expectations.begin(), section_->expectations.end(), predicate);
    };
    if (section_ != nullptr) {
      const int at = opened_;
      const bool found = has([](const Expectation& e) {
        return e.kind == Kind::kHang || e.kind == Kind::kFault ||
               (e.kind == Kind::kFinding && e.finding != node::Finding::Kind::kPortability);
      });
      if (section_->correct && found)
        return Fail("{}:{}: a correct section has no finding", test_.path, at);
      if (section_->correct && !has([](const Expectation& e) {
            return e.kind == Kind::kForbid || e.kind == Kind::kClean;
          }))
        return Fail("{}:{}: a correct section forbids something or is clean", test_.path, at);
      if (!section_->correct && !found && !has([](const Expectation& e) {
            return e.kind == Kind::kAllow ||
                   (e.kind == Kind::kFinding && e.finding == node::Finding::Kind::kPortability);
          }))
        return Fail("{}:{}: a broken section expects something", test_.path, at);
      for (std::size_t t = 0; t < test_.threads.size(); ++t)
        if (section_->present[t] && section_->code[t].empty())
          return Fail("{}:{}: {} has no code", test_.path, at, test_.threads[t].name);
      section_ = nullptr;
    }
    return Ok();
  }

  const std::string& text_;
  Test test_;
  int number_ = 0, opened_ = 0;
  Section* section_ = nullptr;
  std::vector<Line>* into_ = nullptr;
};

}  // namespace

int Test::MemoryNamed(const std::string& name) const {
  for (std::size_t m = 0; m < memories.size(); ++m)
    if (memories[m].name == name) return static_cast<int>(m);
  return -1;
}

std::vector<int> Test::Devices() const {
  std::set<int> devices;
  for (const Thread& thread : threads) devices.insert(thread.device);
  static const std::regex kStream("@gpu(\\d+) ");
  for (const Section& section : sections)
    for (const auto& [host, code] : section.hosts)
      for (const Line& line : code) {
        std::smatch match;
        if (std::regex_search(line.text, match, kStream)) devices.insert(std::stoi(match[1]));
      }
  return {devices.begin(), devices.end()};
}

int Test::DeviceCount() const {
  int count = Devices().back() + 1;
  for (const Memory& memory : memories)
    for (const int device : memory.devices) count = std::max(count, device + 1);
  return count;
}

Result<Test> ParseTest(const std::string& path, const std::string& text) {
  auto test = Parser(path, text).Parse();
  if (!test) return test;
  const auto count = [&](bool correct) {
    return std::count_if(test->sections.begin(), test->sections.end(),
                         [&](const Section& section) { return section.correct == correct; });
  };
  if (test->rules.empty()) return Fail("{}: no rule is named", path);
  if (count(true) == 0 || count(false) == 0)
    return Fail("{}: a test has a correct and a broken section", path);
  if (!test->sections.front().correct) return Fail("{}: the correct section comes first", path);
  return test;
}

Result<Test> ReadTest(const std::string& root, const std::string& path) {
  std::ifstream file(root + "/" + path);
  if (!file) return Fail("{}: cannot be read", path);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  return ParseTest(path, text);
}

std::vector<std::string> Words(const std::string& text) {
  std::istringstream in(text);
  return {std::istream_iterator<std::string>(in), {}};
}

std::optional<std::uint64_t> Number(const std::string& text) {
  const bool hex = text.starts_with("0x");
  std::uint64_t value = 0;
  const char* begin = text.data() + (hex ? 2 : 0);
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(begin, end, value, hex ? 16 : 10);
  if (error != std::errc() || stop != end) return std::nullopt;
  return value;
}

int DeviceNamed(const std::string& word) {
  if (!word.starts_with("gpu")) return -1;
  const auto number = Number(word.substr(3));
  return number && *number < 8 ? static_cast<int>(*number) : -1;
}

}  // namespace allranks::litmus
