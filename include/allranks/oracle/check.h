// Comparing: every way in which an oracle says what an output must hold. All are quick where
// everything is right (one pass that compilers vectorise) and look closer only at blocks with a
// fault. NaN matches nothing. What an oracle never looked at is an error of the oracle.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "allranks/oracle/bounds.h"
#include "allranks/oracle/call.h"

namespace allranks::oracle {

inline std::string Text(double x) {
  char text[40];
  std::snprintf(text, sizeof text, "%.9g", x);
  return text;
}

// `count` elements of a tensor of one rank, from `at` on.
struct Piece {
  int rank = 0;
  std::string_view tensor;
  std::uint64_t at = 0;
};

class Check {
 public:
  Check(const Call& call, RawReport& report)
      : call_(call),
        report_(report),
        looked_at_(static_cast<std::size_t>(call.world()) * call.raw().tensor_count) {}

  // The output begins with `expected`, equal by value (0 == -0). What lies beyond must still be
  // poison: nobody wrote there.
  template <class T>
  void Exact(int rank, std::string_view tensor, std::span<const T> expected) {
    ExactAt<T>(rank, tensor, 0, expected);
    Untouched(rank, tensor, expected.size());
  }
  template <class T>
  void Exact(int rank, std::string_view tensor, const std::vector<T>& expected) {
    Exact(rank, tensor, std::span<const T>(expected));
  }
  // The same of elements [at, at + expected.size()), nothing said of others.
  template <class T>
  void ExactAt(int rank, std::string_view tensor, std::uint64_t at, std::span<const T> expected) {
    const std::uint32_t t = Use(rank, tensor, at, expected.size());
    call_.View<T>(rank, t);  // for its check of the type
    CompareExact(rank, t, at, expected.data(), expected.size());
  }

  // The output begins with values at most `bound` away from `expected`; poison beyond.
  void Near(int rank, std::string_view tensor, std::span<const double> expected,
            std::span<const double> bound) {
    NearAt(rank, tensor, 0, expected, bound);
    Untouched(rank, tensor, expected.size());
  }
  void NearAt(int rank, std::string_view tensor, std::uint64_t at, std::span<const double> expected,
              std::span<const double> bound);

  // `count` elements of each of `to` are the sum over those of `from`: within SumBudget for floats,
  // exact (modulo 2^bits) for integers. Types must agree. One pass over all, in blocks.
  void Sum(std::span<const Piece> from, std::span<const Piece> to, std::uint64_t count,
           Type accumulated = Type::kF32);

  // Elements [from, to) were not written in this call.
  void Untouched(int rank, std::string_view tensor, std::uint64_t from,
                 std::uint64_t to = ~std::uint64_t{0});

  // An output for checks of the oracle's own, with Wrong(); counts as looked at. What is read here
  // may be anything: never use it as an index.
  template <class T>
  std::span<const T> Out(int rank, std::string_view tensor) {
    const std::uint32_t t = call_.Find(tensor, Dir::kOut);
    looked_at_[call_.Slot(rank, t)] = call_.raw().tensors[t].count;
    return call_.View<T>(rank, t);
  }
  void Wrong(int rank, std::string_view tensor, std::uint64_t index, const std::string& expected,
             const std::string& got = "") {
    Report(rank, call_.Find(tensor), index, expected, got);
  }
  // Is an element what `open` had put there?
  bool IsPoison(int rank, std::string_view tensor, std::uint64_t index) const {
    const std::uint32_t t = call_.Find(tensor);
    return index < call_.raw().tensors[t].count && PoisonAt(rank, t, index);
  }

  std::uint64_t wrong_count() const { return report_.wrong_count; }
  // Throws if elements of an output were never compared.
  void RequireAllSeen() const;

 private:
  static constexpr std::size_t kBlock = 1024;  // elements: a few such buffers fit into L1

  // Bounds-checks [at, at + count) of an output and counts it as looked at.
  std::uint32_t Use(int rank, std::string_view tensor, std::uint64_t at, std::uint64_t count);
  const unsigned char* BytesAt(int rank, std::uint32_t tensor, std::uint64_t at) const;
  bool PoisonAt(int rank, std::uint32_t tensor, std::uint64_t index) const;
  std::string TextAt(int rank, std::uint32_t tensor, std::uint64_t index) const;
  void Report(int rank, std::uint32_t tensor, std::uint64_t index, const std::string& expected,
              const std::string& got);
  void ReportElement(int rank, std::uint32_t tensor, std::uint64_t index,
                     const std::string& expected) {
    Report(rank, tensor, index, expected, TextAt(rank, tensor, index));
  }
  // Is one more mismatch told, or only counted?
  bool Tells() const { return report_.wrong_count < report_.limit; }
  void CompareExact(int rank, std::uint32_t tensor, std::uint64_t at, const void* expected,
                    std::uint64_t count);
  void CompareNear(int rank, std::uint32_t tensor, std::uint64_t at, const double* expected,
                   const double* bound, std::size_t count);
  void SumFloats(std::span<const Piece> from, std::span<const Piece> to, std::uint64_t at,
                 std::size_t count, const Budget& budget);
  void SumIntegers(std::span<const Piece> from, std::span<const Piece> to, std::uint64_t at,
                   std::size_t count);

  const Call& call_;
  RawReport& report_;
  std::vector<std::uint64_t> looked_at_;  // elements, by rank and tensor
};

}  // namespace allranks::oracle

#include "allranks/oracle/check_impl.h"
