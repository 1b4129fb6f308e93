// A node of few words: one thread per connection, real waiting, a clock that is the largest anybody
// has seen plus a little. It answers what the host library asks and keeps a count of it.
#pragma once

#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <cstring>
#include <list>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "wire/frame.h"

namespace allranks::wire {

class FakeNode {
 public:
  explicit FakeNode(const std::string& path) : path_(path) {
    listener_ = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
    unlink(path.c_str());
    bind(listener_, reinterpret_cast<sockaddr*>(&address), sizeof address);
    listen(listener_, 64);
    acceptor_ = std::thread([this] { Accept(); });
  }
  ~FakeNode() {
    shutdown(listener_, SHUT_RDWR);
    acceptor_.join();
    {
      std::lock_guard lock(mutex_);
      stopping_ = true;
      for (int fd : sockets_) shutdown(fd, SHUT_RDWR);
      changed_.notify_all();
    }
    for (auto& server : servers_) server.join();
    close(listener_);
    unlink(path_.c_str());
  }

  int Count(Op op) {
    std::lock_guard lock(mutex_);
    return counts_[op];
  }
  int Hellos(Hello::Kind kind) {
    std::lock_guard lock(mutex_);
    return hellos_[kind];
  }
  std::vector<HostPoll> polls() {
    std::lock_guard lock(mutex_);
    return polls_;
  }

 private:
  using KeyTuple = std::tuple<std::uint64_t, std::uint64_t, std::uint64_t>;
  struct Registration {
    KeyTuple key;
    bool woken = false;
  };
  struct Connection {
    std::uint64_t token = 0, thread = 0;
    std::int64_t clock = 0;
    std::list<Registration>::iterator registration;
  };
  struct Process {
    int pid = 0;
    int connections = 0;
    bool seen = false;
    std::uint64_t next_thread = 1;
    std::set<std::uint64_t> live;
  };

  void Accept() {
    for (;;) {
      const int fd = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
      if (fd < 0) return;
      std::lock_guard lock(mutex_);
      sockets_.push_back(fd);
      servers_.emplace_back([this, fd] { Serve(fd); });
    }
  }

  void Serve(int socket) {
    Connection self;
    FrameReader reader;
    Frame frame;
    for (;;) {
      const auto state = reader.Read(socket, 0, &frame);
      if (state == FrameReader::State::kMore) {
        pollfd entry{socket, POLLIN, 0};
        poll(&entry, 1, 1000);
        continue;
      }
      if (state != FrameReader::State::kFrame || !Handle(socket, &self, frame)) break;
    }
    close(socket);
    std::lock_guard lock(mutex_);
    std::erase(sockets_, socket);
    Process& process = processes_[self.token];
    --process.connections;
    process.live.erase(self.thread);
    changed_.notify_all();
  }

  template <class T>
  T Body(const Frame& frame, Connection* self) {
    std::span<const std::byte> rest = frame.payload;
    RequestHeader header;
    DecodeFrom(rest, &header);
    self->clock += header.local_ps + 1000;
    T body;
    DecodeFrom(rest, &body);
    return body;
  }
  template <class R>
  bool Reply(int socket, Connection* self, const Frame& frame, const R& reply, int status = 0,
             std::vector<int> fds = {}) {
    ReplyHeader header;
    header.status = status;
    header.busy = busy_;
    header.clock = self->clock;
    return SendFrame(socket, frame.op, frame.sequence, EncodePayload(header, reply), fds);
  }
  void Catch(Connection* self) {  // a waiter is at least where the one who woke it is
    self->clock = std::max(self->clock, now_);
  }
  static KeyTuple Tuple(const Key& key, std::uint64_t token) {
    return {key.shared ? key.object : token, key.where, key.shared};
  }

  bool Handle(int socket, Connection* self, const Frame& frame) {
    std::unique_lock lock(mutex_);
    ++counts_[frame.op];
    now_ = std::max(now_, self->clock);
    switch (frame.op) {
      case Op::kHello: {
        const auto hello = Body<Hello>(frame, self);
        ++hellos_[hello.kind];
        self->token = hello.kind == Hello::Kind::kRoot ? next_token_++ : hello.token;
        Process& process = processes_[self->token];
        if (process.pid == 0) process.pid = hello.tid;
        process.seen = true;
        ++process.connections;
        self->thread = hello.thread != 0 ? hello.thread : process.next_thread++;
        process.live.insert(self->thread);
        self->clock = now_;
        HelloReply reply;
        reply.token = self->token;
        reply.thread = self->thread;
        reply.realtime_base_ns = 1'700'000'000'000'000'000;
        reply.monotonic_base_ns = 1'000'000'000;
        return Reply(socket, self, frame, reply);
      }
      case Op::kNewThread: {
        Body<NewThread>(frame, self);
        Process& process = processes_[self->token];
        NewThreadReply reply;
        reply.thread = process.next_thread++;
        process.live.insert(reply.thread);
        return Reply(socket, self, frame, reply);
      }
      case Op::kThreadExit: {
        Body<ThreadExit>(frame, self);
        return Reply(socket, self, frame, Empty{});
      }
      case Op::kWaitThread: {
        const auto wait = Body<WaitThread>(frame, self);
        changed_.wait(lock, [&] {
          return stopping_ || processes_[self->token].live.count(wait.thread) == 0;
        });
        Catch(self);
        return Reply(socket, self, frame, Empty{});
      }
      case Op::kNewProcess: {
        Body<NewProcess>(frame, self);
        NewProcessReply reply;
        reply.token = next_token_++;
        return Reply(socket, self, frame, reply);
      }
      case Op::kProcessStarted: {
        const auto started = Body<ProcessStarted>(frame, self);
        processes_[started.token].pid = started.pid;
        return Reply(socket, self, frame, Empty{});
      }
      case Op::kExec: {
        Body<Exec>(frame, self);
        ExecReply reply;
        reply.token = self->token;
        return Reply(socket, self, frame, reply);
      }
      case Op::kWaitProcess: {
        const auto wait = Body<WaitProcess>(frame, self);
        WaitProcessReply reply;
        changed_.wait(lock, [&] {
          for (auto& [token, process] : processes_) {
            if (token == self->token || !process.seen || process.connections != 0) continue;
            if (wait.pid == -1 || wait.pid == process.pid) {
              reply.pid = process.pid;
              return true;
            }
          }
          return stopping_;
        });
        Catch(self);
        return Reply(socket, self, frame, reply);
      }
      case Op::kWaitFd: {
        const auto wait = Body<WaitFd>(frame, self);
        std::vector<pollfd> entries;
        for (std::size_t i = 0; i < frame.fds.size(); ++i) {
          entries.push_back({frame.fds[i].get(), wait.events[i], 0});
        }
        lock.unlock();
        WaitFdReply reply;
        if (!entries.empty()) {
          reply.ready = poll(entries.data(), entries.size(), wait.timeout_ps < 0 ? 5000 : 100) > 0;
        }
        lock.lock();
        Catch(self);
        if (!reply.ready && wait.timeout_ps > 0) self->clock += wait.timeout_ps;
        return Reply(socket, self, frame, reply);
      }
      case Op::kSleep:
        self->clock += Body<Sleep>(frame, self).ps;
        return Reply(socket, self, frame, Empty{});
      case Op::kBarrierWait: {
        const auto wait = Body<BarrierWait>(frame, self);
        Barrier& barrier = barriers_[Tuple(wait.key, self->token)];
        const int round = barrier.round;
        BarrierWaitReply reply;
        if (++barrier.arrived == static_cast<int>(wait.count)) {
          barrier.arrived = 0;
          ++barrier.round;
          reply.last = true;
          changed_.notify_all();
        } else {
          changed_.wait(lock, [&] { return stopping_ || barrier.round != round; });
        }
        Catch(self);
        return Reply(socket, self, frame, reply);
      }
      case Op::kWatchKey: {
        const auto watch = Body<WatchKey>(frame, self);
        registrations_.push_back({Tuple(watch.key, self->token)});
        self->registration = std::prev(registrations_.end());
        return Reply(socket, self, frame, Empty{});
      }
      case Op::kUnwatchKey: {
        Body<UnwatchKey>(frame, self);
        WaitKeyReply reply;
        reply.woken = self->registration->woken;
        registrations_.erase(self->registration);
        return Reply(socket, self, frame, reply);
      }
      case Op::kWaitKey: {
        const auto wait = Body<WaitKey>(frame, self);
        const auto woken = [&] { return stopping_ || self->registration->woken; };
        WaitKeyReply reply;
        if (wait.timeout_ps < 0) {
          changed_.wait(lock, woken);
          reply.woken = true;
        } else {
          reply.woken = changed_.wait_for(lock, std::chrono::milliseconds(100), woken);
          if (!reply.woken) self->clock += wait.timeout_ps;
        }
        registrations_.erase(self->registration);
        Catch(self);
        return Reply(socket, self, frame, reply);
      }
      case Op::kWakeKey: {
        const auto wake = Body<WakeKey>(frame, self);
        WakeKeyReply reply;
        for (Registration& registration : registrations_) {
          if (reply.woken == wake.count) break;
          if (registration.woken || registration.key != Tuple(wake.key, self->token)) continue;
          registration.woken = true;
          ++reply.woken;
        }
        changed_.notify_all();
        return Reply(socket, self, frame, reply);
      }
      case Op::kAllocPinned: {
        Body<AllocPinned>(frame, self);
        const int fd = memfd_create("pinned", MFD_CLOEXEC);
        if (ftruncate(fd, 4096) != 0) return false;
        pinned_ = static_cast<std::int32_t*>(
            mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0));
        AllocPinnedReply reply;
        reply.address = 0x2000'0000'0000;
        reply.size = 4096;
        const bool good = Reply(socket, self, frame, reply, 0, {fd});
        close(fd);
        return good;
      }
      case Op::kHostPoll:
        polls_.push_back(Body<HostPoll>(frame, self));
        if (pinned_[9] != 0)  // scripted: nothing changes
          return Reply(socket, self, frame, HostPollReply{.changed = false, .doubt = true});
        ++pinned_[0];  // the device has answered
        return Reply(socket, self, frame, HostPollReply{.changed = true});
      case Op::kDeviceSync:
        Body<DeviceSync>(frame, self);
        busy_ = true;
        return Reply(socket, self, frame, Empty{});
      case Op::kStickyError:  // scripted: the node dies
        return false;
      default:
        Body<Empty>(frame, self);
        return Reply(socket, self, frame, Empty{});
    }
  }

  struct Barrier {
    int arrived = 0, round = 0;
  };

  std::string path_;
  int listener_ = -1;
  std::thread acceptor_;
  std::list<std::thread> servers_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool stopping_ = false;
  bool busy_ = false;
  std::vector<int> sockets_;
  std::map<Op, int> counts_;
  std::map<Hello::Kind, int> hellos_;
  std::map<std::uint64_t, Process> processes_;
  std::map<KeyTuple, Barrier> barriers_;
  std::list<Registration> registrations_;
  std::vector<HostPoll> polls_;
  std::uint64_t next_token_ = 1000;
  std::int64_t now_ = 0;
  std::int32_t* pinned_ = nullptr;
};

}  // namespace allranks::wire
