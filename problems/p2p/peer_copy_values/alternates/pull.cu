#include <cuda.h>

// The staging buffer is the sender's own: the receiver copies out of it and gives it back.
struct Control {
  std::uint32_t used, full;            // raised by this rank as sender; by the rank before
  alignas(256) std::uint32_t data[1];  // n words
};

void Write(cudaStream_t stream, const std::uint32_t* word, std::uint32_t value) {
  cuStreamWriteValue32(stream, reinterpret_cast<CUdeviceptr>(word), value,
                       CU_STREAM_WRITE_VALUE_DEFAULT);
}

void Wait(cudaStream_t stream, const std::uint32_t* word, std::uint32_t value) {
  cuStreamWaitValue32(stream, reinterpret_cast<CUdeviceptr>(word), value, CU_STREAM_WAIT_VALUE_EQ);
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const int next = (args.rank + 1) % args.world, before = (args.rank + args.world - 1) % args.world;
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  Control* target = reinterpret_cast<Control*>(args.scratch_peers[next]);
  Control* source = reinterpret_cast<Control*>(args.scratch_peers[before]);
  Wait(stream, &mine->used, 0);
  Write(stream, &mine->used, 1);
  cudaMemcpyAsync(mine->data, args.in, 4 * args.n, cudaMemcpyDeviceToDevice, stream);
  Write(stream, &target->full, 1);
  Wait(stream, &mine->full, 1);
  cudaMemcpyAsync(args.out, source->data, 4 * args.n, cudaMemcpyDeviceToDevice, stream);
  Write(stream, &mine->full, 0);
  Write(stream, &source->used, 0);
}
