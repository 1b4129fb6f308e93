"""Gated delta rule over a sequence split between ranks, modulo 2^32; int64 holds the words."""
import torch
import torch.distributed as dist

MASK = 0xFFFFFFFF


def times(a, b):
    """Products of words modulo 2^32 whose parts fit into int64."""
    return (a * (b & 0xFFFF) + ((a * (b >> 16) & 0xFFFF) << 16)) & MASK


def operation(q, k, v, decay, beta, out, state) -> None:
    """q, k, v, out: [heads, tokens, 32]; decay, beta: [heads, tokens]; state: [heads, 32, 32]."""
    rank, world = dist.get_rank(), dist.get_world_size()
    s = torch.zeros_like(state)
    if rank > 0:
        dist.recv(s, src=rank - 1)
    factor = (2 * decay + 1) & MASK
    for t in range(q.shape[1]):
        key, a = k[:, t, None, :], factor[:, t, None]
        read = times(s, key).sum(2) & MASK
        change = times(beta[:, t, None], (v[:, t] - times(a, read)) & MASK)
        s = (times(a[:, :, None], s) + times(change[:, :, None], key)) & MASK
        out[:, t] = times(s, q[:, t, None, :]).sum(2) & MASK
    state.copy_(s)
    if rank + 1 < world:
        dist.send(s, dst=rank + 1)


def main() -> None:
    dist.init_process_group("nccl")
    torch.cuda.set_device(dist.get_rank())
    for heads, tokens in ((1, 8), (2, 16)):
        q, k, v = (torch.randint(0, 2**32, (heads, tokens, 32), device="cuda") for _ in "qkv")
        decay, beta = (torch.randint(0, 2**32, (heads, tokens), device="cuda") for _ in "db")
        state = torch.empty(heads, 32, 32, dtype=torch.int64, device="cuda")
        operation(q, k, v, decay, beta, torch.empty_like(q), state)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
