// A token goes round all devices many times. Who holds it appends to a log that lies on one device,
// without atomics: the token alone orders the accesses of all ranks, whatever their memory.
//
// run 2.processes: | 2 processes
// run 3.threads: | 3 threads
// run 5.processes: | 5 processes
// run 8.threads: | 8 threads
#include "world.h"

namespace {

constexpr uint32_t kLaps = 40;

struct Station {
  uint32_t token;  // the last pass that has come here
  uint32_t length;
  uint32_t checksum;
  uint32_t log[kLaps * kMaxRanks];
};

__global__ void Circulate(Peers<Station> stations, int rank, int ranks, int keeper) {
  Station* mine = stations[rank];
  Station* next = stations[(rank + 1) % ranks];
  Station* book = stations[keeper];
  for (uint32_t lap = 0; lap < kLaps; ++lap) {
    const uint32_t pass = lap * ranks + rank;
    if (pass > 0) WaitAtLeast(&mine->token, pass);
    Stumble(rank, pass);
    const uint32_t length = book->length;
    book->log[length] = rank;
    book->checksum = book->checksum * 31 + rank + 1;
    book->length = length + 1;
    StoreReleaseSys(&next->token, pass + 1);
  }
}

}  // namespace

int main(int argc, char** argv) {
  return RunWorld(argc, argv, [](World& world) {
    const int rank = world.rank(), ranks = world.ranks(), keeper = ranks / 2;
    const auto stations = world.Share<Station>();
    Circulate<<<1, 1, 0, world.stream()>>>(stations, rank, ranks, keeper);
    CUDA_CHECK_LAUNCH();
    CUDA_CHECK(cudaStreamSynchronize(world.stream()));
    world.Barrier();
    const Station book = Fetch(stations[keeper]);  // every rank reads it
    REQUIRE(book.length == kLaps * ranks, "rank %d: %u entries", rank, book.length);
    uint32_t checksum = 0;
    for (uint32_t i = 0; i < book.length; ++i) {
      REQUIRE(book.log[i] == i % ranks, "rank %d: entry %u is %u", rank, i, book.log[i]);
      checksum = checksum * 31 + i % ranks + 1;
    }
    REQUIRE(book.checksum == checksum, "rank %d: checksum %x", rank, book.checksum);
    world.Barrier();
  });
}
