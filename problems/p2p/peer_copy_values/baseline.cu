#include <cuda.h>

// A quarter of the message at a time, each with the whole exchange of flags.
struct Control {
  std::uint32_t claimed, full;
  alignas(256) std::uint32_t data[1];
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
  const std::int64_t each = (args.n + 3) / 4;
  for (std::int64_t at = 0; at < args.n; at += each) {
    const std::int64_t bytes = 4 * (args.n - at < each ? args.n - at : each);
    Wait(stream, &mine->claimed, 0);
    Write(stream, &mine->claimed, 1);
    cudaMemcpyAsync(target->data, args.in + at, bytes, cudaMemcpyDeviceToDevice, stream);
    Write(stream, &target->full, 1);
    Wait(stream, &mine->full, 1);
    cudaMemcpyAsync(args.out + at, mine->data, bytes, cudaMemcpyDeviceToDevice, stream);
    Write(stream, &mine->full, 0);
    Write(stream, &source->claimed, 0);
  }
}
