"""Stages of a pipeline hand activations on, in the order one forward, one backward."""
import torch
import torch.distributed as dist

MASK = 0xFFFFFFFF


def forward(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    """Words of 32 bits, kept in int64. The product is made of halves, so that nothing overflows."""
    x = (x + w) & MASK
    t = ((x >> 16) * 0x9E3779B1 % 65536 * 65536 + (x & 0xFFFF) * 0x9E3779B1) & MASK
    return t ^ (t >> 15)


def operation(inp, weights, out, new_weights) -> None:
    """inp, out: [micro, n]; weights, new_weights: [n]; words of 32 bits in int64."""
    rank, world, micro = dist.get_rank(), dist.get_world_size(), inp.shape[0]
    warm = min(micro, world - 1 - rank)
    new_weights.copy_(weights)
    x = torch.empty_like(weights)
    for m in range(micro):
        if rank > 0:
            dist.recv(x, src=rank - 1)
        out[m] = forward(inp[m] if rank == 0 else x, new_weights)
        if rank + 1 < world:
            dist.send(out[m], dst=rank + 1)
        if m >= warm:
            new_weights.add_(out[m - warm]).bitwise_and_(MASK)
    for m in range(micro - warm, micro):
        new_weights.add_(out[m]).bitwise_and_(MASK)


def main() -> None:
    dist.init_process_group("nccl")
    torch.cuda.set_device(dist.get_rank())
    for n in (256, 1024):
        inp, weights = (torch.randint(0, 2**32, s, device="cuda") for s in ((8, n), (n,)))
        operation(inp, weights, torch.empty_like(inp), torch.empty_like(weights))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
