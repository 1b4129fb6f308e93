// How things of the node travel between processes: as open file descriptors and as fabric handles.
//
// A descriptor is the writing end of a pipe of which the node keeps the reading end. The node knows
// it again by its inode, wherever it went (SCM_RIGHTS, fork, pidfd_getfd), and learns by the pipe's
// hang-up that nobody has it open any more. A fabric handle is 64 bytes that cannot be guessed; it
// keeps nothing alive. What makes it so, and IPC handles too, is a signature: HMAC-SHA-256 of the
// handle's kind and number, under a key that no process knows.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "node/ids.h"
#include "node/virtual_memory.h"

namespace allranks::node {

// Something that several processes can have.
struct Shared {
  virtual ~Shared() = default;
  int host = 0;              // where it was made
  std::uint32_t share = 0;   // how it may be shared: kShareBy... bits
  std::uint64_t fabric = 0;  // its number as a fabric handle, once it has one
};

class SharedHandles {
 public:
  // `secret`: the key; empty: a random one.
  explicit SharedHandles(const std::string& secret);
  ~SharedHandles();
  SharedHandles(const SharedHandles&) = delete;
  SharedHandles& operator=(const SharedHandles&) = delete;

  // A descriptor that the caller owns; -1 if the process has too many open, or the system none.
  int Export(ProcessId process, const std::shared_ptr<Shared>& what);
  std::shared_ptr<Shared> Find(int fd) const;
  FabricHandle ExportFabric(const std::shared_ptr<Shared>& what);
  std::shared_ptr<Shared> Find(const FabricHandle& handle) const;
  // Forgets descriptors that nobody has open.
  void Reap();

  using Signature = std::array<std::uint8_t, 32>;
  Signature Sign(std::uint64_t kind, std::uint64_t number) const;
  // Whether the bytes are that signature.
  bool Signed(std::uint64_t kind, std::uint64_t number, const std::uint8_t* bytes) const;

 private:
  struct Descriptor {
    int reading_end = -1;
    ProcessId process = 0;
    std::shared_ptr<Shared> what;
  };
  std::array<std::uint8_t, 32> key_{};
  std::uint64_t next_ = 1;
  std::map<std::pair<dev_t, ino_t>, Descriptor> descriptors_;
  std::map<std::uint64_t, std::weak_ptr<Shared>> fabrics_;
};

}  // namespace allranks::node
