#include <cuda.h>

// By copy engine at every size, through halves of scratch in turn: no rank touches another one's
// `out`. Flags are raised by one side and lowered by the other.
struct Control {
  std::uint32_t claimed[2], full[2];
  alignas(256) std::uint32_t data[2][8064];
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
  const std::int64_t each = 8064;
  for (std::int64_t at = 0; at < args.n; at += each) {
    const std::int64_t bytes = 4 * (args.n - at < each ? args.n - at : each);
    const int half = at / each % 2;
    Wait(stream, &mine->claimed[half], 0);
    Write(stream, &mine->claimed[half], 1);
    cudaMemcpyAsync(target->data[half], args.in + at, bytes, cudaMemcpyDeviceToDevice, stream);
    Write(stream, &target->full[half], 1);
    Wait(stream, &mine->full[half], 1);
    cudaMemcpyAsync(args.out + at, mine->data[half], bytes, cudaMemcpyDeviceToDevice, stream);
    Write(stream, &mine->full[half], 0);
    Write(stream, &source->claimed[half], 0);
  }
}
