// The hosts' side of virtual time: which host thread may go on, when, and whether anything still
// can.
//
// Theory of operation. A host thread executes natively and talks to the node by requests. Between
// two messages it is *running*; that segment takes no virtual time. From its request to the
// handling of it the thread is *pending*, and a handler either resumes it or leaves it *waiting*
// until somebody wakes it. A thread or process that has been promised (pthread_create, fork) but
// has not spoken yet is *announced* and counts as running.
//
//   AddThread ──▶ announced ──Request──▶ pending ──handler──▶ running ──Request──▶ pending ...
//                                           └──Wait──▶ waiting ──WakeAt──▶ (handler) ──▶ running
//
// The rule: *virtual time stands still while anybody runs*. Only when nobody does is the earliest
// item (a request at its thread's clock plus its cost, or a wake-up) handled, in the order (time,
// rank, thread, sequence), after the devices have been run up to its time. This is the conservative
// rule (nobody may still ask for something earlier) without lookahead, for a reason: what a running
// thread stores natively into pinned or shared memory, writes to a pipe or locks cannot be seen by
// the node, so nothing that could notice may happen beside it. Hence the order of everything is a
// function of the program alone. What it costs: the threads of a program do not run beside each
// other.
//
// What can break the rule is a thread that never speaks again: it waits for another thread in a way
// that no message shows. After `patience` of wall time during which it held others up it is
// *detached*: it no longer counts, and the run is no longer deterministic. It rejoins with its next
// message. This is the only place where wall time has an influence.
//
// A silent thread that the system shows asleep until another thread wakes it is *blocked* instead:
// it cannot run before somebody else has, so time may pass without it. As a wake-up of that kind is
// no message, blocked threads are looked at again (Recheck) whenever anybody has run. When a block
// is noticed makes no difference to virtual time.
//
// Ends. A thread ends by End(), or because its process has ended (Gone): exit() and SIGKILL look
// the same from here. A process that ends closes its connections, pipes and files one by one, so
// time also stands still from the first sign of it (Closing) until all its threads are gone. A
// running thread that is gone ends one request later, in the order of all others, so that an exit
// is as repeatable as a call.
//
// Deadlock: nobody runs, nothing is due, and every wait is one that only the node can end; the
// devices' half of that question is answered by Machine. A thread that asks again and again
// (cudaEventQuery) never waits: see Note().
//
// Hosts knows nothing of sockets, devices or what a request means, and is deterministic.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "node/time.h"

namespace allranks::node {

struct HostThread {
  std::int32_t rank = -1;
  std::uint32_t number = 0;  // within its process, from 1
  auto operator<=>(const HostThread&) const = default;
};

class Hosts {
 public:
  // Called when an item's time has come. It must resume the thread, leave it waiting, or end it.
  using Action = std::function<void(Time at)>;
  enum class State : std::uint8_t {
    kAnnounced,
    kRunning,
    kPending,
    kWaiting,
    kBlocked,  // asleep, without a message, until another thread wakes it
    kDetached,
  };

  // What a request says about whether its thread can still change anything.
  enum class Activity : std::uint8_t {
    kActs,   // anything else
    kIdles,  // let time pass: sleep, yield, a wait that timed out
    kPolls,  // asked a question and heard "not yet"
  };

  struct Options {
    Time min_cost = Ns(1);             // of an end by closed connection
    std::int64_t patience_ms = 3'000;  // wall time
    // A thread that was detached once has already cost the run its determinism.
    std::int64_t second_patience_ms = 100;
    int polls = 20;               // "not yet" so often, with devices stuck: nobody will act
    int idles = 1'000;            // the same for threads that only let time pass, if they did so
    Time idle_span = Ms(10'000);  // for this long
  };
  struct Events {
    std::function<void(HostThread, Time)> thread_ended;
    std::function<void(std::int32_t rank, Time)> process_ended;  // after its last thread_ended
  };
  struct ThreadInfo {
    HostThread id;
    State state = State::kAnnounced;
    Time clock = 0;    // of its last resumption; of the pending item if there is one
    std::string what;  // the request it is in
  };

  Hosts(const Options& options, Events events);

  Time now() const { return now_; }
  // The devices have got this far.
  void AdvanceTo(Time time);

  // Ranks count up from 0, threads from 1 in each process. A new thread is announced, at now().
  std::int32_t AddProcess();
  HostThread AddThread(std::int32_t rank);
  bool Has(HostThread thread) const { return threads_.contains(thread); }
  int ThreadCount(std::int32_t rank) const;
  bool Empty() const { return threads_.empty(); }

  // The thread (announced, running, blocked or detached; else nothing happens and the answer is
  // false) asks for something that takes it `cost`.
  bool Request(HostThread thread, Time cost, std::string what, Action action);
  // For handlers: the thread runs from now() on.
  void Resume(HostThread thread);
  // For handlers: the thread waits. `outside`: something else than the node may end this.
  void Wait(HostThread thread, std::string what, bool outside);
  // A waiting thread is to be handled at `at` (not before now()). Only the earliest wake-up counts:
  // false if there is one already that is not later.
  bool WakeAt(HostThread thread, Time at, Action action);
  void Note(HostThread thread, Activity activity);

  // The thread said that it ends.
  void End(HostThread thread);
  // Its connection closed, but its process still has to end, or to say more.
  void Closing(HostThread thread);
  // It exists no more.
  void Gone(HostThread thread);
  // Ends the process now, whatever its threads do.
  void EndProcess(std::int32_t rank);
  // execve: all other threads end, this one is announced again.
  void Replace(HostThread thread);

  // Somebody runs (or is still to close its connections): time stands still.
  bool Held() const;
  // Time of the earliest item.
  std::optional<Time> Due() const;
  // Handles the earliest item. Not while Held().
  void Process();

  // Nobody runs, nothing is due, and only the node can end the waits.
  bool AllWaitForNode() const;
  // The same if only something outside could help.
  bool AllWait() const;
  // Everybody either waits without end or has only asked and slept since somebody last acted.
  // `outside`: waits that something else than the node may end count as well, even with a timeout.
  bool NobodyActs(bool outside = false) const;
  // How often the thread has let time pass since somebody last acted, and since when.
  struct Idling {
    int count = 0;
    Time since = 0;
  };
  Idling IdlingOf(HostThread thread) const;
  std::uint64_t acts() const { return acts_; }

  // Wall time enters here. Detaches who has been silent for too long; true if it did.
  // `may_wait_for_devices`: threads of that rank may be silent because they wait for device work.
  bool Tick(std::int64_t wall_ms,
            const std::function<bool(std::int32_t rank)>& may_wait_for_devices = {});
  bool AnyDetached() const { return detached_ != 0; }
  // How often a thread that is asleep has gone to sleep so far; nullopt: it is awake.
  using Asleep = std::function<std::optional<std::uint64_t>(HostThread)>;
  // All threads that hold time become blocked if all of them are asleep at one moment; true if they
  // did. Each is asked twice, all once before any is asked again: with the same count both times it
  // has slept throughout, so in between all did.
  bool Block(const Asleep& asleep);
  // Blocked threads that were awake at any moment of two such looks run again; true if any does.
  bool Recheck(const Asleep& asleep);
  bool AnyBlocked() const { return blocked_ != 0; }

  bool deterministic() const { return reasons_.empty(); }
  const std::vector<std::string>& reasons() const { return reasons_; }
  // The run depends on something that the node cannot order.
  void LoseDeterminism(std::string reason);

  std::vector<ThreadInfo> Threads() const;

 private:
  struct Key {
    Time time = 0;
    HostThread thread;
    std::uint64_t sequence = 0;
    auto operator<=>(const Key&) const = default;
  };
  struct Thread {
    State state = State::kAnnounced;
    bool closed = false, gone = false;
    bool outside = false;
    bool was_detached = false;
    Time clock = 0;
    std::uint64_t sequence = 0;
    std::optional<Key> item;
    std::string what;
    std::optional<std::int64_t>
        silent_since;        // wall; set at the first Tick that finds it holding up
    std::uint64_t acts = 0;  // acts_ when it last polled or idled
    int polls = 0, idles = 0;
    Time idle_since = 0;
  };
  struct HostProcess {
    std::uint32_t next_thread = 1;
    int threads = 0, closed = 0, gone = 0;  // closed: and not yet gone
    bool dying = false;                     // it has begun to end
    std::optional<std::int64_t> dying_since;
  };

  Thread* Find(HostThread thread);
  void SetState(Thread& thread, State state);
  void Enqueue(HostThread id, Thread& thread, Time at, Action action);
  void Dequeue(Thread& thread);
  void RequestEnd(HostThread id, Thread& thread);
  void Erase(HostThread id);
  void CountGone(std::int32_t rank);
  void DropOrphans(std::int32_t rank);
  void EndProcessIfOver(std::int32_t rank);

  Options options_;
  Events events_;
  Time now_ = 0;
  std::int32_t next_rank_ = 0;
  std::map<HostThread, Thread> threads_;
  std::map<std::int32_t, HostProcess> processes_;
  std::map<Key, Action> items_;
  int holding_ = 0, detached_ = 0, blocked_ = 0, dying_ = 0;
  std::uint64_t acts_ = 0;
  std::vector<std::string> reasons_;
};

}  // namespace allranks::node
