// What a trace shows of a call: the name of a function that a message of hosts stands for, and a
// message's members as members of a JSON object. Members are found by their names, which mean the
// same in all messages.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>

#include "wire/messages.h"

namespace allranks::server {

// "pthread_join" of wire::WaitThread. The name of a CUDA function is not known from its message.
const char* HostFunctionOf(wire::Op op);

class CallArgs {
 public:
  template <class M>
  static std::string Of(const M& m) {
    CallArgs args;
    if constexpr (requires { m.stream.device; }) {
      if (m.stream.stream == 0) args.Number("device", m.stream.device);
    } else if constexpr (requires { m.device; }) {
      args.Number("device", m.device);
    }
    if constexpr (requires { m.peer; }) args.Number("peer", m.peer);
    if constexpr (requires { m.grid.x; }) args.Dim("grid", m.grid);
    if constexpr (requires { m.block.x; }) args.Dim("block", m.block);
    if constexpr (requires { m.cluster.x; }) {
      if (m.cluster.x * m.cluster.y * m.cluster.z > 1) args.Dim("cluster", m.cluster);
    }
    if constexpr (requires { m.dynamic_shared; }) args.Number("dynamic_shared", m.dynamic_shared);
    if constexpr (requires { m.cooperative; }) args.Flag("cooperative", m.cooperative);
    if constexpr (requires { m.dst; }) args.Address("dst", m.dst);
    if constexpr (requires { m.src; }) args.Address("src", m.src);
    if constexpr (requires { m.address; }) args.Address("address", m.address);
    if constexpr (requires { m.rows.height; }) {
      std::uint64_t row = 0;
      if constexpr (requires { m.count; }) {
        row = m.count * m.width;
      } else {
        row = m.size;
      }
      args.Number("bytes", row * m.rows.height * m.rows.depth);
    } else if constexpr (requires { m.size; }) {
      args.Number("bytes", m.size);
    }
    if constexpr (requires { m.value; }) args.Number("value", m.value);
    if constexpr (requires { m.limit; }) args.Number("limit", m.limit);
    if constexpr (requires { m.values.size(); }) args.Number("operations", m.values.size());
    if constexpr (requires { m.thread; }) args.Number("thread", m.thread);
    if constexpr (requires { m.ps; }) args.Number("ns", m.ps / 1000);
    return args.text_;
  }

 private:
  template <class T>
  void Number(const char* name, T value) {
    Raw(name, fmt::format("{}", value));
  }
  template <class T>
  void Dim(const char* name, const T& dim) {
    Raw(name, fmt::format("\"{}x{}x{}\"", dim.x, dim.y, dim.z));
  }
  void Address(const char* name, std::uint64_t value) {
    Raw(name, fmt::format("\"{:#x}\"", value));
  }
  void Flag(const char* name, bool value) {
    if (value) Raw(name, "true");
  }
  void Raw(const char* name, const std::string& value) {
    text_ += fmt::format("{}\"{}\":{}", text_.empty() ? "" : ",", name, value);
  }

  std::string text_;
};

}  // namespace allranks::server
