// The axioms; see axioms.h.
#include "axioms.h"

#include <algorithm>
#include <numeric>

namespace allranks::litmus {
namespace {

// relation[a] has bit b: a comes before b.
using Relation = std::vector<std::uint32_t>;

bool Has(const Relation& relation, int a, int b) {
  return (relation[static_cast<std::size_t>(a)] >> b & 1) != 0;
}
void Put(Relation& relation, int a, int b) { relation[static_cast<std::size_t>(a)] |= 1u << b; }

void Close(Relation& relation) {
  const int n = static_cast<int>(relation.size());
  for (int k = 0; k < n; ++k)
    for (int a = 0; a < n; ++a)
      if (Has(relation, a, k))
        relation[static_cast<std::size_t>(a)] |= relation[static_cast<std::size_t>(k)];
}

bool HasCycle(Relation relation) {
  Close(relation);
  for (int a = 0; a < static_cast<int>(relation.size()); ++a)
    if (Has(relation, a, a)) return true;
  return false;
}

class Execution {
 public:
  Execution(const SmallProgram& program, const Seen& seen)
      : program_(program), seen_(seen), n_(static_cast<int>(program.events.size())) {
    program_order_.assign(program.events.size(), 0);
    for (int a = 0; a < n_; ++a)
      for (int b = a + 1; b < n_; ++b)
        if (At(a).thread == At(b).thread) Put(program_order_, a, b);
    Observe();
    Synchronise();
  }

  const Event& At(int e) const { return program_.events[static_cast<std::size_t>(e)]; }

  bool Includes(const Event& a, const Event& b) const {
    const Standing& here = program_.threads[static_cast<std::size_t>(a.thread)];
    const Standing& there = program_.threads[static_cast<std::size_t>(b.thread)];
    switch (a.reach) {
      case Reach::kBlock:
        return here.device == there.device && here.block == there.block;
      case Reach::kDevice:
        return here.device == there.device;
      case Reach::kSystem:
        return true;
    }
    return false;
  }
  // Whether memory accesses overlap is the caller's to ask; sizes are all the same.
  bool MorallyStrong(int a, int b) const {
    if (At(a).thread == At(b).thread) return true;
    return At(a).strong && At(b).strong && Includes(At(a), At(b)) && Includes(At(b), At(a));
  }
  bool Overlap(int a, int b) const {
    return At(a).location >= 0 && At(a).location == At(b).location;
  }

  // Causality with some further edges between fences.
  Relation Causality(const Relation& fences) const {
    Relation base = synchronised_;
    for (int a = 0; a < n_; ++a)
      base[static_cast<std::size_t>(a)] |=
          program_order_[static_cast<std::size_t>(a)] | fences[static_cast<std::size_t>(a)];
    Close(base);
    Relation causality = base;
    for (int a = 0; a < n_; ++a)
      for (int b = 0; b < n_; ++b)
        if (Has(observed_, a, b))
          causality[static_cast<std::size_t>(a)] |= base[static_cast<std::size_t>(b)];
    return causality;
  }

  // `order` has the writes of each location.
  bool Satisfies(const std::vector<std::vector<int>>& order, const Relation& fences) const {
    const Relation causality = Causality(fences);
    for (int a = 0; a < n_; ++a) {
      if (Has(causality, a, a)) return false;
      for (int b = 0; b < n_; ++b)
        if (Has(fences, a, b) && Has(causality, b, a)) return false;  // Fence-SC
    }
    Relation coherence(program_.events.size(), 0), from_read(program_.events.size(), 0);
    for (const std::vector<int>& writes : order)
      for (std::size_t i = 0; i < writes.size(); ++i)
        for (std::size_t j = i + 1; j < writes.size(); ++j) {
          if (Has(causality, writes[j], writes[i])) return false;  // Coherence
          Put(coherence, writes[i], writes[j]);
        }
    Relation at_a_location(program_.events.size(), 0);
    for (int r = 0; r < n_; ++r) {
      if (!At(r).reads()) continue;
      const int source = From(r);
      if (source >= 0 && Has(causality, r, source)) return false;  // Causality
      for (int w = 0; w < n_; ++w) {
        if (w == r || !At(w).writes() || !Overlap(r, w)) continue;
        if (source >= 0 && (w == source || !Has(coherence, source, w))) continue;
        Put(from_read, r, w);
        if (Has(causality, w, r)) return false;  // Causality
        // Atomicity: what comes behind its source comes behind the atomic itself.
        if (At(r).kind == Event::Kind::kAtomic && MorallyStrong(r, w) && !Has(coherence, r, w))
          return false;
      }
      if (source >= 0 && MorallyStrong(source, r)) Put(at_a_location, source, r);
    }
    // Sequential consistency per location.
    for (int a = 0; a < n_; ++a)
      for (int b = 0; b < n_; ++b) {
        if (!Overlap(a, b) || a == b) continue;
        if (Has(program_order_, a, b) ||
            (MorallyStrong(a, b) && (Has(coherence, a, b) || Has(from_read, a, b))))
          Put(at_a_location, a, b);
      }
    return !HasCycle(at_a_location);
  }

 private:
  int From(int read) const { return seen_.from[static_cast<std::size_t>(read)]; }

  // A read observes its source, and through atomics what they have observed.
  void Observe() {
    observed_.assign(program_.events.size(), 0);
    for (int r = 0; r < n_; ++r)
      if (At(r).reads() && From(r) >= 0 && MorallyStrong(From(r), r)) Put(observed_, From(r), r);
    Close(observed_);  // only atomics have edges in and out
  }

  void Synchronise() {
    synchronised_.assign(program_.events.size(), 0);
    for (int first = 0; first < n_; ++first) {
      if (!At(first).releases) continue;
      for (int w = 0; w < n_; ++w) {
        if (!ReleasesBy(first, w)) continue;
        for (int r = 0; r < n_; ++r) {
          if (!Has(observed_, w, r)) continue;
          for (int last = 0; last < n_; ++last)
            if (AcquiresBy(r, last) && MorallyStrong(first, last)) Put(synchronised_, first, last);
        }
      }
    }
  }
  // `first` begins a release pattern whose write is `w`.
  bool ReleasesBy(int first, int w) const {
    if (!At(w).writes()) return false;
    if (first == w) return true;
    if (!Has(program_order_, first, w) || !At(w).strong) return false;
    return At(first).kind == Event::Kind::kFence || Overlap(first, w);
  }
  // `last` ends an acquire pattern whose read is `r`.
  bool AcquiresBy(int r, int last) const {
    if (!At(last).acquires || !At(r).reads()) return false;
    if (r == last) return true;
    if (!Has(program_order_, r, last) || !At(r).strong) return false;
    return At(last).kind == Event::Kind::kFence || Overlap(r, last);
  }

  const SmallProgram& program_;
  const Seen& seen_;
  const int n_;
  Relation program_order_, observed_, synchronised_;
};

// Calls `use` with every order of the fence.sc, as edges between those that are morally strong.
template <class Use>
bool AnyOrderOfFences(const SmallProgram& program, const Execution& execution, Use&& use) {
  std::vector<int> fences;
  for (int e = 0; e < static_cast<int>(program.events.size()); ++e)
    if (execution.At(e).sc) fences.push_back(e);
  do {
    Relation edges(program.events.size(), 0);
    for (std::size_t i = 0; i < fences.size(); ++i)
      for (std::size_t j = i + 1; j < fences.size(); ++j)
        if (execution.MorallyStrong(fences[i], fences[j])) Put(edges, fences[i], fences[j]);
    if (use(edges)) return true;
  } while (std::next_permutation(fences.begin(), fences.end()));
  return false;
}

bool AnyOrderOfWrites(const SmallProgram& program, const Seen& seen, const Execution& execution,
                      const Relation& fences, std::size_t location,
                      std::vector<std::vector<int>>& order) {
  if (location == static_cast<std::size_t>(program.locations))
    return execution.Satisfies(order, fences);
  std::vector<int>& writes = order[location];
  std::sort(writes.begin(), writes.end());
  do {
    if ((writes.empty() ? Seen::kFirst : writes.back()) == seen.last[location] &&
        AnyOrderOfWrites(program, seen, execution, fences, location + 1, order))
      return true;
  } while (std::next_permutation(writes.begin(), writes.end()));
  return false;
}

}  // namespace

bool Permitted(const SmallProgram& program, const Seen& seen) {
  const Execution execution(program, seen);
  return AnyOrderOfFences(program, execution, [&](const Relation& fences) {
    std::vector<std::vector<int>> order(static_cast<std::size_t>(program.locations));
    for (int e = 0; e < static_cast<int>(program.events.size()); ++e)
      if (execution.At(e).writes())
        order[static_cast<std::size_t>(execution.At(e).location)].push_back(e);
    return AnyOrderOfWrites(program, seen, execution, fences, 0, order);
  });
}

std::set<std::pair<int, int>> Races(const SmallProgram& program, const Seen& seen) {
  const Execution execution(program, seen);
  const Relation causality = execution.Causality(Relation(program.events.size(), 0));
  std::set<std::pair<int, int>> races;
  const int n = static_cast<int>(program.events.size());
  for (int a = 0; a < n; ++a)
    for (int b = a + 1; b < n; ++b) {
      if (!execution.Overlap(a, b) || !(execution.At(a).writes() || execution.At(b).writes()))
        continue;
      if (execution.MorallyStrong(a, b) || Has(causality, a, b) || Has(causality, b, a)) continue;
      races.insert({a, b});
    }
  return races;
}

}  // namespace allranks::litmus
