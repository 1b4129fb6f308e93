// A key of 64 bits orders candidates: the similarity above, the complement of the id below, so that
// the larger key is nearer and no two are equal. A block has a query. Every warp sorts its rows'
// keys by exchanges between lanes and keeps the best 32; what the warps found is ranked by counting
// larger keys, and the best k go at once to the rank that owns the query, in packets of two words
// with half a key each beside the number of the call. There the block of the same query ranks the
// candidates of all ranks by counting.
//
// Packets are in two sets, used in turn. Every rank owns queries, so it leaves call k with packets
// of all ranks, which had left call k - 1: call k + 1 may overwrite the set that call k - 1 read.

constexpr int kMaxBlocks = 64, kMaxThreads = 256, kMaxK = 32;
constexpr int kMaxKeys = kMaxRanks * kMaxK, kAhead = 8, kBatch = 4;
constexpr int kPackets = kMaxBlocks * 4;  // where they begin; before: a counter of calls per block

struct alignas(16) Packet { std::uint64_t high, low; };

__device__ void Send(Packet* to, Packet p) {
  asm volatile("st.relaxed.sys.global.v2.u64 [%0], {%1, %2};" ::"l"(to), "l"(p.high), "l"(p.low)
               : "memory");  //@send
}

__device__ Packet Look(const Packet* from) {
  Packet p;
  asm volatile("ld.relaxed.sys.global.v2.u64 {%0, %1}, [%2];"
               : "=l"(p.high), "=l"(p.low)
               : "l"(from)
               : "memory");  //@look
  return p;
}

// At its owner, where k candidates of each rank for a query go.
__device__ Packet* Candidates(const Args& args, std::uint32_t call, int query) {
  const int per = static_cast<int>(args.per), owner = query / per, own = query % per;
  Packet* packets = reinterpret_cast<Packet*>(args.scratch_peers[owner] + kPackets);
  return packets + ((call & 1) * args.per + own) * args.world * args.k;
}

// Whatever is loaded is on its way at the same time.
__device__ std::uint64_t KeyOf(const Args& args, int query, int row) {
  const int quads = args.quads;
  const int4* a = reinterpret_cast<const int4*>(args.queries) + query * quads;
  const int4* b = reinterpret_cast<const int4*>(args.database) + row * quads;
  int score = 0;
  for (int i = 0; i < quads; i += kBatch) {
    int4 x[kBatch], y[kBatch];
    for (int j = 0; j < kBatch; ++j) {
      x[j] = i + j < quads ? a[i + j] : int4{};
      y[j] = i + j < quads ? b[i + j] : int4{};
    }
    for (int j = 0; j < kBatch; ++j) {
      score = __dp4a(x[j].y, y[j].y, __dp4a(x[j].x, y[j].x, score));
      score = __dp4a(x[j].w, y[j].w, __dp4a(x[j].z, y[j].z, score));
    }
  }
  const std::uint32_t id = static_cast<std::uint32_t>(args.rank * args.rows + row);
  return std::uint64_t{static_cast<std::uint32_t>(score) ^ 0x80000000u} << 32 | ~id;
}

// Puts bitonic runs of `size` lanes in order: descending and ascending in turn.
__device__ std::uint64_t Straighten(std::uint64_t key, int size) {
  const int lane = threadIdx.x % 32;
#pragma unroll
  for (int d = size / 2; d > 0; d /= 2) {
    const std::uint64_t other = __shfl_xor_sync(~0u, key, d);
    const bool larger = ((lane & d) == 0) == ((lane & size) == 0);
    key = (key > other) == larger ? key : other;
  }
  return key;
}

// Behind the keys there are kAhead zeros, which are not larger than any key.
__device__ int CountLarger(const std::uint64_t* keys, int count, std::uint64_t key) {
  int larger = 0;
  for (int i = 0; i < count; i += kAhead) {
    std::uint64_t other[kAhead];
    for (int j = 0; j < kAhead; ++j) other[j] = keys[i + j];
    for (int j = 0; j < kAhead; ++j) larger += other[j] > key;
  }
  return larger;
}

__global__ void __launch_bounds__(kMaxThreads) Search(Args args) {
  __shared__ alignas(16) std::uint64_t keys[kMaxKeys + kAhead];
  std::uint32_t* calls = reinterpret_cast<std::uint32_t*>(args.scratch);
  const std::uint32_t call = calls[blockIdx.x] + 1;  //@epoch
  const int world = args.world, rows = args.rows, k = args.k, per = args.per;
  const int thread = threadIdx.x, threads = blockDim.x, warp = thread / 32, lane = thread % 32;
  const int kept = min(k, rows), found = threads / 32 * kept, came = world * kept;
  const std::uint64_t epoch = std::uint64_t{call} << 32;

  for (int query = blockIdx.x; query < world * per; query += gridDim.x) {
    std::uint64_t best = 0;  // less than any key
    for (int base = 0; base < rows; base += threads) {
      const int row = base + thread;
      std::uint64_t next = row < rows ? KeyOf(args, query, row) : 0;
#pragma unroll
      for (int size = 2; size <= 32; size *= 2) next = Straighten(next, size);
      if (base > 0) {  //@merge
        next = __shfl_sync(~0u, next, 31 - lane);
        next = Straighten(best > next ? best : next, 32);  // the best 32 of both
      }
      best = next;
    }
    __syncthreads();  // of the query before
    if (lane < kept) keys[warp * kept + lane] = best;
    if (thread < kAhead) keys[found + thread] = 0;
    __syncthreads();
    if (thread < found) {
      const std::uint64_t key = keys[thread];
      const int place = CountLarger(keys, found, key);
      if (place < kept) {
        Packet* to = Candidates(args, call, query) + args.rank * k;
        Send(&to[place], {epoch | key >> 32, epoch | static_cast<std::uint32_t>(key)});  //@tell
      }
    }
  }

  const int first = args.rank * per;
  for (int query = blockIdx.x; query < first + per; query += gridDim.x) {
    if (query < first) continue;
    const Packet* packets = Candidates(args, call, query);
    __syncthreads();
    if (thread < kAhead) keys[came + thread] = 0;
    for (int i = thread; i < came; i += threads) {
      const Packet* from = &packets[i / kept * k + i % kept];
      Packet p;
      do {
        p = Look(from);
      } while (p.high >> 32 != call || p.low >> 32 != call);  //@wait
      keys[i] = p.high << 32 | static_cast<std::uint32_t>(p.low);
    }
    __syncthreads();  //@came
    for (int i = thread; i < came; i += threads) {
      const int place = CountLarger(keys, came, keys[i]);
      if (place >= k) continue;
      const std::int64_t at = static_cast<std::int64_t>(query - first) * k + place;
      args.score[at] = static_cast<std::int32_t>(keys[i] >> 32 ^ 0x80000000u);
      args.index[at] = static_cast<std::int32_t>(~static_cast<std::uint32_t>(keys[i]));
    }
  }
  if (thread == 0) calls[blockIdx.x] = call;  //@advance
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const std::int64_t queries = args.world * args.per, warps = (args.rows + 31) / 32;
  const int blocks = static_cast<int>(queries < kMaxBlocks ? queries : kMaxBlocks);
  const int threads = warps < kMaxThreads / 32 ? static_cast<int>(warps) * 32 : kMaxThreads;
  Search<<<blocks, threads, 0, stream>>>(args);
}
