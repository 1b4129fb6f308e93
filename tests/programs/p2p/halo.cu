// Halo exchange of a stencil over a grid that is cut into a mesh of devices (2 x 3 for six, one
// column for a prime number). persistent: one kernel does all steps, stores its edges into the
// neighbours' halos and meets only its four neighbours. copies: one kernel per step; rows go by
// copy, columns by pitched copy, and the hosts meet between steps.
//
// run persistent.2.processes: | 2 processes persistent
// run persistent.3.threads: | 3 threads persistent
// run persistent.6.processes: | 6 processes persistent
// run persistent.8.mixed: | 8 mixed persistent
// run copies.4.threads: | 4 threads copies
// run copies.5.processes: | 5 processes copies
#include "world.h"

namespace {

constexpr int kHeight = 12, kWidth = 20, kSteps = 10, kThreads = 128;
constexpr int kPitch = kWidth + 2, kCells = (kHeight + 2) * kPitch;
enum Side { kUp, kDown, kLeft, kRight };

// One rank's part with a frame of one cell. Step s reads buffer s % 2 and writes the other.
struct Part {
  uint32_t cells[2][kCells];
  uint32_t steps_of[4];  // steps that the neighbour on each side has finished
};

struct Mesh {
  int rows, cols;
};
Mesh MeshOf(int ranks) {
  int rows = 1;
  for (int r = 2; r * r <= ranks; ++r) {
    if (ranks % r == 0) rows = r;
  }
  return {rows, ranks / rows};
}

// The world is a torus, so everyone has four neighbours, which may be the same or itself.
struct Neighbours {
  int of[4];
};
Neighbours NeighboursOf(int rank, Mesh mesh) {
  const int row = rank / mesh.cols, col = rank % mesh.cols;
  const auto at = [=](int r, int c) {
    return (r + mesh.rows) % mesh.rows * mesh.cols + (c + mesh.cols) % mesh.cols;
  };
  return {{at(row - 1, col), at(row + 1, col), at(row, col - 1), at(row, col + 1)}};
}

__host__ __device__ uint32_t Rule(uint32_t here, uint32_t up, uint32_t down, uint32_t left,
                                  uint32_t right) {
  return here * 5 + up * 2 + down * 3 + left * 7 + right * 11;
}

__device__ uint32_t Update(const uint32_t* from, int cell) {
  return Rule(from[cell], from[cell - kPitch], from[cell + kPitch], from[cell - 1], from[cell + 1]);
}

__global__ void Persistent(Peers<Part> parts, Neighbours near, int rank) {
  Part* mine = parts[rank];
  for (int step = 0; step < kSteps; ++step) {
    // The halos of this step are here when every neighbour has finished the step before; and then
    // all neighbours have read the buffer that is written now.
    if (threadIdx.x < 4) WaitAtLeast(&mine->steps_of[threadIdx.x], step);
    if (threadIdx.x == 0) Stumble(rank, step);
    __syncthreads();
    const uint32_t* from = mine->cells[step % 2];
    const int to = (step + 1) % 2;
    for (int i = threadIdx.x; i < kHeight * kWidth; i += kThreads) {
      const int row = i / kWidth + 1, col = i % kWidth + 1;
      const uint32_t value = Update(from, row * kPitch + col);
      mine->cells[to][row * kPitch + col] = value;
      if (row == 1) parts[near.of[kUp]]->cells[to][(kHeight + 1) * kPitch + col] = value;
      if (row == kHeight) parts[near.of[kDown]]->cells[to][col] = value;
      if (col == 1) parts[near.of[kLeft]]->cells[to][row * kPitch + kWidth + 1] = value;
      if (col == kWidth) parts[near.of[kRight]]->cells[to][row * kPitch] = value;
    }
    __syncthreads();
    // We are the neighbour above for the one below, and so on.
    if (threadIdx.x < 4)
      StoreReleaseSys(&parts[near.of[threadIdx.x]]->steps_of[threadIdx.x ^ 1], step + 1);
  }
}

__global__ void OneStep(const uint32_t* from, uint32_t* to) {
  const int i = blockIdx.x * kThreads + threadIdx.x;
  const int cell = (i / kWidth + 1) * kPitch + i % kWidth + 1;
  if (i < kHeight * kWidth) to[cell] = Update(from, cell);
}

void StepByCopies(World& world, Peers<Part> parts, Neighbours near) {
  constexpr size_t kWord = sizeof(uint32_t), kRow = kPitch * kWord;
  const auto copy = [&](Side side, int step, int to, int from, size_t width, size_t height) {
    const int b = (step + 1) % 2;
    CUDA_CHECK(cudaMemcpy2DAsync(parts[near.of[side]]->cells[b] + to, kRow,
                                 parts[world.rank()]->cells[b] + from, kRow, width * kWord, height,
                                 cudaMemcpyDeviceToDevice, world.stream()));
  };
  for (int step = 0; step < kSteps; ++step) {
    uint32_t(&cells)[2][kCells] = parts[world.rank()]->cells;
    OneStep<<<(kHeight * kWidth + kThreads - 1) / kThreads, kThreads, 0, world.stream()>>>(
        cells[step % 2], cells[(step + 1) % 2]);
    CUDA_CHECK_LAUNCH();
    copy(kUp, step, (kHeight + 1) * kPitch + 1, kPitch + 1, kWidth, 1);
    copy(kDown, step, 1, kHeight * kPitch + 1, kWidth, 1);
    copy(kLeft, step, kPitch + kWidth + 1, kPitch + 1, 1, kHeight);
    copy(kRight, step, kPitch, kPitch + kWidth, 1, kHeight);
    CUDA_CHECK(cudaStreamSynchronize(world.stream()));
    world.Barrier();
  }
}

uint32_t Start(int row, int col) { return row * 1000 + col; }

}  // namespace

int main(int argc, char** argv) {
  const Setup setup = ReadSetup(argc, argv);
  return RunWorld(setup, [&](World& world) {
    const Mesh mesh = MeshOf(world.ranks());
    const Neighbours near = NeighboursOf(world.rank(), mesh);
    const int top = world.rank() / mesh.cols * kHeight, left = world.rank() % mesh.cols * kWidth;
    const int height = mesh.rows * kHeight, width = mesh.cols * kWidth;

    // All steps of the whole torus on the host.
    std::vector<uint32_t> whole;
    for (int i = 0; i < height * width; ++i) whole.push_back(Start(i / width, i % width));
    const auto at = [&](int row, int col) {
      return whole[(row + height) % height * width + (col + width) % width];
    };
    std::vector<uint32_t> framed;
    for (int i = 0; i < kCells; ++i)
      framed.push_back(at(top + i / kPitch - 1, left + i % kPitch - 1));
    for (int step = 0; step < kSteps; ++step) {
      std::vector<uint32_t> next;
      for (int i = 0; i < height * width; ++i) {
        const int r = i / width, c = i % width;
        next.push_back(Rule(at(r, c), at(r - 1, c), at(r + 1, c), at(r, c - 1), at(r, c + 1)));
      }
      whole = next;
    }

    const auto parts = world.Share<Part>();
    Upload(parts[world.rank()]->cells[0], framed.data(), framed.size());
    world.Barrier();
    if (setup.scheme == "persistent") {
      Persistent<<<1, kThreads, 0, world.stream()>>>(parts, near, world.rank());
      CUDA_CHECK_LAUNCH();
      // The neighbours' last step still writes the halo that is fetched with the part.
      CUDA_CHECK(cudaStreamSynchronize(world.stream()));
      world.Barrier();
    } else {
      StepByCopies(world, parts, near);
    }
    const std::vector<uint32_t> got = world.Result(parts[world.rank()]->cells[kSteps % 2], kCells);
    for (int row = 0; row < kHeight; ++row) {
      for (int col = 0; col < kWidth; ++col) {
        const uint32_t value = got[(row + 1) * kPitch + col + 1];
        REQUIRE(value == at(top + row, left + col), "rank %d, row %d, column %d: %u, expected %u",
                world.rank(), row, col, value, at(top + row, left + col));
      }
    }
  });
}
