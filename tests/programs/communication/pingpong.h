// One warp on each of two devices plays ping-pong: rank 0 serves, rank 1 returns. Each writes a
// payload and then a flag into the other's mailbox and polls only its own. Used between threads and
// between processes.
#pragma once

#include "flags.h"

struct Mailbox {
  uint32_t flag;    // the last round that arrived
  uint32_t errors;  // payload words that were not what the round demands
  alignas(128) uint32_t payload[32];
};

__device__ inline uint32_t Payload(int sender, uint32_t round, uint32_t lane) {
  return round * 2654435761u + lane * 40503u + sender;
}

// The payload may be overwritten: the partner has read the previous one before it answered.
__device__ inline void Send(Mailbox* to, int sender, uint32_t round) {
  const uint32_t lane = threadIdx.x;
  to->payload[lane] = Payload(sender, round, lane);
  __syncwarp();  // orders every lane's payload before lane 0's release
  if (lane == 0) StoreReleaseSys(&to->flag, round);
}

__device__ inline uint32_t Receive(const Mailbox* mine, int sender, uint32_t round) {
  const uint32_t lane = threadIdx.x;
  if (lane == 0) {
    while (LoadAcquireSys(&mine->flag) != round) {
    }
  }
  __syncwarp();
  return mine->payload[lane] != Payload(sender, round, lane);
}

// Launched with one block of 32 threads on each device.
__global__ void PingPong(Mailbox* mine, Mailbox* theirs, int rank, uint32_t rounds) {
  uint32_t errors = 0;
  for (uint32_t round = 1; round <= rounds; ++round) {
    if (rank == 0) Send(theirs, rank, round);
    errors += Receive(mine, 1 - rank, round);
    if (rank == 1) Send(theirs, rank, round);
  }
  if (errors != 0) atomicAdd(&mine->errors, errors);
}
