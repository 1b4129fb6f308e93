// Memory of one process in another: descriptors over a socket and over fork, fabric handles, what
// lives how long, a multicast object of two processes, and what cannot be imported.
// run: --devices 2
// nvcc: -arch=sm_90
// finds: api_error
#include <fcntl.h>

#include "handles.h"
#include "two_processes.h"

namespace {

constexpr int kFd = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
constexpr int kFabric = CU_MEM_HANDLE_TYPE_FABRIC;

__global__ void Put(uint32_t* to, uint32_t value) { to[threadIdx.x] = value + threadIdx.x; }

// Each device adds what all have, and waits for the other's flag through the multicast address.
__global__ void AllReduce(uint32_t* all, volatile uint32_t* mine, uint32_t* out) {
  uint32_t sum;
  asm volatile("multimem.ld_reduce.relaxed.sys.global.add.u32 %0, [%1];"
               : "=r"(sum)
               : "l"(all + threadIdx.x)
               : "memory");
  out[threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.x == 0) {
    asm volatile("multimem.red.release.sys.global.add.u32 [%0], 1;" ::"l"(all + 1024) : "memory");
    while (mine[1024] < 2) {
    }
  }
}

int Export(CUmemGenericAllocationHandle handle) {
  int fd = -1;
  DRIVER_CHECK(DRIVER(cuMemExportToShareableHandle)(
      &fd, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
  REQUIRE(fcntl(fd, F_GETFD) >= 0, "%d is no descriptor", fd);
  return fd;
}

CUmemGenericAllocationHandle Import(int fd) {
  CUmemGenericAllocationHandle handle = 0;
  DRIVER_CHECK(DRIVER(cuMemImportFromShareableHandle)(
      &handle, reinterpret_cast<void*>(intptr_t{fd}), CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
  return handle;
}

void CheckWords(const uint32_t* from, uint32_t value) {
  uint32_t words[32];
  CUDA_CHECK(cudaMemcpy(words, from, sizeof words, cudaMemcpyDefault));
  for (uint32_t i = 0; i < 32; ++i) REQUIRE(words[i] == value + i, "word %u: %u", i, words[i]);
}

// Each writes into the other's memory, which it has by a descriptor.
void Descriptors(int rank, Partner& partner) {
  const auto memory = CreateOn(rank, 2 * kGranule, kFd);
  uint32_t* mine = MapFor<uint32_t>(memory, 2 * kGranule, rank, rank);
  const int sent = Export(memory), got = partner.ExchangeDescriptor(sent);
  const auto theirs = Import(got);
  close(sent);
  close(got);
  CUmemAllocationProp properties;
  DRIVER_CHECK(DRIVER(cuMemGetAllocationPropertiesFromHandle)(&properties, theirs));
  REQUIRE(properties.location.id == 1 - rank && properties.requestedHandleTypes == kFd, "imported");
  // From this process's own device, and though the exporter may have no handle any more.
  uint32_t* other = MapFor<uint32_t>(theirs, 2 * kGranule, rank, rank);
  DRIVER_CHECK(DRIVER(cuMemRelease)(memory));
  DRIVER_CHECK(DRIVER(cuMemRelease)(theirs));
  Put<<<1, 32>>>(other + kGranule / 4, 100 * (rank + 1));
  CUDA_CHECK(cudaDeviceSynchronize());
  partner.Barrier();
  CheckWords(mine + kGranule / 4, 100 * (2 - rank));
  partner.Barrier();
  UnmapAndFree(mine, 2 * kGranule);
  // The importer still has it.
  Put<<<1, 32>>>(other, 7);
  CUDA_CHECK(cudaDeviceSynchronize());
  CheckWords(other, 7);
  UnmapAndFree(other, 2 * kGranule);
}

// A descriptor keeps memory alive, though nobody has a handle, and gives it back when it is closed.
void Lifetimes(int rank, Partner& partner) {
  size_t before = 0, during = 0, after = 0, total = 0;
  partner.Barrier();  // the other one has given back what it had
  CUDA_CHECK(cudaMemGetInfo(&before, &total));
  partner.Barrier();
  int fd = -1;
  if (rank == 0) {
    const auto memory = CreateOn(0, kGranule, kFd);
    uint32_t* mine = MapFor<uint32_t>(memory, kGranule, 0, 0);
    Put<<<1, 32>>>(mine, 42);
    CUDA_CHECK(cudaDeviceSynchronize());
    fd = Export(memory);
    UnmapAndFree(mine, kGranule);
    DRIVER_CHECK(DRIVER(cuMemRelease)(memory));
    CUDA_CHECK(cudaMemGetInfo(&during, &total));
    REQUIRE(before - during == kGranule, "gone with its handle");
  }
  const int got = partner.ExchangeDescriptor(rank == 0 ? fd : 0);
  if (rank == 0) close(fd);
  if (rank == 1) {
    const auto memory = Import(got);
    uint32_t* theirs = MapFor<uint32_t>(memory, kGranule, 1, 1);
    CheckWords(theirs, 42);
    UnmapAndFree(theirs, kGranule);
    close(got);
    DRIVER_CHECK(DRIVER(cuMemRelease)(memory));
  }
  partner.Barrier();
  if (rank == 0) {
    close(got);
    // Something is created and released, and with it what nobody has open is noticed.
    DRIVER_CHECK(DRIVER(cuMemRelease)(CreateOn(0, kGranule)));
    CUDA_CHECK(cudaMemGetInfo(&after, &total));
    REQUIRE(before == after, "%zu bytes are missing", before - after);
  }
  partner.Barrier();
}

void FabricHandles(int rank, Partner& partner) {
  const auto memory = CreateOn(rank, kGranule, kFd | kFabric);
  uint32_t* mine = MapFor<uint32_t>(memory, kGranule, rank, rank);
  CUmemFabricHandle handle, again;
  DRIVER_CHECK(
      DRIVER(cuMemExportToShareableHandle)(&handle, memory, CU_MEM_HANDLE_TYPE_FABRIC, 0));
  DRIVER_CHECK(
      DRIVER(cuMemExportToShareableHandle)(&again, memory, CU_MEM_HANDLE_TYPE_FABRIC, 0));
  REQUIRE(memcmp(&handle, &again, sizeof handle) == 0, "two handles of one memory");
  handle = partner.Exchange(handle);
  CUmemGenericAllocationHandle theirs = 0;
  // One wrong bit names nothing.
  for (const int byte : {0, 9, 17, 31, 63}) {
    CUmemFabricHandle forged = handle;
    forged.data[byte] ^= 1;
    DRIVER_EXPECT(CUDA_ERROR_INVALID_VALUE, DRIVER(cuMemImportFromShareableHandle)(
                                                &theirs, &forged, CU_MEM_HANDLE_TYPE_FABRIC));
  }
  DRIVER_CHECK(DRIVER(cuMemImportFromShareableHandle)(&theirs, &handle, CU_MEM_HANDLE_TYPE_FABRIC));
  uint32_t* other = MapFor<uint32_t>(theirs, kGranule, rank, rank);
  Put<<<1, 32>>>(other, 1000 * (rank + 1));
  CUDA_CHECK(cudaDeviceSynchronize());
  partner.Barrier();
  CheckWords(mine, 1000 * (2 - rank));
  UnmapAndFree(other, kGranule);
  DRIVER_CHECK(DRIVER(cuMemRelease)(theirs));
  partner.Barrier();
  UnmapAndFree(mine, kGranule);
  DRIVER_CHECK(DRIVER(cuMemRelease)(memory));
  partner.Barrier();
  // A fabric handle keeps nothing alive.
  DRIVER_EXPECT(CUDA_ERROR_INVALID_VALUE, DRIVER(cuMemImportFromShareableHandle)(
                                              &theirs, &handle, CU_MEM_HANDLE_TYPE_FABRIC));
}

// Rank 0 makes the object, both add their device and bind their memory; binding waits for the team.
void Multicast(int rank, Partner& partner, bool fabric) {
  const int type = fabric ? kFabric : kFd;
  CUmemGenericAllocationHandle multicast = 0;
  if (rank == 0) multicast = CreateMulticast(2, kGranule, type);
  if (fabric) {
    CUmemFabricHandle handle = {};
    if (rank == 0) {
      DRIVER_CHECK(
          DRIVER(cuMemExportToShareableHandle)(&handle, multicast, CU_MEM_HANDLE_TYPE_FABRIC, 0));
    }
    handle = partner.Exchange(handle);
    if (rank == 1) {
      DRIVER_CHECK(DRIVER(cuMemImportFromShareableHandle)(&multicast, &handle,
                                                          CU_MEM_HANDLE_TYPE_FABRIC));
    }
  } else {
    const int fd = rank == 0 ? Export(multicast) : 0;
    const int got = partner.ExchangeDescriptor(fd);
    if (rank == 1) multicast = Import(got);
    close(got);
    if (rank == 0) close(fd);
  }
  // The other one comes later, and what needs the team waits for it.
  if (rank == 1) usleep(1000);
  DRIVER_CHECK(DRIVER(cuMulticastAddDevice)(multicast, rank));
  const auto secret = CreateOn(rank, kGranule), memory = CreateOn(rank, kGranule, type);
  DRIVER_EXPECT(CUDA_ERROR_INVALID_VALUE,
                DRIVER(cuMulticastBindMem)(multicast, 0, secret, 0, kGranule, 0));
  DRIVER_CHECK(DRIVER(cuMulticastBindMem)(multicast, 0, memory, 0, kGranule, 0));
  uint32_t* mine = MapFor<uint32_t>(memory, kGranule, rank, rank);
  uint32_t* all = MapFor<uint32_t>(multicast, kGranule, rank, rank);
  CUDA_CHECK(cudaMemset(mine, 0, kGranule));
  Put<<<1, 32>>>(mine, 10 * (rank + 1));
  uint32_t* out = ZeroedOn<uint32_t>(rank, 32);
  partner.Barrier();
  AllReduce<<<1, 32>>>(all, mine, out);
  CUDA_CHECK(cudaDeviceSynchronize());
  uint32_t sums[32];
  CUDA_CHECK(cudaMemcpy(sums, out, sizeof sums, cudaMemcpyDefault));
  for (uint32_t i = 0; i < 32; ++i) REQUIRE(sums[i] == 30 + 2 * i, "sum %u: %u", i, sums[i]);
  partner.Barrier();
  UnmapAndFree(all, kGranule);
  DRIVER_CHECK(DRIVER(cuMulticastUnbind)(multicast, rank, 0, kGranule));
  UnmapAndFree(mine, kGranule);
  for (const auto handle : {multicast, memory, secret}) DRIVER_CHECK(DRIVER(cuMemRelease)(handle));
}

void Errors(int rank) {
  CUmemGenericAllocationHandle handle = 0;
  const auto refuse = [&](int fd) {
    DRIVER_EXPECT(CUDA_ERROR_INVALID_VALUE,
                  DRIVER(cuMemImportFromShareableHandle)(
                      &handle, reinterpret_cast<void*>(intptr_t{fd}),
                      CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
  };
  int ends[2];
  REQUIRE(pipe(ends) == 0, "pipe");
  refuse(ends[0]);
  refuse(open("/dev/null", O_RDWR));
  refuse(999);
  refuse(-1);
  // Memory that was not made to be shared cannot be.
  const auto memory = CreateOn(rank, kGranule);
  int fd = -1;
  DRIVER_EXPECT(CUDA_ERROR_INVALID_VALUE,
                DRIVER(cuMemExportToShareableHandle)(
                    &fd, memory, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
  DRIVER_EXPECT(CUDA_ERROR_INVALID_VALUE, DRIVER(cuMemExportToShareableHandle)(
                                              &fd, memory, CU_MEM_HANDLE_TYPE_WIN32, 0));
  DRIVER_CHECK(DRIVER(cuMemRelease)(memory));
}

void Play(int rank, Partner partner) {
  RequireDevices(2);
  CUDA_CHECK(cudaSetDevice(rank));
  Descriptors(rank, partner);
  Lifetimes(rank, partner);
  FabricHandles(rank, partner);
  Multicast(rank, partner, false);
  Multicast(rank, partner, true);
  Errors(rank);
}

}  // namespace

int main() {
  const int child = RunTwoProcesses(Play);
  REQUIRE(child == 0, "rank 1 ended with %d", child);
  std::printf("PASS processes\n");
}
