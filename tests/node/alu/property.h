// Runs one instruction (forms.h) on edge values and many random ones, on every instruction set this
// processor has, and compares with a model (reference.h). Three blocks of four run with all lanes,
// the fourth with some; every eighth writes over a source, as the decoder's slots may.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "alu/forms.h"
#include "alu/reference.h"
#include "node/alu/alu.h"
#include "node/alu/alu_internal.h"
#include "ptx/parser.h"

namespace allranks::node::alu_test {

// Values worth trying, as bits: integers and floats alike; by bytes of the register.
const std::vector<u64>& EdgeValues(int bytes);

class Property {
 public:
  explicit Property(const Line& line);

  bool selected() const { return selected_; }
  const std::string& error() const { return error_; }
  std::size_t handlers() const { return ops_.size(); }  // different ones

  // The first difference found, or "". `random` operands follow the pairs of edges.
  std::string Run(const Model& model, std::size_t random);

 private:
  static constexpr std::size_t kMaxOperands = 6;
  static constexpr int kFileSlots = 80;

  bool Decode(Op* op);
  void Fill(std::size_t first, std::size_t threads);
  void Load(const Place& place, const std::vector<u64>& values, std::size_t first);
  u64 Read(const Place& place, int lane, bool high) const;
  void LoadSources(std::size_t first);
  bool AllEqual(std::size_t first) const;
  std::string RunChunk(const Model& model, std::size_t first, std::size_t threads);
  std::string Check(const Model& model, std::size_t block);
  std::string Describe(std::size_t thread, std::size_t which, u64 got, u64 want) const;

  const Line& line_;
  ptx::Module module_;
  AluForm form_;
  std::vector<Op> ops_;
  bool selected_ = false;
  std::string error_;
  // One entry per thread of a chunk: sources and results in the model's order.
  std::vector<std::vector<u64>> in_, want_;
  struct Value {
    Place place;
    bool high = false;   // the upper half of a 128-bit register
    bool carry = false;  // %p5
  };
  std::vector<Value> sources_, results_;
  alignas(64) u32 file_[32 * kFileSlots] = {};
  alignas(64) u32 constants_[32 * 16] = {};
  u32 predicates_[6] = {};
};

}  // namespace allranks::node::alu_test
