// Hosts of litmus tests; see host_part.h.
#include "host_part.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <span>

namespace allranks::litmus {

using node::Address;
using node::OpId;

namespace {

constexpr node::Time kPollsEvery = node::Ns(300);
constexpr int kMostPolls = 10'000;

// Of "store", "load.acquire" and so on; none: another word.
std::optional<node::Checking::HostOrder> OrderOf(const std::string& word) {
  using Order = node::Checking::HostOrder;
  static const std::map<std::string, Order> kWords = {{"store", Order::kPlain},
                                                      {"store.relaxed", Order::kRelaxed},
                                                      {"store.release", Order::kRelease},
                                                      {"load", Order::kPlain},
                                                      {"load.relaxed", Order::kRelaxed},
                                                      {"load.acquire", Order::kAcquire},
                                                      {"poll", Order::kPlain},
                                                      {"poll.relaxed", Order::kRelaxed},
                                                      {"poll.acquire", Order::kAcquire}};
  const auto it = kWords.find(word);
  return it == kWords.end() ? std::nullopt : std::optional(it->second);
}

bool IsRegister(const std::string& word) {
  return word.size() >= 2 && (word[0] == 'r' || word[0] == 'd') && Number(word.substr(1));
}

}  // namespace

Result<std::string> HostPart::Do(node::Checking* checking,
                                 std::map<std::string, std::uint64_t>* values) {
  checking_ = checking;
  values_ = values;
  node::Machine& machine = run_.machine();
  for (const auto& [number, lines] : run_.section().hosts)
    hosts_.push_back({number, &lines, 0, machine.now() + draw_.Delay(), false, false, false, 0});
  for (;;) {
    Host* first = nullptr;
    bool all_meet = true, all_ended = true;
    for (Host& host : hosts_) {
      if (host.Ended() && !host.waits && !host.meets) continue;
      all_ended = false;
      all_meet &= host.meets;
      if (!host.waits && !host.meets && (first == nullptr || host.ready < first->ready))
        first = &host;
    }
    if (all_ended) break;
    if (all_meet) {
      // Twice, for the first of them to learn what the last knows.
      for (int round = 0; round < 2 && checking_ != nullptr; ++round)
        for (const Host& host : hosts_)
          if (host.meets) checking_->HostMeets(ProcessOf(host));
      for (Host& host : hosts_) host.meets = false;
      continue;
    }
    if (first == nullptr) {
      // Everybody waits for the device: until somebody does not.
      woken_ = false;
      if (!run_.PassTime(woken_)) return run_.Deadlock();
      continue;
    }
    if (first->ready > machine.now()) {
      machine.RunUntil(first->ready);
      continue;
    }
    if (auto status = Step(*first); !status) return Fail(status.error());
    if (first->polls) {
      if (++first->tries == kMostPolls) return "  a host polls\n" + run_.Deadlock();
      first->polls = false;
      first->ready = machine.now() + kPollsEvery;
      continue;
    }
    first->tries = 0;
    ++first->next;
    first->ready = machine.now() + draw_.Delay();
  }
  bool done = false;
  const std::uint64_t waiting = machine.WhenDone(ops_, [&](node::Time) {
    done = true;
    machine.Stop();
  });
  if (!run_.PassTime(done)) {
    machine.CancelWhenDone(waiting);
    return run_.Deadlock();
  }
  for (const Copied& copied : copied_) {
    std::uint64_t value = 0;
    std::memcpy(&value, copied.copy->bytes.data(),
                std::min<std::size_t>(copied.width, copied.copy->bytes.size()));
    (*values_)[copied.name] = value;
  }
  return std::string();
}

node::ProcessId HostPart::ProcessOf(const Host& host) const { return run_.ProcessOf(host.number); }

Status HostPart::Needs(const Host& host, node::Status status) {
  if (status == node::Status::kSuccess) return Ok();
  return Wrong(host, "refused: {}", static_cast<int>(status));
}

Status HostPart::Step(Host& host) {
  const std::string& line = (*host.lines)[host.next].text;
  const std::vector<std::string> words = Words(line);
  if (words[0] == "sync") return Sync(host, words);
  if (words[0] == "meet") {
    host.meets = true;
    return Ok();
  }
  if (words[0] == "graph") return MakeGraph(host, line);
  if (words[0] == "fence") {
    if (checking_ != nullptr)
      checking_->HostAccess(ProcessOf(host), 0, 0, false, node::Checking::HostOrder::kBoth);
    return Ok();
  }
  if (const auto order = OrderOf(words[0])) return Touch(host, words, *order);
  if (words.size() >= 2) return InStream(host, words[0], words);
  return Wrong(host, "'{}' is nothing that a host does", line);
}

// store X V; load rN X; poll rN X == V: by C++'s orders, told to the checker first.
Status HostPart::Touch(Host& host, const std::vector<std::string>& words,
                       node::Checking::HostOrder order) {
  node::Machine& machine = run_.machine();
  const bool stores = words[0].starts_with("store"), polls = words[0].starts_with("poll");
  std::uint32_t width = 0;
  if (words.size() != (polls ? 5u : 3u) || (!stores && !IsRegister(words[1])))
    return Wrong(host, "store X V; load rN X; poll rN X == V (or >=)");
  const auto at = At(host, words[stores ? 1 : 2], &width);
  if (!at) return Fail(at.error());
  std::byte* bytes = run_.HostBytes(*at);
  if (bytes == nullptr) return Wrong(host, "hosts reach pinned memory only");
  if (checking_ != nullptr) checking_->HostAccess(ProcessOf(host), *at, width, stores, order);
  if (stores) {
    const auto value = Number(words[2]);
    if (!value) return Wrong(host, "'{}' is not a number", words[2]);
    std::memcpy(bytes, &*value, width);
    machine.HostWrote(ProcessOf(host), machine.now());
    return Ok();
  }
  std::uint64_t value = 0;
  machine.Peek(ProcessOf(host), *at, std::as_writable_bytes(std::span(&value, 1)).first(width));
  (*values_)[fmt::format("{}.{}", host.number, words[1])] = value;
  if (!polls) return Ok();
  const auto wanted = Number(words[4]);
  if (!wanted || (words[3] != "==" && words[3] != ">="))
    return Wrong(host, "poll rN X == V, or >=");
  host.polls = words[3] == "==" ? value != *wanted : value < *wanted;
  return Ok();
}

Result<node::StreamId> HostPart::StreamNamed(const Host& host, const std::string& word) {
  const auto at = word.find('@');
  const int device = at == std::string::npos ? -1 : DeviceNamed(word.substr(at + 1));
  if (device < 0 || device >= run_.test().DeviceCount())
    return Wrong(host, "'{}' is no stream: NAME@gpuD", word);
  if (run_.test().ranks && device != host.number) return Wrong(host, "that is another's device");
  std::uint64_t& stream = run_.made["stream " + word];
  if (stream == 0)
    if (auto status =
            Needs(host, run_.machine().CreateStream(ProcessOf(host), device, true, 0, &stream));
        !status)
      return Fail(status.error());
  return stream;
}

Result<node::EventId> HostPart::EventNamed(const Host& host, const std::string& word) {
  const auto& events = run_.test().events;
  if (std::find(events.begin(), events.end(), word) == events.end())
    return Wrong(host, "'{}' is no event", word);
  // With ranks, the event of the first who names it is opened by the others.
  std::uint64_t& event = run_.made[fmt::format("event {} {}", host.number, word)];
  if (event != 0) return event;
  const auto process = ProcessOf(host);
  int device = run_.test().ranks ? host.number : 0;
  for (const Line& line : *host.lines) {
    const std::vector<std::string> words = Words(line.text);
    if (words.size() == 3 && words[1] == "record" && words[2] == word)
      device = DeviceNamed(words[0].substr(words[0].find('@') + 1));
  }
  node::IpcHandle handle;
  for (int other = 0; other < 8; ++other) {
    const auto it = run_.made.find(fmt::format("event {} {}", other, word));
    if (it == run_.made.end() || it->second == 0) continue;
    if (auto status =
            Needs(host, run_.machine().ExportEvent(run_.ProcessOf(other), it->second, &handle));
        !status)
      return Fail(status.error());
    if (auto status = Needs(host, run_.machine().OpenEvent(process, handle, &device, &event));
        !status)
      return Fail(status.error());
    return event;
  }
  if (auto status = Needs(host, run_.machine().CreateEvent(process, device, false, &event));
      !status)
    return Fail(status.error());
  return event;
}

// x, x+4, m@gpu1.
Result<Address> HostPart::At(const Host& host, const std::string& word, std::uint32_t* width) {
  const auto plus = word.find('+');
  const auto offset = plus == std::string::npos ? 0 : Number(word.substr(plus + 1));
  const std::string name = word.substr(0, plus);
  const auto view = name.find('@');
  const int memory = run_.test().MemoryNamed(name.substr(0, view));
  if (memory < 0 || !offset) return Wrong(host, "'{}' is no memory", word);
  const Address address = run_.AddressOf(
      memory, view == std::string::npos ? -1 : DeviceNamed(name.substr(view + 1)), ProcessOf(host));
  if (address == 0) return Wrong(host, "'{}' cannot be reached", word);
  *width = run_.test().memories[static_cast<std::size_t>(memory)].width;
  return address + *offset;
}

Status HostPart::MakeCopy(const Host& host, const std::vector<std::string>& words,
                          node::CopyRequest* copy, std::string* into, std::uint32_t* width) {
  if (words.size() < 2) return Wrong(host, "copy TO FROM [BYTES]");
  std::uint32_t from_width = 0;
  if (IsRegister(words[0])) {
    *into = fmt::format("{}.{}", host.number, words[0]);
  } else {
    const auto to = At(host, words[0], width);
    if (!to) return Fail(to.error());
    copy->dst = *to;
  }
  if (const auto value = Number(words[1])) {
    copy->size = *width;
    copy->bytes.resize(*width);
    std::memcpy(copy->bytes.data(), &*value, *width);
  } else {
    const auto from = At(host, words[1], &from_width);
    if (!from) return Fail(from.error());
    copy->src = *from;
    copy->size = from_width;
    *width = from_width;
  }
  if (words.size() > 2 && copy->src != 0) copy->size = Number(words[2]).value_or(0);
  return copy->size == 0 ? Status(Wrong(host, "nothing to copy")) : Ok();
}

// gpu0 record e, gpu0 wait e: of all streams of the device.
Status HostPart::InContext(const Host& host, int device, const std::vector<std::string>& words) {
  const auto event = EventNamed(host, words.size() > 2 ? words[2] : "");
  if (!event) return Fail(event.error());
  if (device >= run_.test().DeviceCount() || (run_.test().ranks && device != host.number))
    return Wrong(host, "'{}' is no device of this host", words[0]);
  node::Machine& machine = run_.machine();
  const auto process = ProcessOf(host);
  if (words[1] == "record")
    return Needs(host, machine.RecordContext(process, device, *event, machine.now()));
  if (words[1] == "wait")
    return Needs(host, machine.WaitContext(process, device, *event, machine.now()));
  return Wrong(host, "gpuD record E, or wait");
}

Status HostPart::InStream(Host& host, const std::string& name,
                          const std::vector<std::string>& words) {
  if (const int device = DeviceNamed(name); device >= 0) return InContext(host, device, words);
  const auto stream = StreamNamed(host, name);
  if (!stream) return Fail(stream.error());
  node::Machine& machine = run_.machine();
  const auto process = ProcessOf(host);
  const node::Time now = machine.now();
  OpId op = 0;
  node::Status status = node::Status::kSuccess;
  const std::string& what = words[1];
  const auto word = [&](std::size_t i) { return i < words.size() ? words[i] : std::string(); };
  if (what == "launch") {
    LoadedKernel* kernel = run_.KernelNamed(word(2));
    if (kernel == nullptr) return Wrong(host, "no kernel is called '{}'", word(2));
    if (DeviceNamed(name.substr(name.find('@') + 1)) != kernel->text.device)
      return Wrong(host, "the kernel is on another device");
    node::LaunchRequest request = kernel->request;
    request.programmatic = word(3) == "early";
    status = machine.Launch(process, *stream, request, now, &op);
  } else if (what == "copy") {
    Copied copied;
    copied.copy = std::make_shared<node::CopyRequest>();
    if (auto made = MakeCopy(host, {words.begin() + 2, words.end()}, copied.copy.get(),
                             &copied.name, &copied.width);
        !made)
      return made;
    status = machine.Copy(process, *stream, copied.copy, now, &op);
    if (!copied.name.empty()) copied_.push_back(copied);
  } else if (what == "memset") {
    std::uint32_t width = 0;
    const auto at = At(host, word(2), &width);
    if (!at) return Fail(at.error());
    node::MemsetRequest request;
    request.dst = *at;
    request.value = static_cast<std::uint32_t>(Number(word(3)).value_or(0));
    request.count = Number(word(4)).value_or(width);
    status = machine.Memset(process, *stream, request, now, &op);
  } else if (what == "record" || what == "wait") {
    const auto event = EventNamed(host, word(2));
    if (!event) return Fail(event.error());
    status = what == "record" ? machine.RecordEvent(process, *stream, *event, now)
                              : machine.WaitEvent(process, *stream, *event, now);
  } else if (what == "write" || what == "await") {
    node::ValueOp value;
    std::uint32_t width = 0;
    const auto at = At(host, word(2), &width);
    if (!at) return Fail(at.error());
    value.address = *at;
    value.width = width == 8 ? 8 : 4;
    value.kind = what == "write" ? node::ValueOp::Kind::kWrite : node::ValueOp::Kind::kWait;
    if (what == "await" && word(3) != "==" && word(3) != ">=")
      return Wrong(host, "await MEMORY == VALUE, or >=");
    value.compare =
        word(3) == "==" ? node::ValueOp::Compare::kEqual : node::ValueOp::Compare::kGreaterOrEqual;
    const auto number = Number(word(what == "write" ? 3 : 4));
    if (!number) return Wrong(host, "the value is missing");
    value.value = *number;
    status = machine.Values(process, *stream, {value}, now, &op);
  } else if (what == "graph") {
    const std::uint64_t graph = run_.made["graph " + word(2)];
    if (graph == 0) return Wrong(host, "no graph is called '{}'", word(2));
    status = machine.LaunchGraph(process, *stream, graph, now, &op);
  } else {
    return Wrong(host, "'{}' is nothing that a stream does", what);
  }
  if (op != 0) ops_.push_back(op);
  return Needs(host, status);
}

// graph g: a@gpu0; b@gpu1 after a c; memset x 1 4 called d; copy y x 4 called c
Status HostPart::MakeGraph(Host& host, const std::string& line) {
  const auto colon = line.find(':');
  if (colon == std::string::npos) return Wrong(host, "graph NAME: NODE; NODE after NODE; ...");
  std::uint64_t& graph = run_.made["graph " + Words(line.substr(0, colon)).back()];
  if (graph != 0) return Ok();
  std::vector<node::GraphNode> nodes;
  std::vector<std::string> names;
  std::string rest = line.substr(colon + 1);
  while (!rest.empty()) {
    const auto end = std::min(rest.find(';'), rest.size());
    std::vector<std::string> words = Words(rest.substr(0, end));
    rest.erase(0, std::min(rest.size(), end + 1));
    if (words.empty()) continue;
    node::GraphNode node;
    const auto after = std::find(words.begin(), words.end(), "after");
    for (auto it = after; it != words.end() && it + 1 != words.end(); ++it) {
      const auto known = std::find(names.begin(), names.end(), *(it + 1));
      if (known == names.end()) return Wrong(host, "no node before is called '{}'", *(it + 1));
      node.after.push_back(static_cast<std::uint32_t>(known - names.begin()));
    }
    words.erase(after, words.end());
    const auto at = words[0].find('@');
    if (words.size() == 1 && at != std::string::npos) {
      const LoadedKernel* kernel = run_.KernelNamed(words[0].substr(0, at));
      if (kernel == nullptr) return Wrong(host, "no kernel is called '{}'", words[0]);
      node.kind = node::GraphNode::Kind::kKernel;
      node.device = kernel->text.device;
      node.launch = kernel->request;
      names.push_back(kernel->text.name);
    } else if (words.size() >= 5 && words[words.size() - 2] == "called") {
      names.push_back(words.back());
      words.resize(words.size() - 2);
      const std::string kind = words[0];
      const auto place = kind.find('@');
      node.device = place == std::string::npos ? 0 : DeviceNamed(kind.substr(place + 1));
      words.erase(words.begin());
      std::uint32_t width = 4;
      std::string into;
      if (kind.starts_with("copy")) {
        node.kind = node::GraphNode::Kind::kCopy;
        if (auto made = MakeCopy(host, words, &node.copy, &into, &width); !made) return made;
        if (!into.empty()) return Wrong(host, "a graph copies between memories");
      } else {
        node.kind = node::GraphNode::Kind::kMemset;
        const auto to = At(host, words[0], &width);
        if (!to) return Fail(to.error());
        node.memset.dst = *to;
        node.memset.value = static_cast<std::uint32_t>(Number(words[1]).value_or(0));
        node.memset.count = words.size() > 2 ? Number(words[2]).value_or(width) : width;
      }
    } else {
      return Wrong(host, "'{}' is no node of a graph", words[0]);
    }
    nodes.push_back(std::move(node));
  }
  return Needs(host, run_.machine().PutGraph(ProcessOf(host), std::move(nodes), &graph));
}

Status HostPart::Sync(Host& host, const std::vector<std::string>& words) {
  node::Machine& machine = run_.machine();
  const auto process = ProcessOf(host);
  std::vector<OpId> ops;
  const auto add_device = [&](int device) {
    std::vector<OpId> tail;
    const node::Status status = machine.DeviceTail(process, device, &tail);
    ops.insert(ops.end(), tail.begin(), tail.end());
    return status;
  };
  node::Status status = node::Status::kSuccess;
  if (words.size() == 1) {
    for (int d = 0; d < run_.test().DeviceCount(); ++d)
      if (!run_.test().ranks || d == host.number) status = add_device(d);
  } else if (DeviceNamed(words[1]) >= 0) {
    status = add_device(DeviceNamed(words[1]));
  } else if (words[1].find('@') != std::string::npos) {
    const auto stream = StreamNamed(host, words[1]);
    if (!stream) return Fail(stream.error());
    status = machine.StreamTail(process, *stream, &ops);
  } else {
    const auto event = EventNamed(host, words[1]);
    if (!event) return Fail(event.error());
    status = machine.EventTail(process, *event, &ops);
  }
  if (auto needed = Needs(host, status); !needed) return needed;
  host.waits = true;
  const std::size_t index = static_cast<std::size_t>(&host - hosts_.data());
  machine.WhenDone(ops, [this, index](node::Time at) {
    hosts_[index].waits = false;
    hosts_[index].ready = at + draw_.Delay();
    woken_ = true;
    run_.machine().Stop();
  });
  return Ok();
}

}  // namespace allranks::litmus
