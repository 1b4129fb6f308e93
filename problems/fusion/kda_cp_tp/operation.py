"""Delta rule with a decay per channel on a grid of ranks, modulo 2^32; int64 holds the words."""
import torch
import torch.distributed as dist

MASK = 0xFFFFFFFF


def times(a, b):
    """Products of words modulo 2^32 whose parts fit into int64."""
    return (a * (b & 0xFFFF) + ((a * (b >> 16) & 0xFFFF) << 16)) & MASK


def operation(q, k, v, decay, beta, w, out, state, tp, row_group) -> None:
    """q, k, v, decay: [heads, tokens, 32]; beta: [heads, tokens]; w, state: [heads, 32, 32];
    out: [tokens, 32]; row_group: the group of the ranks with the same rank // tp."""
    rank, world = dist.get_rank(), dist.get_world_size()
    s = torch.zeros_like(state)
    if rank >= tp:
        dist.recv(s, src=rank - tp)
    out.zero_()
    for t in range(q.shape[1]):
        key = k[:, t, None, :]
        s = times(s, (2 * decay[:, t, None, :] + 1) & MASK)
        read = times(s, key).sum(2) & MASK
        change = times(beta[:, t, None], (v[:, t] - read) & MASK)
        s = (s + times(change[:, :, None], key)) & MASK
        result = times(s, q[:, t, None, :]).sum(2) & MASK
        out[t] = times(result[:, :, None], w).sum((0, 1)) & MASK
    state.copy_(s)
    if rank + tp < world:
        dist.send(s, dst=rank + tp)
    dist.all_reduce(out, group=row_group)
    out &= MASK


def main() -> None:
    dist.init_process_group("nccl")
    rank, world, tp = dist.get_rank(), dist.get_world_size(), 2
    torch.cuda.set_device(rank)
    rows = [dist.new_group(list(range(r, min(r + tp, world)))) for r in range(0, world, tp)]
    for heads, tokens in ((1, 8), (2, 16)):
        shape = (heads, tokens, 32)
        q, k, v, decay = (torch.randint(0, 2**32, shape, device="cuda") for _ in range(4))
        beta = torch.randint(0, 2**32, shape[:2], device="cuda")
        w = torch.randint(0, 2**32, (heads, 32, 32), device="cuda")
        out = torch.empty(tokens, 32, dtype=torch.int64, device="cuda")
        operation(q, k, v, decay, beta, w, out, torch.empty_like(w), tp, rows[rank // tp])
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
