"""Micro-batches pass a ring of ranks several times: each rank holds several stages of a pipeline."""
import torch
import torch.distributed as dist

MASK = 0xFFFFFFFF


def step(v: torch.Tensor, w: torch.Tensor, table: torch.Tensor) -> torch.Tensor:
    """Words of 32 bits, kept in int64. The product is made of halves, so that nothing overflows."""
    v = (v + w) & MASK
    t = ((v >> 16) * 0x9E3779B1 % 65536 * 65536 + (v & 0xFFFF) * 0x9E3779B1) & MASK
    return t ^ table[t >> 17]


def operation(inp, weights, table, acts) -> None:
    """inp: [micro, n]; weights: [rounds, n]; table: [32768]; acts: [rounds, micro, n]."""
    rank, world = dist.get_rank(), dist.get_world_size()
    rounds, micro = acts.shape[:2]
    x, sent = torch.empty_like(inp[0]), []
    for first in range(0, micro, world):
        for q in range(rounds):
            for m in range(first, min(first + world, micro)):
                comes = rank > 0 or q > 0
                if comes:
                    dist.recv(x, src=(rank - 1) % world)
                acts[q, m] = step(x if comes else inp[m], weights[q], table)
                if rank + 1 < world or q + 1 < rounds:
                    sent.append(dist.isend(acts[q, m], dst=(rank + 1) % world))
    for work in sent:
        work.wait()


def main() -> None:
    dist.init_process_group("nccl")
    torch.cuda.set_device(dist.get_rank())
    for rounds in (2, 3):
        shapes = ((8, 96), (rounds, 96), (32768,))
        inputs = [torch.randint(0, 2**32, shape, device="cuda") for shape in shapes]
        operation(*inputs, torch.empty((rounds, 8, 96), dtype=torch.int64, device="cuda"))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
