// One call as an oracle sees it: parameters, the inputs of all ranks, random numbers.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "allranks/oracle/abi.h"
#include "allranks/oracle/formats.h"

namespace allranks::oracle {

// splitmix64: random numbers for randomised checks. The candidate cannot know them, and the same
// call gets the same ones again.
class Random {
 public:
  explicit Random(std::uint64_t state) : state_(state) {}
  std::uint64_t Next() {
    std::uint64_t z = state_ += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
  }
  // In [0, limit); the bias of 2^-64 * limit does not matter here.
  std::uint64_t Below(std::uint64_t limit) { return limit == 0 ? 0 : Next() % limit; }

 private:
  std::uint64_t state_;
};

// Names, ranks or types that a problem does not have are faults of the oracle: they throw, and the
// judge reports an internal error with the message.
class Call {
 public:
  explicit Call(const RawCall& raw) : raw_(raw) {}

  int world() const { return raw_.world; }

  std::int64_t Param(std::string_view name) const {
    for (std::uint32_t i = 0; i < raw_.param_count; ++i) {
      if (name == raw_.param_names[i]) return raw_.params[i];
    }
    throw std::runtime_error("no parameter '" + std::string(name) + "'");
  }

  // An input of a rank, as it was drawn.
  template <class T>
  std::span<const T> In(int rank, std::string_view tensor) const {
    const std::uint32_t t = Find(tensor, Dir::kIn);
    return View<T>(rank, t);
  }
  std::vector<double> InAsDouble(int rank, std::string_view tensor) const {
    const std::uint32_t t = Find(tensor, Dir::kIn);
    const RawTensor& tensor_of = raw_.tensors[t];
    std::vector<double> values(tensor_of.count);
    ToDoubles(tensor_of.type, raw_.data[Slot(rank, t)], values.size(), values.data());
    return values;
  }

  Type TypeOfTensor(std::string_view tensor) const { return raw_.tensors[Find(tensor)].type; }
  std::uint64_t Count(std::string_view tensor) const { return raw_.tensors[Find(tensor)].count; }

  // Different for different `purpose`.
  Random MakeRandom(std::uint64_t purpose = 0) const {
    Random mix(raw_.random[0] ^ purpose);
    return Random(mix.Next() ^ raw_.random[1]);
  }

  // For Check.
  const RawCall& raw() const { return raw_; }
  std::uint32_t Find(std::string_view tensor) const {
    for (std::uint32_t t = 0; t < raw_.tensor_count; ++t) {
      if (tensor == raw_.tensors[t].name) return t;
    }
    throw std::runtime_error("no tensor '" + std::string(tensor) + "'");
  }
  std::uint32_t Find(std::string_view tensor, Dir dir) const {
    const std::uint32_t t = Find(tensor);
    if (raw_.tensors[t].dir != dir) {
      throw std::runtime_error("tensor '" + std::string(tensor) + "' is not an " +
                               (dir == Dir::kIn ? "input" : "output"));
    }
    return t;
  }
  std::size_t Slot(int rank, std::uint32_t tensor) const {
    if (rank < 0 || rank >= raw_.world) {
      throw std::runtime_error("no rank " + std::to_string(rank));
    }
    return static_cast<std::size_t>(rank) * raw_.tensor_count + tensor;
  }
  template <class T>
  std::span<const T> View(int rank, std::uint32_t tensor) const {
    const RawTensor& t = raw_.tensors[tensor];
    if (t.type != TypeOf<T>()) {
      throw std::runtime_error("tensor '" + std::string(t.name) + "' is " + NameOf(t.type) +
                               ", not " + NameOf(TypeOf<T>()));
    }
    return {static_cast<const T*>(raw_.data[Slot(rank, tensor)]), t.count};
  }

 private:
  const RawCall& raw_;
};

}  // namespace allranks::oracle
