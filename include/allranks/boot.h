// What ranks of a judged run can say to each other in `setup`, before anything is measured: enough
// to exchange handles and addresses. All ranks must make the same calls in the same order.
#pragma once

#include <cstddef>

namespace allranks {

class Boot {
 public:
  int rank() const { return rank_; }
  int world() const { return world_; }
  // Returns when every rank is here.
  void Barrier();
  // `all` gets `bytes` of each rank, in their order; at most 4096, and the same on every rank.
  void AllGather(const void* mine, void* all, std::size_t bytes);

  Boot(int rank, int world) : rank_(rank), world_(world) {}
  Boot(const Boot&) = delete;
  Boot& operator=(const Boot&) = delete;

 private:
  int rank_, world_;
};

}  // namespace allranks
