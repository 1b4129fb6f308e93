#include <cuda.h>

// The message in two halves with flags of their own, so that a receiver can empty one half while
// the other one is under way.
struct Control {
  std::uint32_t claimed[2], full[2];
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
  const std::int64_t begin[3] = {0, args.n / 2, args.n};
  const int first = args.n > 1 ? 0 : 1;  // a single word is in the second half
  for (int half = first; half < 2; ++half) {
    const std::int64_t at = begin[half], bytes = 4 * (begin[half + 1] - at);
    Wait(stream, &mine->claimed[half], 0);
    Write(stream, &mine->claimed[half], 1);
    cudaMemcpyAsync(target->data + at, args.in + at, bytes, cudaMemcpyDeviceToDevice, stream);
    Write(stream, &target->full[half], 1);
  }
  for (int half = first; half < 2; ++half) {
    const std::int64_t at = begin[half], bytes = 4 * (begin[half + 1] - at);
    Wait(stream, &mine->full[half], 1);
    cudaMemcpyAsync(args.out + at, mine->data + at, bytes, cudaMemcpyDeviceToDevice, stream);
    Write(stream, &mine->full[half], 0);
    Write(stream, &source->claimed[half], 0);
  }
}
