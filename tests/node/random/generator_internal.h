// The generator of generator.h. A program is a tree of statements over a few registers of each
// kind: statements.cpp writes them, generator.cpp chooses them and puts functions and kernel around
// them.
//
// What makes a program free of races:
// - memory that threads exchange has a barrier between writing and reading, and every exchange has
//   words of its own, which are written once;
// - barriers, shuffles and exchanges stand only where all threads come by: at the top, in
//   loops whose count is a literal, never under a condition;
// - under a condition, warp-wide operations name the lanes that a ballot before it has counted;
// - an atomic word is only ever changed by one kind of operation, which commutes, and is only read
//   at the end by the host.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <random>
#include <string>
#include <utility>

#include "random/generator.h"

namespace allranks::node::random {

inline constexpr int kInts = 10, kWides = 6, kFloats = 6, kPredicates = 6;
inline constexpr int kFunctions = 4;
inline constexpr int kInWords = 256;
inline constexpr int kMaxExchanges = 24;
inline constexpr int kOutPerThread = kInts + 2 * kWides + kFloats;
inline constexpr const char* kSums[] = {"add.u32", "min.u32", "max.s32", "and.b32",
                                        "or.b32",  "xor.b32", "inc.u32"};

class Generator {
 public:
  Generator(std::uint64_t seed, bool racy) : random_(seed), racy_(racy) {}

  Program Run();

 private:
  // Where a statement stands.
  struct Place {
    bool uniform = true;  // every thread of the grid comes by, the same number of times
    bool once = true;     // and exactly once: what needs words of its own may stand here
    bool in_function = false;
    int depth = 0;
    std::string members;  // register with the mask of the warp's lanes here; empty: not known
  };

  int Below(int n) { return static_cast<int>(random_() % static_cast<std::uint64_t>(n)); }
  bool Chance(int percent) { return Below(100) < percent; }
  template <class... Args>
  void Line(fmt::format_string<Args...> format, Args&&... args) {
    text_ += "  " + fmt::format(format, std::forward<Args>(args)...) + "\n";
  }
  std::string Int() { return fmt::format("%r{}", Below(kInts)); }
  std::string Wide() { return fmt::format("%w{}", Below(kWides)); }
  std::string Float() { return fmt::format("%f{}", Below(kFloats)); }
  std::string Pred() { return fmt::format("%p{}", Below(kPredicates)); }
  std::string IntOrLiteral() {
    return Chance(25) ? fmt::format("{}", Below(1 << 20) - (1 << 19)) : Int();
  }
  std::string Temp() { return fmt::format("%t{}", temps_++); }
  std::string WideTemp() { return fmt::format("%u{}", wide_temps_++); }
  std::string Label() { return fmt::format("L{}", labels_++); }
  const char* One(std::initializer_list<const char*> list) {
    return list.begin()[Below(static_cast<int>(list.size()))];
  }

  void Registers();
  void Arithmetic();
  void FloatArithmetic();
  void Compare();
  void LocalMemory();
  void Sum();
  void If(Place place);
  void Loop(Place place);
  void Call();
  void WarpWide(const Place& place);
  void SharedExchange();
  void GlobalExchange(bool between_ctas);
  void CtaBarrier() {
    if (!racy_) Line("{}", One({"bar.sync 0;", "barrier.sync 0;", "barrier.sync.aligned 0;"}));
  }
  void GridBarrier();
  void Statement(Place place);
  void Block(const Place& place, int statements) {
    for (int i = 0; i < statements; ++i) Statement(place);
  }
  void Function(int number);
  std::string Body(const std::function<void()>& body);

  std::mt19937_64 random_;
  const bool racy_;
  Program program_;
  std::string text_;
  int temps_ = 0, wide_temps_ = 0, labels_ = 0, exchanges_ = 0, barriers_ = 0, budget_ = 0;
  int functions_ = 0;  // that may be called here
  int calls_ = 0;      // that may still be made in this function
};

}  // namespace allranks::node::random
