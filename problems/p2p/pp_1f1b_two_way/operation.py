"""Stages of a pipeline pass activations forward and gradients backward, one forward, one backward."""
import torch
import torch.distributed as dist

MASK = 0xFFFFFFFF


def step(v: torch.Tensor, w: torch.Tensor, table: torch.Tensor) -> torch.Tensor:
    """Words of 32 bits, kept in int64. The product is made of halves, so that nothing overflows."""
    v = (v + w) & MASK
    t = ((v >> 16) * 0x9E3779B1 % 65536 * 65536 + (v & 0xFFFF) * 0x9E3779B1) & MASK
    return t ^ table[t >> 17]


def operation(inp, target, weights, table, acts, grads, new_weights) -> None:
    """inp, target, acts, grads: [micro, n]; weights, new_weights: [n]; table: [32768]."""
    rank, world, micro = dist.get_rank(), dist.get_world_size(), inp.shape[0]
    warm = min(micro, world - 1 - rank)
    new_weights.copy_(weights)
    x, sent = torch.empty_like(weights), []
    for m in range(micro + warm):
        if m < micro:
            if rank > 0:
                dist.recv(x, src=rank - 1)
            acts[m] = step(inp[m] if rank == 0 else x, new_weights, table)
            if rank + 1 < world:
                sent.append(dist.isend(acts[m], dst=rank + 1))
        if m >= warm:
            back = m - warm
            if rank + 1 < world:
                dist.recv(x, src=rank + 1)
            d = target[back] if rank + 1 == world else x
            grads[back] = step(d ^ acts[back], new_weights, table)
            if rank > 0:
                sent.append(dist.isend(grads[back], dst=rank - 1))
            new_weights.add_(grads[back]).bitwise_and_(MASK)
    for work in sent:
        work.wait()


def main() -> None:
    dist.init_process_group("nccl")
    torch.cuda.set_device(dist.get_rank())
    for n in (32, 128):
        shapes = ((8, n), (8, n), (n,), (32768,))
        inputs = [torch.randint(0, 2**32, shape, device="cuda") for shape in shapes]
        operation(*inputs, *(torch.empty_like(inputs[k]) for k in (0, 0, 2)))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
