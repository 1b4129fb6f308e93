#include <allranks/flags.h>

// Sample sort by one block per rank, between three meetings of all: each sorts its keys and gives
// samples, of all of which every eighth is a splitter; each stores the part between two splitters
// at their rank, which merges the parts, and stores every key where it ends. Rank and place make
// keys different. A rank stores what the call before has left only after a meeting of this call.

using namespace allranks;

constexpr int kThreads = 1024, kMaxKeys = 2048, kSamples = 8;  // of a rank
using Word = unsigned long long;

struct Control {
  std::uint32_t meetings, reached[kMaxRanks];
  std::int32_t counts[kMaxRanks], sizes[kMaxRanks][kMaxRanks];  // sizes: by source and destination
  Word samples[kMaxRanks][kSamples];                            // by source
};

__device__ Control* ControlOf(const Args& args, int rank) {
  return reinterpret_cast<Control*>(args.scratch_peers[rank]);
}
__device__ Word* Part(const Args& args, int at, int source) {
  return reinterpret_cast<Word*>(ControlOf(args, at) + 1) + source * args.most;
}

__device__ void Meet(const Args& args, std::uint32_t meeting) {
  __syncthreads();
  if (threadIdx.x < args.world) {
    StoreReleaseSys(&ControlOf(args, threadIdx.x)->reached[args.rank], meeting);
    WaitAcquireSys(&ControlOf(args, args.rank)->reached[threadIdx.x], meeting);
  }
  __syncthreads();
}

__device__ int CountLess(const Word* sorted, int n, Word word) {
  int at = 0;
  for (int end = n; at < end;) {
    const int middle = (at + end) / 2;
    (sorted[middle] < word ? at : end) = middle + (sorted[middle] < word);
  }
  return at;
}

__global__ void __launch_bounds__(kThreads) Sort(Args args) {
  __shared__ Word keys[kMaxKeys], splitters[kMaxRanks];
  const int world = args.world, rank = args.rank, n = *args.count, t = threadIdx.x;
  Control* mine = ControlOf(args, rank);
  const std::uint32_t meeting = mine->meetings;
  for (int i = t; i < kMaxKeys; i += kThreads) {
    keys[i] = i < n ? static_cast<Word>(args.keys[i]) << 32 | rank << 16 | i : ~Word{0};
  }
  int length = 2;
  while (length < n) length *= 2;
  for (int size = 2; size <= length; size *= 2) {
    for (int d = size / 2; d > 0; d /= 2) {
      __syncthreads();
      for (int i = t; i < length; i += kThreads) {
        if ((i & d) != 0) continue;
        const Word a = keys[i], b = keys[i ^ d];
        if ((a > b) == ((i & size) == 0)) keys[i] = b, keys[i ^ d] = a;
      }
    }
  }
  __syncthreads();
  if (t < world * kSamples) {
    const int i = t % kSamples;
    ControlOf(args, t / kSamples)->samples[rank][i] = n > 0 ? keys[i * n / kSamples] : ~Word{0};
    if (i == 0) ControlOf(args, t / kSamples)->counts[rank] = n;
  }
  Meet(args, meeting + 1);

  // Samples of empty ranks come last; equal ones are of the same rank.
  if (t < world * kSamples) {
    const Word* samples = mine->samples[0];
    int place = 0;
    for (int j = 0; j < world * kSamples; ++j) {
      place += samples[j] < samples[t] || (samples[j] == samples[t] && j < t);
    }
    if (place % kSamples == 0) splitters[place / kSamples] = place > 0 ? samples[t] : 0;
  }
  __syncthreads();
  for (int to = 0; to < world; ++to) {
    const int begin = CountLess(keys, n, splitters[to]);
    const int end = to + 1 < world ? CountLess(keys, n, splitters[to + 1]) : n;
    for (int i = begin + t; i < end; i += kThreads) Part(args, to, rank)[i - begin] = keys[i];
    if (t < world) ControlOf(args, t)->sizes[rank][to] = end - begin;
  }
  Meet(args, meeting + 2);

  int start = 0;  // of what belongs to this rank, among all keys
  for (int i = 0; i < world * rank; ++i) start += mine->sizes[i / rank][i % rank];
  for (int s = 0; s < world; ++s) {
    for (int i = t; i < mine->sizes[s][rank]; i += kThreads) {
      const Word word = Part(args, rank, s)[i];
      int place = start, to = 0;
      for (int r = 0; r < world; ++r) {
        place += CountLess(Part(args, rank, r), mine->sizes[r][rank], word);
      }
      for (; place >= mine->counts[to]; ++to) place -= mine->counts[to];
      args.out_peers[to][place] = static_cast<std::uint32_t>(word >> 32);
    }
  }
  Meet(args, meeting + 3);
  if (t == 0) mine->meetings = meeting + 3;
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Sort<<<1, kThreads, 0, stream>>>(args);
}
