// What hosts do in a litmus test: launches, copies, events, graphs and waits in the order of their
// lines, several hosts side by side in virtual time. README.md has the words.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "section_run.h"

namespace allranks::litmus {

class HostPart {
 public:
  HostPart(SectionRun& run, Draw& draw) : run_(run), draw_(draw) {}

  // Does it all. What it returns is who waits for ever, or empty. `values` are the hosts'
  // registers: "0.r0".
  Result<std::string> Do(node::Checking* checking, std::map<std::string, std::uint64_t>* values);

 private:
  struct Host {
    int number = 0;
    const std::vector<Line>* lines = nullptr;
    std::size_t next = 0;
    node::Time ready = 0;
    bool waits = false, meets = false, polls = false;
    int tries = 0;
    bool Ended() const { return next >= lines->size(); }
  };
  struct Copied {
    std::string name;
    std::shared_ptr<node::CopyRequest> copy;
    std::uint32_t width = 4;
  };

  Status Step(Host& host);
  Status InContext(const Host& host, int device, const std::vector<std::string>& words);
  Status InStream(Host& host, const std::string& stream, const std::vector<std::string>& words);
  Status Touch(Host& host, const std::vector<std::string>& words, node::Checking::HostOrder order);
  Status MakeGraph(Host& host, const std::string& line);
  Status Sync(Host& host, const std::vector<std::string>& words);
  Status MakeCopy(const Host& host, const std::vector<std::string>& words, node::CopyRequest* copy,
                  std::string* into, std::uint32_t* width);
  Result<node::Address> At(const Host& host, const std::string& word, std::uint32_t* width);
  Result<node::StreamId> StreamNamed(const Host& host, const std::string& word);
  // An event is of the device whose stream records it.
  Result<node::EventId> EventNamed(const Host& host, const std::string& word);
  Status Needs(const Host& host, node::Status status);
  template <class... Args>
  tl::unexpected<Error> Wrong(const Host& host, fmt::format_string<Args...> format,
                              Args&&... args) {
    return Fail("{}:{}: {}", run_.test().path, (*host.lines)[host.next].number,
                fmt::format(format, std::forward<Args>(args)...));
  }
  node::ProcessId ProcessOf(const Host& host) const;

  SectionRun& run_;
  Draw& draw_;
  node::Checking* checking_ = nullptr;
  std::map<std::string, std::uint64_t>* values_ = nullptr;
  std::vector<Host> hosts_;
  std::vector<Copied> copied_;
  std::vector<node::OpId> ops_;
  bool woken_ = false;  // somebody's wait has ended
};

}  // namespace allranks::litmus
